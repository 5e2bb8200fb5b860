package redfish_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

const sessionsPath = "/redfish/v1/SessionService/Sessions"

// answer answers requests of the method for paths with the prefix, as often as times; less than 0: always.
func (f *fixture) answer(method, prefix string, times, status int, body string) {
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.HasPrefix(r.URL.Path, prefix) || times == 0 {
			return false
		}
		times--
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
		return true
	})
}

// extendedInfo is an error with one message.
func extendedInfo(id, text string) string {
	return fmt.Sprintf(`{"error":{"code":"Base.1.0.GeneralError","message":"x","@Message.ExtendedInfo":[{"MessageId":%q,"Message":%q}]}}`, id, text)
}

func TestBasicAuthenticationIsUsedWhereThereAreNoSessions(t *testing.T) {
	for _, sessions := range []bmc.SessionService{bmc.SessionsAbsent, bmc.SessionsRefused, bmc.SessionsDisabled} {
		t.Run(string(sessions), func(t *testing.T) {
			f := start(t, bmc.Personality{Login: bmc.LoginRules{Sessions: sessions}})
			for range 3 {
				_, err := f.bmc.PowerState(t.Context())
				must(t, err)
			}
			if n := count(f.Requests(), "POST "+sessionsPath); n != 1 {
				t.Errorf("a session was asked for %d times, expected 1: the choice is remembered", n)
			}
			wrong := f.Endpoint()
			wrong.Password = "wrong-password"
			for range 3 {
				_, err := f.open(t, wrong).PowerState(t.Context())
				expect(t, err, hardware.Unauthorized)
				noSecrets(t, err, wrong.Password, wrong.Username)
			}
			// The root, the session, and where the session was not refused for the credentials the system, or the service of sessions.
			if requests := f.Requests(); len(requests) > 3 {
				t.Errorf("wrong credentials were sent with %q: the account would be locked", requests)
			}
		})
	}
}

func TestSessionsArePreferredAlsoWhereTheRootHasNoLinks(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		isRoot := strings.TrimRight(r.URL.Path, "/") == "/redfish/v1"
		if isRoot {
			_, _ = fmt.Fprint(w, `{"@odata.id":"/redfish/v1","Id":"RootService"}`)
		}
		return isRoot
	})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	if n := f.Sessions(); n != 1 {
		t.Errorf("%d sessions, expected 1", n)
	}
}

func TestARootThatCannotBeReadWithoutALoginIsNoRefusalOfTheSecret(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.answer(http.MethodGet, "/redfish/v1/", 1, http.StatusUnauthorized, "")
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
}

// TestTheSecretIsBlamedOnlyByAnAnswerThatMeansIt lets the BMC refuse the login, or every read with a session.
func TestTheSecretIsBlamedOnlyByAnAnswerThatMeansIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		login  hardware.Kind
		read   hardware.Kind
	}{
		{"no words", 401, "", hardware.Unauthorized, hardware.Unauthorized},
		{"an unknown user", 401, extendedInfo("iLO.2.14.UnauthorizedLoginAttempt", ""), hardware.Unauthorized, hardware.Unauthorized},
		{"a privilege", 403, extendedInfo("Base.1.8.InsufficientPrivilege", "There are insufficient privileges."), hardware.Unauthorized, hardware.Unauthorized},
		{"a password that must be changed", 403, extendedInfo("Base.1.8.PasswordChangeRequired", "Change it."), hardware.Unauthorized, hardware.Unauthorized},
		{"no words, forbidden", 403, "", hardware.Unauthorized, hardware.Unauthorized},
		{"a licence", 403, extendedInfo("IDRAC.2.8.LIC501", "A required license is missing or expired."), hardware.Unsupported, hardware.Unsupported},
		{"too many sessions", 503, extendedInfo("Base.1.8.SessionLimitExceeded", "Too many."), hardware.SessionsExhausted, hardware.SessionsExhausted},
		{"too many sessions, as refused", 401, extendedInfo("Base.1.8.SessionLimitExceeded", "Too many."), hardware.SessionsExhausted, hardware.SessionsExhausted},
		{"too many sessions at an iDRAC", 503, extendedInfo("IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached."), hardware.SessionsExhausted, hardware.SessionsExhausted},
		{"an account that is locked", 401, extendedInfo("Oem.1.0.AccountLocked", ""), hardware.Busy, hardware.Busy},
		{"an account that is locked, in words", 403, `{"error":{"code":"x","message":"The account has been locked out."}}`, hardware.Busy, hardware.Busy},
	} {
		for path, want := range map[string]hardware.Kind{sessionsPath: c.login, bmc.PathSystem: c.read} {
			t.Run(c.name+" at "+path, func(t *testing.T) {
				f := start(t, bmc.Personality{Login: bmc.LoginRules{NoBasic: c.login == hardware.SessionsExhausted}})
				method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[path == sessionsPath]
				f.answer(method, path, -1, c.status, c.body)
				for range 3 {
					_, err := f.bmc.PowerState(t.Context())
					expect(t, err, want)
				}
				if n := count(f.Requests(), "POST "); want == hardware.Unauthorized && c.status == 401 && n != 1 {
					t.Errorf("%d logins, expected 1", n)
				}
				f.Intercept(nil)
				f.clock.Advance(time.Minute)
				_, err := f.bmc.PowerState(t.Context())
				must(t, err)
			})
		}
	}
}

func TestAFreshSessionThatIsRefusedOnceIsTriedOnceMore(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.answer(http.MethodGet, "/redfish/v1/Systems", 1, http.StatusUnauthorized, "")
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	if n := count(f.Requests(), "POST "); n != 1 {
		t.Errorf("%d logins, expected 1: the session is the same", n)
	}
	// The session is refused in passing, and so is the one that replaces it.
	f.answer(http.MethodGet, "/redfish/v1/Systems", 2, http.StatusUnauthorized, "")
	_, err = f.bmc.PowerState(t.Context())
	must(t, err)
	f.answer(http.MethodGet, "/redfish/v1/Systems", -1, http.StatusUnauthorized, "")
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Unauthorized)
	if n := f.Sessions(); n != 0 {
		t.Errorf("%d sessions at a BMC that refuses them, expected 0: a BMC has few", n)
	}
}

func TestALoginIsRedirected(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		f := start(t, bmc.Personality{Login: bmc.LoginRules{Redirect: status}})
		_, err := f.bmc.PowerState(t.Context())
		must(t, err)
	}
}

func TestTooManySessionsAreNoFaultOfTheSecret(t *testing.T) {
	personality := personalityNamed(t, "dell-r750a")
	personality.Login.MaxSessions, personality.Login.NoBasic = 1, true
	f := start(t, personality)
	other := redfish.New(redfish.Options{})
	b, err := other.OpenBMC(t.Context(), f.Endpoint())
	must(t, err)
	_, err = b.PowerState(t.Context())
	must(t, err)
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.SessionsExhausted, "RAC0218")
	must(t, other.Close(t.Context()))
	f.clock.Advance(5 * time.Minute)
	_, err = f.bmc.PowerState(t.Context())
	must(t, err)
}

package redfish_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
)

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type fixture struct {
	*bmctest.Server
	clock  *clock
	client *redfish.Client
	bmc    hardware.BMC
}

func start(t testing.TB, personality bmc.Personality) *fixture {
	t.Helper()
	f := &fixture{Server: bmctest.Start(t, personality), clock: &clock{now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}}
	f.client = redfish.New(redfish.Options{Timeout: 10 * time.Second, Clock: f.clock.Now})
	t.Cleanup(func() {
		f.Intercept(nil)
		if err := f.client.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
		if n := f.Sessions(); n != 0 {
			t.Errorf("%d sessions are left at the BMC after Close, expected 0", n)
		}
	})
	f.bmc = f.open(t, f.Endpoint())
	return f
}

// open returns the port to the BMC at the endpoint.
func (f *fixture) open(t testing.TB, endpoint hardware.Endpoint) hardware.BMC {
	t.Helper()
	bmc, err := f.client.OpenBMC(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return bmc
}

// expect fails the test unless err is of the kind and its text holds all the words.
func expect(t testing.TB, err error, kind hardware.Kind, words ...string) {
	t.Helper()
	if hardware.KindOf(err) != kind {
		t.Fatalf("got %q (kind %q), expected kind %q", err, hardware.KindOf(err), kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not mention %q", err, word)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func count(requests []string, want string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, want) {
			n++
		}
	}
	return n
}

func TestASessionIsSharedByCallsAndEndedByClose(t *testing.T) {
	f := start(t, bmc.Personality{})
	for range 3 {
		state, err := f.bmc.PowerState(t.Context())
		must(t, err)
		if state != hardware.PowerOff {
			t.Fatalf("power is %s, expected Off", state)
		}
	}
	if n := count(f.Requests(), "POST /redfish/v1/SessionService/Sessions"); n != 1 {
		t.Errorf("%d logins for three calls, expected 1", n)
	}
}

func TestASessionThatTheBMCForgotIsOpenedAgainOnce(t *testing.T) {
	f := start(t, bmc.Personality{})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.EndSessions()
	_, err = f.bmc.PowerState(t.Context())
	must(t, err)
	if n := f.Sessions(); n != 1 {
		t.Errorf("%d sessions, expected 1", n)
	}
	f.EndSessions()
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/redfish/v1/Systems") {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	f.Requests()
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Unauthorized)
	if n := count(f.Requests(), "POST "); n != 1 {
		t.Errorf("%d logins after a refusal that stays, expected 1", n)
	}
}

func TestIdleSessionsAreLoggedOut(t *testing.T) {
	f := start(t, bmc.Personality{})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.clock.Advance(time.Minute)
	f.client.EndIdleSessions(t.Context())
	if n := f.Sessions(); n != 1 {
		t.Errorf("%d sessions after a minute, expected 1", n)
	}
	f.clock.Advance(5 * time.Minute)
	f.client.EndIdleSessions(t.Context())
	if n := f.Sessions(); n != 0 {
		t.Errorf("%d sessions after the idle time-out, expected 0", n)
	}
	_, err = f.bmc.PowerState(t.Context())
	must(t, err)
}

func TestStartEndsAllSessionsWhenItsContextIsDone(t *testing.T) {
	f := start(t, bmc.Personality{})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, f.client.Start(ctx))
	if n := f.Sessions(); n != 0 {
		t.Errorf("%d sessions, expected 0", n)
	}
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Invalid, "closed")
}

func TestASessionThatCannotBeEndedIsReported(t *testing.T) {
	f := start(t, bmc.Personality{})
	client := redfish.New(redfish.Options{})
	bmc, err := client.OpenBMC(t.Context(), f.Endpoint())
	must(t, err)
	_, err = bmc.PowerState(t.Context())
	must(t, err)
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return r.Method == http.MethodDelete
	})
	expect(t, client.Close(t.Context()), hardware.Unreachable, f.Endpoint().Address)
	f.Intercept(nil)
	f.EndSessions()
}

func TestASessionNamedOnlyInTheBodyIsLoggedOutToo(t *testing.T) {
	f := start(t, bmc.Personality{Login: bmc.LoginRules{NoLocation: true}})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err) // start's clean-up counts the sessions
}

func TestChangedCredentialsAreUsedAtTheNextCallAndRefusedOnesAreNotRepeated(t *testing.T) {
	f := start(t, bmc.Personality{})
	old := f.Endpoint()
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.SetPassword("another-secret")
	f.EndSessions()
	f.Requests()
	for range 3 {
		_, err = f.open(t, old).PowerState(t.Context())
		expect(t, err, hardware.Unauthorized)
		noSecrets(t, err, old.Password, old.Username)
	}
	if n := count(f.Requests(), "POST "); n != 1 {
		t.Errorf("refused credentials were tried %d times, expected 1: the account would be locked out", n)
	}
	_, err = f.open(t, f.Endpoint()).PowerState(t.Context())
	must(t, err)
	f.SetPassword(old.Password)
	f.clock.Advance(31 * time.Second)
	_, err = f.open(t, old).PowerState(t.Context())
	must(t, err)
	if n := f.Sessions(); n != 1 {
		t.Errorf("%d sessions, expected 1: those with former credentials are ended", n)
	}
}

func noSecrets(t testing.TB, err error, secrets ...string) {
	t.Helper()
	if err == nil {
		return
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, secret := range secrets {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("error %q holds the secret %q", e, secret)
			}
		}
	}
}

func TestCertificatesAreVerifiedUnlessTurnedOff(t *testing.T) {
	f := start(t, bmc.Personality{})
	e := f.Endpoint()
	e.CABundle = nil
	_, err := f.open(t, e).PowerState(t.Context())
	expect(t, err, hardware.Unreachable, "CA bundle")
	e.InsecureSkipVerify = true
	_, err = f.open(t, e).PowerState(t.Context())
	must(t, err)
}

func TestMalformedEndpointsAreInvalidAndNotContacted(t *testing.T) {
	client := redfish.New(redfish.Options{})
	good := hardware.Endpoint{Address: "https://10.0.0.7", Username: "u", Password: "hidden"}
	for name, spoil := range map[string]func(*hardware.Endpoint){
		"no scheme":            func(e *hardware.Endpoint) { e.Address = "10.0.0.7" },
		"plain http":           func(e *hardware.Endpoint) { e.Address = "http://10.0.0.7" },
		"credentials in it":    func(e *hardware.Endpoint) { e.Address = "https://u:hidden@10.0.0.7" },
		"a path":               func(e *hardware.Endpoint) { e.Address = "https://10.0.0.7/redfish/v1" },
		"a relative system":    func(e *hardware.Endpoint) { e.SystemPath = "Systems/1" },
		"a CA that is no PEM":  func(e *hardware.Endpoint) { e.CABundle = []byte("nonsense") },
		"another host as path": func(e *hardware.Endpoint) { e.SystemPath = "@elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			spoil(&e)
			_, err := client.OpenBMC(t.Context(), e)
			expect(t, err, hardware.Invalid)
			noSecrets(t, err, "hidden")
		})
	}
	e := good
	e.Password = ""
	_, err := client.OpenBMC(t.Context(), e)
	expect(t, err, hardware.Unauthorized, "Secret")
}

package redfish_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

// kill is what a killed process leaves: a session that nobody ends.
func (f *fixture) kill(t *testing.T, options redfish.Options) {
	t.Helper()
	must(t, f.manager(t, options))
}

// manager logs in with a client of its own, which is never closed, and reads the power.
func (f *fixture) manager(t *testing.T, options redfish.Options) error {
	t.Helper()
	options.Clock = f.clock.Now
	b, err := redfish.New(options).OpenBMC(t.Context(), f.Endpoint())
	must(t, err)
	_, err = b.PowerState(t.Context())
	return err
}

var ours = redfish.Options{Owner: "ingot-manager 1"}

func TestSessionsThatAKilledManagerLeftDoNotAddUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		login   bmc.LoginRules
		options redfish.Options
		left    int
	}{
		{"the mark is kept", bmc.LoginRules{}, ours, 1},
		{"the mark is not kept", bmc.LoginRules{Context: bmc.ContextDropped}, ours, 5},
		{"the mark is refused", bmc.LoginRules{Context: bmc.ContextRefused}, ours, 5},
		{"the account is ours alone", bmc.LoginRules{Context: bmc.ContextRefused}, redfish.Options{ExclusiveAccount: true}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, bmc.Personality{Login: c.login})
			defer f.EndSessions()
			for range 5 {
				f.kill(t, c.options)
			}
			if n := f.Sessions(); n != c.left {
				t.Errorf("%d sessions after five managers, expected %d", n, c.left)
			}
		})
	}
}

func TestSessionsOfOthersAreNeverEnded(t *testing.T) {
	f := start(t, bmc.Personality{})
	defer f.EndSessions()
	f.kill(t, redfish.Options{})                           // monitoring with the same account
	f.kill(t, redfish.Options{Owner: "ingot-manager 2"})   // the manager of another cluster
	f.kill(t, redfish.Options{Owner: "ingot-manager 1 x"}) // its name begins like ours
	f.kill(t, ours)
	f.kill(t, ours)
	if n := f.Sessions(); n != 4 {
		t.Errorf("%d sessions, expected the three of others and the last one of ours", n)
	}
	// A session that this process has made is not one that was left.
	client := redfish.New(ours)
	for _, password := range []string{"", "changed"} {
		if password != "" {
			f.SetPassword(password)
		}
		b, err := client.OpenBMC(t.Context(), f.Endpoint())
		must(t, err)
		_, err = b.PowerState(t.Context())
		must(t, err)
	}
	must(t, client.Close(t.Context()))
	if n := f.Sessions(); n != 3 {
		t.Errorf("%d sessions after the end, expected the three of others", n)
	}
}

func TestTheSessionsAreListedOnceForEachBMCAndProcess(t *testing.T) {
	f := start(t, bmc.Personality{})
	client := redfish.New(redfish.Options{Owner: "x", Clock: f.clock.Now, IdleTimeout: time.Minute})
	for range 3 {
		b, err := client.OpenBMC(t.Context(), f.Endpoint())
		must(t, err)
		_, err = b.PowerState(t.Context())
		must(t, err)
		f.clock.Advance(time.Hour)
		client.EndIdleSessions(t.Context())
	}
	requests := f.Requests()
	if logins, lists := count(requests, "POST "+sessionsPath), count(requests, "GET "+sessionsPath); logins != 3 || lists != 2 {
		t.Errorf("%d logins and %d reads of sessions, expected 3 and 2 (the collection and our own): %q", logins, lists, requests)
	}
}

func TestABMCWhoseSlotsAreFullSaysSo(t *testing.T) {
	for _, refusal := range []bmc.Refusal{
		{}, {Status: 503, Message: "IDRAC.2.8.RAC0218"}, {Status: 400, Message: "Base.1.8.CreateLimitReachedForResource"}, {Status: 403, Message: "Base.1.8.SessionLimitExceeded"},
		{Status: 401, Message: "Oem.1.0.NoMoreSessions"},
	} {
		f := start(t, bmc.Personality{Login: bmc.LoginRules{MaxSessions: 2, LimitRefusal: refusal}})
		f.kill(t, redfish.Options{})
		f.kill(t, redfish.Options{})
		var log bytes.Buffer
		options := ours
		options.Log = slog.New(slog.NewTextHandler(&log, nil))
		must(t, f.manager(t, options))
		for _, words := range []string{"in use: 2, 2 of them with the account of this host's Secret", "the credentials are sent with every request"} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("%+v: the log lacks %q: %s", refusal, words, &log)
			}
		}
		for _, secret := range []string{f.Endpoint().Password, f.Endpoint().Username} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has a secret: %s", &log)
			}
		}
		f.EndSessions()
		// What an earlier manager left is ended before anybody is told.
		f.kill(t, redfish.Options{})
		f.kill(t, ours)
		f.kill(t, ours)
		if n := f.Sessions(); n != 2 {
			t.Errorf("%+v: %d sessions, expected 2", refusal, n)
		}
		f.EndSessions()
	}
}

func TestTheListOfAFullBMCIsNotReadAgainAndAgain(t *testing.T) {
	f := start(t, bmc.Personality{Login: bmc.LoginRules{MaxSessions: 1, NoBasic: true}})
	defer f.EndSessions()
	f.kill(t, redfish.Options{})
	f.Requests()
	client := redfish.New(redfish.Options{Owner: "x", Clock: f.clock.Now})
	b, err := client.OpenBMC(t.Context(), f.Endpoint())
	must(t, err)
	for range 3 {
		_, err = b.PowerState(t.Context())
		expect(t, err, hardware.SessionsExhausted, "it does not list them without one")
		f.clock.Advance(time.Minute)
	}
	// Each refused request counts against the account where the BMC does not take the credentials in a request.
	if n := count(f.Requests(), "GET "+sessionsPath); n != 1 {
		t.Errorf("the sessions were listed %d times in three minutes, expected 1", n)
	}
	f.EndSessions()
	_, err = b.PowerState(t.Context())
	must(t, err)
}

// A BMC whose words for a full service are in an answer to something else is busy, and its sessions are not touched.
func TestALimitOfSomethingElseIsNoLimitOfSessions(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.answer(http.MethodGet, "/redfish/v1/Systems", -1, 400, extendedInfo("Base.1.8.CreateLimitReachedForResource", "The limit of this session resource is reached."))
	_, err := f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Busy)
	if strings.Contains(err.Error(), "every session") {
		t.Error(err)
	}
}

func TestALoginWorksWhateverRefusesItsMark(t *testing.T) {
	for _, refusal := range []bmc.Refusal{
		{Status: 400, Message: "Base.1.8.PropertyUnknown"}, {Status: 404, Message: "Base.1.8.ResourceMissingAtURI"}, {Status: 405, Message: "Base.1.8.GeneralError"},
		{Status: 409, Message: "Base.1.8.OperationNotAllowed"}, {Status: 422, Message: "Base.1.8.GeneralError"}, {Status: 500, Message: "Base.1.8.InternalError"},
		{Status: 501, Message: "Base.1.8.GeneralError"},
	} {
		// Where it takes no credentials in a request, a login that is taken for unsupported fails too.
		f := start(t, bmc.Personality{Login: bmc.LoginRules{Context: bmc.ContextRefused, ContextRefusal: refusal, NoBasic: true}})
		client := redfish.New(redfish.Options{Owner: "x", Clock: f.clock.Now, IdleTimeout: time.Minute})
		for range 2 {
			b, err := client.OpenBMC(t.Context(), f.Endpoint())
			must(t, err)
			if _, err = b.PowerState(t.Context()); err != nil {
				t.Errorf("%d: %v", refusal.Status, err)
			}
			f.clock.Advance(time.Hour)
			client.EndIdleSessions(t.Context())
		}
		if n := count(f.Requests(), "POST "+sessionsPath); n != 3 {
			t.Errorf("%d: %d logins, expected 3: the refusal is remembered", refusal.Status, n)
		}
	}
}

// The mark is not what these answers are about, and credentials that are sent twice bring the account nearer to its lock.
func TestALoginThatIsRefusedForAnotherReasonIsNotSentAgain(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   hardware.Kind
	}{
		{401, "", hardware.Unauthorized},
		{403, extendedInfo("Base.1.8.InsufficientPrivilege", "No."), hardware.Unauthorized},
		{400, extendedInfo("Base.1.8.AccessDenied", "No."), hardware.Unauthorized},
		{503, "", hardware.Busy},
		{400, extendedInfo("Oem.1.0.AccountLocked", "The account is locked."), hardware.Busy},
		{403, extendedInfo("Oem.1.0.LoginFailed", "The maximum number of failed logins is reached and the account is locked: no session is made."), hardware.Busy},
	} {
		f := start(t, bmc.Personality{})
		f.answer(http.MethodPost, sessionsPath, -1, c.status, c.body)
		expect(t, f.manager(t, ours), c.want)
		requests := f.Requests()
		if logins, lists := count(requests, "POST "+sessionsPath), count(requests, "GET "+sessionsPath); logins != 1 || lists != 0 {
			t.Errorf("%d %s: %d logins and %d reads of sessions, expected 1 and 0", c.status, c.body, logins, lists)
		}
	}
}

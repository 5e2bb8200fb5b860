package redfish_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
)

// full starts a BMC whose one session somebody else has.
func full(t *testing.T, login bmc.LoginRules) *fixture {
	login.MaxSessions = 1
	f := start(t, bmc.Personality{Login: login})
	f.kill(t, redfish.Options{})
	t.Cleanup(f.EndSessions) // before start's, which counts them
	f.Requests()
	return f
}

func TestAServerWhoseBMCHasNoSessionLeftIsDrivenAllTheSame(t *testing.T) {
	for name, login := range map[string]bmc.LoginRules{
		"503":                   {},
		"503 that asks to wait": {LimitRetryAfter: "120"},
		"iDRAC, asks to wait":   {LimitRetryAfter: "60", LimitRefusal: bmc.Refusal{Status: 503, Message: "IDRAC.2.8.RAC0218"}},
		"400 and a full list":   {LimitRefusal: bmc.Refusal{Status: 400, Message: "Base.1.8.CreateLimitReachedForResource"}},
		"in the vendor's words": {LimitRefusal: bmc.Refusal{Status: 503, Message: "Oem.1.0.Refused"}, LimitRetryAfter: "30"},
	} {
		t.Run(name, func(t *testing.T) {
			f := full(t, login)
			for range 3 {
				must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
				must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
			}
			if n := count(f.Requests(), "POST "+sessionsPath); n != 1 {
				t.Errorf("a session was asked for %d times, expected 1", n)
			}
			if n := f.Sessions(); n != 1 {
				t.Errorf("%d sessions: that of somebody else was ended", n)
			}
			// When there is a session again, it is used.
			f.EndSessions()
			f.clock.Advance(5 * time.Minute)
			_, err := f.bmc.PowerState(t.Context())
			must(t, err)
			if n := f.Sessions(); n != 1 {
				t.Errorf("%d sessions, expected one of ours", n)
			}
			must(t, f.client.Close(t.Context()))
		})
	}
}

func TestAFullBMCThatTakesNoCredentialsInARequestIsNotHeld(t *testing.T) {
	f := full(t, bmc.LoginRules{LimitRetryAfter: "120", NoBasic: true})
	_, err := f.bmc.PowerState(t.Context())
	expect(t, err, hardware.SessionsExhausted, "all sessions of the BMC are in use")
	if strings.Contains(err.Error(), "no request is sent") {
		t.Error(err)
	}
	// Nothing keeps whoever has a session from the BMC.
	f.EndSessions()
	_, err = f.bmc.PowerState(t.Context())
	must(t, err)
}

// TestSessionsThatWeCouldNotEndAreEndedBeforeOthersAreBlamed has a BMC that refuses our session in passing, so that it cannot be ended by its own token.
func TestSessionsThatWeCouldNotEndAreEndedBeforeOthersAreBlamed(t *testing.T) {
	for name, status := range map[string]int{"not known": http.StatusUnauthorized, "an error": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Login: bmc.LoginRules{MaxSessions: 1}})
			_, err := f.bmc.PowerState(t.Context())
			must(t, err)
			refused := 0
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				isRead := r.URL.Path == bmc.PathSystem && refused == 0
				isEnd := r.Method == http.MethodDelete && refused == 1
				switch {
				case isRead:
					w.WriteHeader(http.StatusUnauthorized)
				case isEnd:
					w.WriteHeader(status)
				default:
					return false
				}
				refused++
				return true
			})
			f.Requests()
			_, err = f.bmc.PowerState(t.Context())
			must(t, err)
			requests := f.Requests()
			if ends, logins := count(requests, "DELETE "), count(requests, "POST "); ends != 2 || logins != 2 || f.Sessions() != 1 {
				t.Errorf("%d ends and %d logins, %d sessions: %q", ends, logins, f.Sessions(), requests)
			}
			f.Requests()
			_, err = f.bmc.PowerState(t.Context())
			must(t, err)
			f.Intercept(nil)
		})
	}
	t.Run("of a former password", func(t *testing.T) {
		f := start(t, bmc.Personality{Login: bmc.LoginRules{MaxSessions: 1, NoBasic: true}})
		_, err := f.bmc.PowerState(t.Context())
		must(t, err)
		f.SetPassword("changed")
		_, err = f.open(t, f.Endpoint()).PowerState(t.Context())
		must(t, err)
	})
}

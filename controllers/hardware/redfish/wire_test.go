package redfish_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

func TestABMCIsNotTriedBeforeTheTimeItAsksFor(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		body   string
	}{
		"seconds":             {"30", ""},
		"a date":              {"Mon, 01 Jun 2026 00:00:30 GMT", ""},
		"iDRAC's argument":    {"", `{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.SYS518","Message":"iDRAC is not ready."},{"MessageId":"Base.1.12.ServiceTemporarilyUnavailable","MessageArgs":["30"]}]}}`},
		"one object":          {"", `{"error":{"@Message.ExtendedInfo":{"MessageId":"Base.1.12.ServiceTemporarilyUnavailable","MessageArgs":"30"}}}`},
		"a number, top level": {"", `{"@Message.ExtendedInfo":[{"MessageId":"ServiceTemporarilyUnavailable","MessageArgs":[30]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			_, err := f.bmc.PowerState(t.Context())
			must(t, err)
			f.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = fmt.Fprint(w, c.body)
				return true
			})
			_, err = f.bmc.PowerState(t.Context())
			expect(t, err, hardware.Busy, "503")
			if got := hardware.RetryAfterOf(err); got != 30*time.Second {
				t.Errorf("after %s, expected 30 s", got)
			}
			f.Intercept(nil)
			f.Requests()
			f.clock.Advance(29 * time.Second)
			// All sessions to the BMC wait, also those with other particulars, and the reason stays the BMC's.
			for _, b := range []hardware.BMC{f.bmc, redfishBMC(t, f)} {
				err = b.SetPower(t.Context(), hardware.TurnOn)
				expect(t, err, hardware.Busy, "503", "00:00:30Z")
				if got := hardware.RetryAfterOf(err); got != time.Second {
					t.Errorf("after %s, expected 1 s", got)
				}
			}
			if got := f.Requests(); len(got) != 0 {
				t.Errorf("requests %q before the time", got)
			}
			f.clock.Advance(time.Second)
			_, err = f.bmc.PowerState(t.Context())
			must(t, err)
		})
	}
}

func TestALogoutIsSentAlsoToABMCThatAsksToWait(t *testing.T) {
	f := start(t, bmc.Personality{})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.SetFaults(bmc.Faults{Busy: 1})
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Busy)
	must(t, f.client.Close(t.Context()))
	if n := f.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestARedirectOnTheSameHostKeepsMethodAndBody(t *testing.T) {
	for _, c := range []struct {
		status   int
		to       string
		isFollow bool
	}{
		{http.StatusTemporaryRedirect, "/moved%s", true},
		{http.StatusPermanentRedirect, "/moved%s", true},
		{http.StatusPermanentRedirect, "%s/", true},
		{http.StatusMovedPermanently, "%s/", true},
		{http.StatusFound, "%s/", true},
		{http.StatusMovedPermanently, "/moved%s", false},
		{http.StatusFound, "/login.html?from=%s", false},
		{http.StatusSeeOther, "%s/", false},
	} {
		t.Run(fmt.Sprint(c.status, c.to), func(t *testing.T) {
			f := start(t, bmc.Personality{})
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				original, isMoved := strings.CutPrefix(r.URL.Path, "/moved")
				switch {
				case isMoved:
					r.URL.Path = original
				case r.URL.Path == "/login.html":
					w.WriteHeader(http.StatusOK) // which would look like a reset that was accepted
					return true
				case r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/") && strings.HasPrefix(r.URL.Path, bmc.PathSystem):
					w.Header().Set("Location", fmt.Sprintf(c.to, r.URL.Path))
					w.WriteHeader(c.status)
					return true
				}
				return false
			})
			err := f.bmc.SetPower(t.Context(), hardware.TurnOn)
			if c.isFollow {
				must(t, err)
				must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
			} else {
				expect(t, err, hardware.Invalid, fmt.Sprint(c.status))
			}
			if isOn := f.Power() == hardware.PowerOn; isOn != c.isFollow {
				t.Errorf("the power is %s", f.Power())
			}
		})
	}
}

func TestARedirectToItselfEnds(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	_, err := f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Invalid, "redirects")
}

func TestASlashAtTheEndOfALinkStays(t *testing.T) {
	f := start(t, personalityNamed(t, "hpe-bl460c"))
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	f.Requests()
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
	want := []string{"GET " + bmc.PathSystem + "/", "POST " + bmc.PathSystem + "/Actions/ComputerSystem.Reset/"}
	if got := f.Requests(); !slices.Equal(got, want) {
		t.Errorf("requests %q, expected %q: each redirect costs a request", got, want)
	}
	e := f.Endpoint()
	e.SystemPath = bmc.PathSystem + "/"
	f.Requests()
	_, err = f.open(t, e).PowerState(t.Context())
	must(t, err)
	if got := f.Requests(); count(got, "GET "+bmc.PathSystem) != 1 {
		t.Errorf("requests %q", got)
	}
}

func TestASystemIsFoundByItsName(t *testing.T) {
	f := start(t, personalityNamed(t, "sushy-tools"))
	e := f.Endpoint()
	e.SystemPath = "/redfish/v1/Systems/node-0"
	b := f.open(t, e)
	must(t, b.SetBootOnce(t.Context(), hardware.BootNetwork))
	must(t, b.SetPower(t.Context(), hardware.TurnOn))
	if f.Power() != hardware.PowerOn {
		t.Errorf("the power is %s", f.Power())
	}
}

func TestABMCThatIsNotReadyIsBusy(t *testing.T) {
	for name, c := range map[string]struct{ path, body string }{
		"no system yet":          {"/redfish/v1/Systems", `{"@odata.id":"/redfish/v1/Systems","Members":[]}`},
		"the baseboard alone":    {"/redfish/v1/Systems", `{"Members":[{"@odata.id":"/redfish/v1/Systems/HGX_Baseboard_0"}]}`},
		"HostBooting":            {bmc.PathSystem, extendedInfo("Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting", "")},
		"iDRAC, with status 400": {bmc.PathSystem, extendedInfo("IDRAC.1.6.SWC0700", "iDRAC is not ready.")},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			status := http.StatusBadRequest
			if c.path != bmc.PathSystem {
				status = http.StatusOK
			}
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.TrimRight(r.URL.Path, "/") != c.path {
					return false
				}
				w.WriteHeader(status)
				_, _ = fmt.Fprint(w, c.body)
				return true
			})
			_, err := f.bmc.PowerState(t.Context())
			expect(t, err, hardware.Busy)
		})
	}
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		switch strings.TrimRight(r.URL.Path, "/") {
		case "/redfish/v1":
			_, _ = fmt.Fprint(w, `{"Id":"RootService"}`)
			return true
		case "/redfish/v1/Systems":
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	})
	_, err := f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Busy, "restarted")
}

// TestARequestOnABrokenConnectionIsSentAgainOnceWhereThatIsSafe lets the BMC break a kept connection, as iLO does.
func TestARequestOnABrokenConnectionIsSentAgainOnceWhereThatIsSafe(t *testing.T) {
	for name, c := range map[string]struct {
		resets  []bmc.Reset
		call    func(*fixture) error
		isAgain bool
	}{
		"a read":               {nil, func(f *fixture) error { _, err := f.bmc.PowerState(t.Context()); return err }, true},
		"the override":         {nil, func(f *fixture) error { return f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork) }, true},
		"power on":             {nil, func(f *fixture) error { return f.bmc.SetPower(t.Context(), hardware.TurnOn) }, true},
		"a push on the button": {[]bmc.Reset{"PushPowerButton"}, func(f *fixture) error { return f.bmc.SetPower(t.Context(), hardware.TurnOn) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Power: bmc.PowerRules{Resets: c.resets}})
			_, err := f.bmc.PowerState(t.Context())
			must(t, err)
			broken := ""
			f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
				if isChange := r.Method != http.MethodGet; broken != "" || !isChange && name != "a read" {
					return false
				}
				broken = r.Method + " " + r.URL.Path
				panic(http.ErrAbortHandler)
			})
			f.Requests()
			err = c.call(f)
			if c.isAgain {
				must(t, err)
			} else {
				expect(t, err, hardware.Unreachable, broken)
			}
			if n := count(f.Requests(), broken); (n == 2) != c.isAgain {
				t.Errorf("%s was sent %d times", broken, n)
			}
		})
	}
}

func TestEveryFormOfETagIsSent(t *testing.T) {
	for _, etag := range []bmc.ETag{"", bmc.ETagOptional, bmc.ETagRequired, bmc.ETagWeak, bmc.ETagGzip, bmc.ETagBare, bmc.ETagStar, bmc.ETagRefused} {
		t.Run(string(etag), func(t *testing.T) {
			f := start(t, bmc.Personality{ETag: etag})
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootDisk))
			if got := f.changes(); len(got) > 10 {
				t.Errorf("two changes took %d requests", len(got))
			}
		})
	}
}

func TestErrorsHoldTheVendorsWordsInEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   hardware.Kind
		says   []string
	}{
		"an array":                           {400, extendedInfo("Ami.1.0.OperationSupportedInFutureStateURI", "Support is moved."), hardware.Unsupported, []string{"Support is moved.", "Ami.1.0.OperationSupportedInFutureStateURI"}},
		"one object":                         {400, `{"error":{"code":"c","message":"m","@Message.ExtendedInfo":{"MessageId":"Base.1.4.PropertyUnknown","Message":"Not known: %1.","MessageArgs":["Mode"]}}}`, hardware.Unsupported, []string{"Not known: Mode."}},
		"top level":                          {409, `{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.1.6.PSU501","Message":"Already powered on."}]}`, hardware.Busy, []string{"Already powered on."}},
		"iLO, without text":                  {400, `{"error":{"code":"iLO.0.10.ExtendedInfo","message":"See","@Message.ExtendedInfo":[{"MessageId":"iLO.2.14.InvalidOperationForSystemState","MessageArgs":["On", 7]}]}}`, hardware.Busy, []string{"InvalidOperationForSystemState [On, 7]"}},
		"code and message":                   {400, `{"error":{"code":"Base.1.0.GeneralError","message":"The power is stuck."}}`, hardware.Invalid, []string{"The power is stuck."}},
		"a mistyped member":                  {400, `{"error":{"code":7,"@Message.ExtendedInfo":[null,3,{"MessageId":"X.1.0.Jammed","Message":"The power is jammed.","Severity":2}]}}`, hardware.Invalid, []string{"The power is jammed."}},
		"an error as text":                   {400, `{"error":"no such action"}`, hardware.Invalid, []string{"no such action"}},
		"plain text":                         {400, `Missing the BootSourceOverrideTarget element`, hardware.Invalid, []string{"Missing the BootSourceOverrideTarget"}},
		"several":                            {503, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.SYS518","Message":"Not ready."},{"MessageId":"Base.1.12.PropertyUnknown","Message":"Unknown."}]}}`, hardware.Busy, []string{"Not ready.", "Unknown."}},
		"an unknown message with status 200": {200, extendedInfo("IDRAC.2.8.SYS411", "x") + ` {"@odata.id":"/redfish/v1"}`, "", nil},
		"a refusal with status 200":          {200, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.8.ActionNotSupported","Message":"Not this one."}]}}`, hardware.Unsupported, []string{"Not this one."}},
		"a success in an error":              {200, `{"error":{"code":"iLO.0.10.ExtendedInfo","@Message.ExtendedInfo":[{"MessageId":"Base.1.4.Success"}]}}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			f.answer(http.MethodPost, bmc.PathSystem, -1, c.status, c.body)
			err := f.bmc.SetPower(t.Context(), hardware.TurnOn)
			if c.kind == "" {
				must(t, err)
				return
			}
			expect(t, err, c.kind, append(c.says, "POST "+bmc.PathSystem+"/Actions/ComputerSystem.Reset", fmt.Sprint(c.status))...)
		})
	}
}

func TestEveryFailureNamesItsRequest(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.answer(http.MethodGet, bmc.PathSystem, -1, http.StatusOK, "[1")
	_, err := f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Invalid, "GET "+bmc.PathSystem)
	f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == bmc.PathSystem {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	_, err = f.bmc.PowerState(t.Context())
	expect(t, err, hardware.Unreachable, "GET "+bmc.PathSystem)
}

func TestAnActionInfoThatCannotBeReadIsNoLeaveToGuess(t *testing.T) {
	f := start(t, bmc.Personality{Power: bmc.PowerRules{ActionInfo: true, Resets: []bmc.Reset{"ForceOn", "ForceOff"}}})
	f.answer(http.MethodGet, bmc.PathSystem+"/ResetActionInfo", 1, http.StatusServiceUnavailable, "")
	expect(t, f.bmc.SetPower(t.Context(), hardware.TurnOn), hardware.Busy)
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
}

// TestACompressedAnswerIsRead has a web server that compresses, as those of some BMCs do. iLO refuses requests for answers without compression.
func TestACompressedAnswerIsRead(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		document, found := f.Document(strings.TrimRight(r.URL.Path, "/"))
		if r.Method != http.MethodGet || !found {
			return false
		}
		if accepted := r.Header.Get("Accept-Encoding"); accepted != "gzip" {
			t.Errorf("Accept-Encoding is %q, expected gzip", accepted)
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		_, _ = compressed.Write(document)
		_ = compressed.Close()
		return true
	})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
}

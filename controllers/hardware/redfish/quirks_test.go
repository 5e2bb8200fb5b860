package redfish_test

import (
	"context"
	"errors"
	"fmt"
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

func TestPowerIsChangedOnlyWhenItHasToBe(t *testing.T) {
	f := start(t, bmc.Personality{Power: bmc.PowerRules{PresentState: bmc.PSU501}})
	for _, step := range []struct {
		action hardware.PowerAction
		want   hardware.PowerState
		posts  int
	}{
		{hardware.TurnOff, hardware.PowerOff, 0},
		{hardware.TurnOn, hardware.PowerOn, 1},
		{hardware.TurnOn, hardware.PowerOn, 0},
		{hardware.Restart, hardware.PowerOn, 1},
		{hardware.ShutDown, hardware.PowerOff, 1},
		{hardware.ShutDown, hardware.PowerOff, 0},
		{hardware.Restart, hardware.PowerOn, 1},
		{hardware.TurnOff, hardware.PowerOff, 1},
	} {
		f.Requests()
		must(t, f.bmc.SetPower(t.Context(), step.action))
		if f.Power() != step.want {
			t.Errorf("after %s the power is %s, expected %s", step.action, f.Power(), step.want)
		}
		if n := count(f.Requests(), "POST "+bmc.PathSystem); n != step.posts {
			t.Errorf("%s sent %d resets, expected %d", step.action, n, step.posts)
		}
	}
}

func TestTheResetTypeIsOneThatTheBMCOffers(t *testing.T) {
	for _, info := range []bool{false, true} {
		for _, c := range []struct {
			reason  string
			offered []bmc.Reset
			from    hardware.PowerState
			action  hardware.PowerAction
			want    hardware.PowerState
			kind    hardware.Kind
		}{
			{"ForceOn stands in for On", []bmc.Reset{"ForceOn", "ForceOff"}, hardware.PowerOff, hardware.TurnOn, hardware.PowerOn, ""},
			{"a push turns on what is off", []bmc.Reset{"PushPowerButton"}, hardware.PowerOff, hardware.TurnOn, hardware.PowerOn, ""},
			{"a push turns off what is on", []bmc.Reset{"On", "PushPowerButton"}, hardware.PowerOn, hardware.TurnOff, hardware.PowerOff, ""},
			{"a graceful shutdown where nothing is forced", []bmc.Reset{"On", "GracefulShutdown"}, hardware.PowerOn, hardware.TurnOff, hardware.PowerOff, ""},
			{"a vendor's name for it", []bmc.Reset{"On", "GracefulShutdown", "PowerOff"}, hardware.PowerOn, hardware.TurnOff, hardware.PowerOff, ""},
			{"a power cycle turns nothing off", []bmc.Reset{"On", "PowerCycle", "ForceRestart", "Nmi"}, hardware.PowerOn, hardware.TurnOff, hardware.PowerOn, hardware.Unsupported},
			{"a power cycle turns on what is off", []bmc.Reset{"PowerCycle"}, hardware.PowerOff, hardware.TurnOn, hardware.PowerOn, ""},
			{"a power cycle restarts", []bmc.Reset{"PowerCycle"}, hardware.PowerOn, hardware.Restart, hardware.PowerOn, ""},
			{"a full power cycle restarts", []bmc.Reset{"FullPowerCycle"}, hardware.PowerOn, hardware.Restart, hardware.PowerOn, ""},
		} {
			t.Run(fmt.Sprintf("%s, info %v", c.reason, info), func(t *testing.T) {
				f := start(t, bmc.Personality{Power: bmc.PowerRules{Resets: c.offered, ActionInfo: info}})
				f.SetPower(c.from)
				err := f.bmc.SetPower(t.Context(), c.action)
				if hardware.KindOf(err) != c.kind {
					t.Errorf("got %v, expected kind %q", err, c.kind)
				}
				if f.Power() != c.want {
					t.Errorf("power is %s, expected %s", f.Power(), c.want)
				}
			})
		}
	}
}

func TestARefusalOfAStateThatIsReachedIsNoError(t *testing.T) {
	f := start(t, bmc.Personality{Power: bmc.PowerRules{PresentState: bmc.PSU501}})
	once := sync.Once{}
	f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, bmc.PathSystem) {
			once.Do(func() { f.SetPower(hardware.PowerOn) }) // somebody else was faster
		}
		return false
	})
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
}

func TestBootOnceCopesWithTheFieldsFirmware(t *testing.T) {
	for _, c := range []struct {
		name        string
		personality bmc.Personality
		faults      bmc.Faults
		source      hardware.BootSource
		target      string
		kind        hardware.Kind
		says        string
	}{
		{name: "a well-behaved BMC", source: hardware.BootNetwork, target: "Pxe"},
		{name: "disk", source: hardware.BootDisk, target: "Hdd"},
		{name: "media", source: hardware.BootMedia, target: "Cd"},
		{name: "media as USB", personality: bmc.Personality{Boot: bmc.BootRules{Targets: []string{"Pxe", "Usb"}}}, source: hardware.BootMedia, target: "Usb"},
		{name: "Supermicro without a mode", personality: bmc.Personality{Boot: bmc.BootRules{Mode: bmc.BootModeAbsent}}, source: hardware.BootNetwork, target: "Pxe"},
		{name: "a mode that cannot be written", personality: bmc.Personality{Boot: bmc.BootRules{Mode: bmc.BootModeReadOnly}}, source: hardware.BootNetwork, target: "Pxe"},
		{name: "an ETag", personality: bmc.Personality{ETag: bmc.ETagRequired}, source: hardware.BootNetwork, target: "Pxe"},
		{name: "a weak ETag compared strongly", personality: bmc.Personality{ETag: bmc.ETagWeak}, source: hardware.BootNetwork, target: "Pxe"},
		{name: "Dell's null target", faults: bmc.Faults{NullBootTarget: true}, source: hardware.BootNetwork, kind: hardware.Unsupported, says: "null"},
		{name: "an override that is not taken", faults: bmc.Faults{KeepsBootTarget: true}, source: hardware.BootNetwork, kind: hardware.Conflict, says: "None"},
		{name: "a target not offered", personality: bmc.Personality{Boot: bmc.BootRules{Targets: []string{"Hdd"}}}, source: hardware.BootNetwork, kind: hardware.Unsupported, says: "Hdd"},
		{name: "a source that does not exist", source: "Floppy", kind: hardware.Invalid, says: "Floppy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, c.personality)
			f.SetFaults(c.faults)
			err := f.bmc.SetBootOnce(t.Context(), c.source)
			if c.kind != "" {
				expect(t, err, c.kind, c.says)
				return
			}
			must(t, err)
			if enabled, target := f.Override(); enabled != "Once" || target != c.target {
				t.Errorf("override is %s %s, expected Once %s", enabled, target, c.target)
			}
			f.Requests()
			must(t, f.bmc.SetBootOnce(t.Context(), c.source))
			if n := count(f.Requests(), "PATCH"); n != 0 {
				t.Errorf("an override that is set already was sent %d times again", n)
			}
		})
	}
}

func TestAnOverrideThatIsSomethingElseIsAConflict(t *testing.T) {
	f := start(t, bmc.Personality{})
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootDisk))
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusNoContent) // accepted, and forgotten
			return true
		}
		return false
	})
	expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Conflict, "Hdd", "Pxe")
}

// withoutNetworkBoot are the personalities whose boot override for the network cannot be used.
var withoutNetworkBoot = map[string]string{"supermicro-as-1015cs": "Legacy", "uefi-http-only": "UefiHttp"}

func TestTheBMCsOfTheFieldAreDriven(t *testing.T) {
	personalities, err := bmc.Personalities()
	must(t, err)
	for name, personality := range personalities {
		t.Run(name, func(t *testing.T) {
			f := start(t, personality)
			f.SetPower(hardware.PowerOn)
			booted := hardware.BootSource("")
			f.OnPower(func(_ hardware.PowerState, source hardware.BootSource) { booted = source })
			err := untilLoaded(func() error { return f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork) })
			if words, ok := withoutNetworkBoot[name]; ok {
				expect(t, err, hardware.Unsupported, words, "Pxe")
				return
			}
			must(t, err)
			powerCycle(t, f)
			if booted != hardware.BootNetwork {
				t.Errorf("the server booted from %q, expected the network", booted)
			}
			must(t, untilLoaded(func() error { return f.bmc.ClearBoot(t.Context()) }))
			must(t, f.bmc.SetPower(t.Context(), hardware.Restart))
			if booted != hardware.BootDisk {
				t.Errorf("after the override was cleared the server booted from %q, expected the disk", booted)
			}
			if !personality.NoMedia {
				must(t, f.insert(t, "a"))
			}
			must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
			if f.Power() != hardware.PowerOff {
				t.Errorf("the power is %s", f.Power())
			}
		})
	}
}

// untilLoaded repeats the call while the BMC is busy, for the few tries that it takes to load what it loads when it is read.
func untilLoaded(call func() error) error {
	err := call()
	for range 3 {
		if hardware.KindOf(err) == hardware.Busy {
			err = call()
		}
	}
	return err
}

// powerCycle turns the server off and on. It repeats what the BMC refuses until the server has settled.
func powerCycle(t *testing.T, f *fixture) {
	t.Helper()
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
	err := f.bmc.SetPower(t.Context(), hardware.TurnOn)
	if hardware.KindOf(err) == hardware.Busy {
		err = f.bmc.SetPower(t.Context(), hardware.TurnOn)
	}
	must(t, err)
	power, err := f.bmc.PowerState(t.Context())
	must(t, err)
	if power != hardware.PowerOn || f.Power() != hardware.PowerOn {
		t.Errorf("the BMC reports %s, the power is %s", power, f.Power())
	}
}

func TestTheServerIsFoundAmongSeveralSystems(t *testing.T) {
	t.Run("beside an HGX baseboard", func(t *testing.T) {
		f := start(t, bmc.Personality{HGXBaseboard: true})
		must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
		if f.Power() != hardware.PowerOn {
			t.Error("the server is off, expected on")
		}
	})
	t.Run("beside members that do not exist", func(t *testing.T) {
		for _, ghost := range []string{"Self", "HGX_Baseboard_1"} {
			f := start(t, bmc.Personality{GhostSystem: ghost, HGXBaseboard: true})
			must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
			if f.Power() != hardware.PowerOn {
				t.Error("the server is off, expected on")
			}
		}
	})
	t.Run("two servers are ambiguous", func(t *testing.T) {
		f := start(t, bmc.Personality{SecondSystem: true, HGXBaseboard: true})
		_, err := f.bmc.PowerState(t.Context())
		expect(t, err, hardware.Invalid, bmc.PathSystem, "/redfish/v1/Systems/2", "HGX_Baseboard_0")
		e := f.Endpoint()
		e.SystemPath = bmc.PathSystem + "/"
		_, err = f.open(t, e).PowerState(t.Context())
		must(t, err)
	})
	t.Run("a path that is not there", func(t *testing.T) {
		f := start(t, bmc.Personality{})
		e := f.Endpoint()
		e.SystemPath = "/redfish/v1/Systems/9"
		_, err := f.open(t, e).PowerState(t.Context())
		expect(t, err, hardware.NotFound, "404")
	})
}

func TestAnswersBecomeTypedErrors(t *testing.T) {
	f := start(t, bmc.Personality{})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
	message := func(key string) string {
		return `{"error":{"code":"Base.1.0.GeneralError","message":"x","@Message.ExtendedInfo":[{"MessageId":"Base.1.0.` + key + `","Message":"BMC text"}]}}`
	}
	for _, c := range []struct {
		status int
		body   string
		after  string
		kind   hardware.Kind
	}{
		{400, "", "", hardware.Invalid},
		{400, message("PropertyNotWritable"), "", hardware.Unsupported},
		{400, message("ResourceInUse"), "", hardware.Busy},
		{403, "", "", hardware.Unauthorized},
		{404, "", "", hardware.NotFound},
		{405, "", "", hardware.Unsupported},
		{409, "", "", hardware.Conflict},
		{412, "", "", hardware.Conflict},
		{429, "", "", hardware.Busy},
		{500, "<html>oops</html>", "", hardware.Unreachable},
		{500, message("ServiceTemporarilyUnavailable"), "", hardware.Busy},
		{500, "", "120", hardware.Busy},
		{501, "", "", hardware.Unsupported},
		{503, "", "", hardware.Busy},
		{503, message("SessionLimitExceeded"), "30", hardware.SessionsExhausted},
		{504, "", "", hardware.Unreachable},
		{200, "", "", hardware.Invalid},
		{200, "null", "", hardware.Invalid},
		{200, `{"PowerState": 7}`, "", hardware.Invalid},
		{200, `{"PowerState": "On"`, "", hardware.Invalid},
		{206, `{}`, "", hardware.Invalid},
	} {
		t.Run(fmt.Sprint(c.status, c.body, c.after), func(t *testing.T) {
			f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != bmc.PathSystem {
					return false
				}
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
				return true
			})
			_, err := f.bmc.PowerState(t.Context())
			expect(t, err, c.kind, c.after)
			f.clock.Advance(time.Hour) // no request is sent before the time for which the BMC asked
			if strings.Contains(err.Error(), "html") {
				t.Errorf("error %q holds a page that is no Redfish", err)
			}
		})
	}
}

func TestABMCThatDoesNotAnswerIsUnreachable(t *testing.T) {
	f := start(t, bmc.Personality{})
	t.Run("nobody listens", func(t *testing.T) {
		e := f.Endpoint()
		e.Address = "https://127.0.0.1:1"
		_, err := f.open(t, e).PowerState(t.Context())
		expect(t, err, hardware.Unreachable, "127.0.0.1:1")
	})
	t.Run("the connection breaks", func(t *testing.T) {
		f.Intercept(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		_, err := f.bmc.PowerState(t.Context())
		expect(t, err, hardware.Unreachable)
	})
	t.Run("the answer breaks off", func(t *testing.T) {
		f.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "{")
			return true
		})
		_, err := f.bmc.PowerState(t.Context())
		expect(t, err, hardware.Unreachable)
	})
	t.Run("it hangs", func(t *testing.T) {
		f.Intercept(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		hasty := redfish.New(redfish.Options{Timeout: 50 * time.Millisecond})
		bmc, err := hasty.OpenBMC(t.Context(), f.Endpoint())
		must(t, err)
		_, err = bmc.PowerState(t.Context())
		expect(t, err, hardware.Unreachable, "no answer in time")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = f.bmc.PowerState(ctx)
		expect(t, err, hardware.Unreachable)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v is not context.Canceled", err)
		}
	})
}

func TestNothingLeavesTheBMCsHost(t *testing.T) {
	elsewhere := bmctest.Start(t, bmc.Personality{})
	host := strings.TrimPrefix(elsewhere.Endpoint().Address, "https://")
	for name, overlay := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"by a redirect": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != bmc.PathSystem {
				return false
			}
			http.Redirect(w, r, "https://"+host+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		},
		"by a link": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != bmc.PathSystem {
				return false
			}
			fmt.Fprintf(w, `{"PowerState":"Off","Boot":{},"Actions":{"#ComputerSystem.Reset":{"target":"@%s/steal"}}}`, host)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			f.Intercept(overlay)
			e := f.Endpoint()
			e.CABundle, e.InsecureSkipVerify = nil, true
			expect(t, f.open(t, e).SetPower(t.Context(), hardware.TurnOn), hardware.Invalid, "another host")
			if requests := elsewhere.Requests(); len(requests) != 0 {
				t.Errorf("another host was asked for %v", requests)
			}
		})
	}
}

func TestARedirectedResetIsNotTakenForASuccess(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, bmc.PathSystem) {
			return false
		}
		http.Redirect(w, r, "/redfish/v1", http.StatusMovedPermanently) // which a client follows with a GET
		return true
	})
	expect(t, f.bmc.SetPower(t.Context(), hardware.TurnOn), hardware.Invalid, "301")
}

func TestARedirectedReadIsFollowedOnTheSameHost(t *testing.T) {
	f := start(t, bmc.Personality{})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/redfish/v1/" {
			return false
		}
		http.Redirect(w, r, "/redfish/v1", http.StatusMovedPermanently)
		return true
	})
	_, err := f.bmc.PowerState(t.Context())
	must(t, err)
}

func TestOneRequestAtATimeReachesABMC(t *testing.T) {
	f := start(t, bmc.Personality{})
	second := redfishBMC(t, f)
	var wg sync.WaitGroup
	for i := range 12 {
		bmc := []hardware.BMC{f.bmc, second}[i%2]
		wg.Go(func() {
			if _, err := bmc.Inventory(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.MostConcurrent(); n != 1 {
		t.Errorf("up to %d requests were at the BMC at once, expected 1", n)
	}
	if n := f.Sessions(); n != 2 {
		t.Errorf("%d sessions, expected 2: one for each set of particulars", n)
	}
}

// redfishBMC opens the same BMC with other particulars, and so another session.
func redfishBMC(t *testing.T, f *fixture) hardware.BMC {
	e := f.Endpoint()
	e.CABundle, e.InsecureSkipVerify = nil, true
	return f.open(t, e)
}

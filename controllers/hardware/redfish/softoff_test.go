package redfish_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// watchResets returns the reset types that reach the BMC, since the last call. Those that refused holds are refused.
func (f *fixture) watchResets(t *testing.T, refused ...string) (sent func() []string) {
	var all []string
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "ComputerSystem.Reset") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		var request struct{ ResetType string }
		if err != nil || json.Unmarshal(body, &request) != nil {
			t.Errorf("a reset with the body %q (%v)", body, err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		all = append(all, request.ResetType)
		if slices.Contains(refused, request.ResetType) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, extendedInfo("Base.1.8.ActionParameterNotSupported", "No."))
			return true
		}
		return false
	})
	return func() []string {
		out := all
		all = nil
		return out
	}
}

// TestAServerThatCannotBeCutOffIsAskedToGoOff has an operating system that ignores the first requests.
func TestAServerThatCannotBeCutOffIsAskedToGoOff(t *testing.T) {
	f := start(t, bmc.Personality{Power: bmc.PowerRules{Resets: []bmc.Reset{"On", "GracefulShutdown", "GracefulRestart", "PushPowerButton", "Nmi"}}})
	sent := f.watchResets(t)
	for range 2 { // the second power-off begins anew
		must(t, f.bmc.SetPower(t.Context(), hardware.TurnOn))
		f.SetFaults(bmc.Faults{SilentPowerOff: 2})
		sent()
		for _, want := range []string{"GracefulShutdown", "PushPowerButton", "GracefulShutdown"} {
			for range 12 { // one call each five seconds
				must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
				f.clock.Advance(5 * time.Second)
			}
			if got := sent(); !slices.Equal(got, []string{want}) {
				t.Errorf("resets %q in a minute, expected one %s", got, want)
			}
		}
		state, err := f.bmc.PowerState(t.Context())
		must(t, err)
		if state != hardware.PowerOff {
			t.Errorf("the power is %s", state)
		}
	}
}

func TestAResetTypeThatIsRefusedIsFollowedByTheNext(t *testing.T) {
	f := start(t, bmc.Personality{Power: bmc.PowerRules{Resets: []bmc.Reset{"On", "GracefulShutdown", "PushPowerButton"}}})
	f.SetPower(hardware.PowerOn)
	sent := f.watchResets(t, "GracefulShutdown")
	must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
	if got := sent(); !slices.Equal(got, []string{"GracefulShutdown", "PushPowerButton"}) || f.Power() != hardware.PowerOff {
		t.Errorf("resets %q, the power is %s", got, f.Power())
	}
	f.SetPower(hardware.PowerOn)
	f.clock.Advance(time.Hour)
	f.watchResets(t, "GracefulShutdown", "PushPowerButton")
	expect(t, f.bmc.SetPower(t.Context(), hardware.TurnOff), hardware.Unsupported, "400")
}

func TestTheAllowedResetsAreReadInEverySpelling(t *testing.T) {
	for name, value := range map[string]any{
		"small letters": []any{"on", "forceoff"}, "one text": "ForceOff", "with null": []any{nil, "ForceOff"}, "with a number": []any{7, "ForceOff"}, "null": nil, "none": []any{},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Power: bmc.PowerRules{Resets: []bmc.Reset{"On", "ForceOff", "forceoff"}}})
			f.SetPower(hardware.PowerOn)
			f.withMembers(t, bmc.PathSystem, map[string]any{"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{
				"target": bmc.PathSystem + "/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": value,
			}}})
			must(t, f.bmc.SetPower(t.Context(), hardware.TurnOff))
		})
	}
}

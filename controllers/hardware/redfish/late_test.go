package redfish_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

func TestAnOverrideThatShowsLateIsNotBlamedOnTheMode(t *testing.T) {
	settings := &bmc.SettingsRules{Name: "SD", Members: bmc.SettingsOverride}
	for name, rules := range map[string]bmc.BootRules{
		"at the system":                   {},
		"with the mode Legacy before":     {Initial: bmc.Override{Mode: "Legacy"}},
		"another target in Legacy before": {Initial: bmc.Override{Enabled: "Continuous", Target: "Hdd", Mode: "Legacy"}},
		"the same target disabled before": {Initial: bmc.Override{Target: "Pxe", Mode: "Legacy"}},
		"at the settings object":          {Settings: settings, Initial: bmc.Override{Mode: "Legacy"}},
	} {
		for reads, calls := range map[int]int{1: 1, 4: 1, 9: 2, 14: 3} {
			t.Run(name, func(t *testing.T) {
				rules.ShowsAfter = reads
				f := start(t, bmc.Personality{Boot: rules})
				waited := f.patient(t)
				var err error
				for range calls {
					if err = f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork); err != nil {
						expect(t, err, hardware.Conflict, "as before")
						if strings.Contains(err.Error(), "setup") {
							t.Errorf("%d reads: %v", reads, err)
						}
					}
				}
				must(t, err)
				if n := count(f.changes(), "PATCH"); n != 1 {
					t.Errorf("%d reads: %d changes, expected 1: each may begin the wait again", reads, n)
				}
				if waited() > time.Duration(calls)*10*time.Second {
					t.Errorf("%d reads: waited %s in %d calls", reads, waited(), calls)
				}
				if source := f.TakeBoot(); source != hardware.BootNetwork {
					t.Errorf("the server boots from %q", source)
				}
			})
		}
	}
}

func TestAnOverrideThatIsNeverShownIsUnsupportedInTheEnd(t *testing.T) {
	f := start(t, bmc.Personality{Boot: bmc.BootRules{Initial: bmc.Override{Mode: "Legacy"}}})
	f.patient(t)
	f.SetFaults(bmc.Faults{KeepsBootTarget: true})
	began, calls := f.clock.Now(), 0
	err := f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork)
	for ; hardware.KindOf(err) == hardware.Conflict && calls < 100; calls++ {
		f.clock.Advance(5 * time.Second)
		err = f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork)
	}
	expect(t, err, hardware.Unsupported, "as before", "stays so", "setup")
	if spent := f.clock.Now().Sub(began); spent < 2*time.Minute || spent > 3*time.Minute {
		t.Errorf("after %s", spent)
	}
	if n := count(f.changes(), "PATCH"); n < 2 || n > 5 {
		t.Errorf("it was sent %d times", n)
	}
	f.SetFaults(bmc.Faults{})
	f.clock.Advance(time.Minute)
	must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
}

// TestAClearedOverrideIsBounded has a BMC that accepts each way to clear an override and keeps it.
func TestAClearedOverrideIsBounded(t *testing.T) {
	f := start(t, bmc.Personality{Boot: bmc.BootRules{Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}})
	waited := f.patient(t)
	f.SetFaults(bmc.Faults{KeepsBootTarget: true})
	expect(t, f.bmc.ClearBoot(t.Context()), hardware.Unsupported, "Pxe", "Continuous", "setup")
	if waited() > 10*time.Second {
		t.Errorf("waited %s", waited())
	}
	if requests := f.Requests(); len(requests) > 20 {
		t.Errorf("%d requests: %q", len(requests), requests)
	}
}

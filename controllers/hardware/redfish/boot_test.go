package redfish_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// personalityNamed returns a personality of the field.
func personalityNamed(t testing.TB, name string) bmc.Personality {
	t.Helper()
	personality, err := bmc.PersonalityNamed(name)
	must(t, err)
	return personality
}

// changes returns the requests that are no reads and no logins.
func (f *fixture) changes() []string {
	return slices.DeleteFunc(f.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") || strings.Contains(r, "/Sessions") })
}

func TestTheOverrideIsChangedWhereTheBMCTakesIt(t *testing.T) {
	const system, sd, settings = "PATCH " + bmc.PathSystem, "PATCH " + bmc.PathSystem + "/SD", "PATCH " + bmc.PathSystem + "/Settings"
	for name, want := range map[string][]string{
		"generic":      {system},
		"dgx-h100":     {sd},
		"ami-unlinked": {system, sd},
		// With the mode and without it, and then at the system, which needs "If-Match: *".
		"ami-system": {sd, sd, system, system},
		"dell-r750a": {system},
		"dell-r750b": {system},
		"dell-r470":  {settings},
		// With the mode and without it, and then at the system.
		"dell-r670":      {settings, settings, system},
		"supermicro-x10": {system},
		// With the mode and without it; the weak ETag is compared as a strong one.
		"hpe-bl460c":  {system + "/", system + "/", system + "/", system + "/"},
		"hpe-dl380a":  {system, system},
		"sushy-tools": {system},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, personalityNamed(t, name))
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
			if got := f.changes(); !slices.Equal(got, want) {
				t.Errorf("changes %q, expected %q", got, want)
			}
			if _, target := f.Override(); target != "Pxe" {
				t.Errorf("the override is %s, expected Pxe", target)
			}
		})
	}
}

func TestASettingsObjectThatIsNotThereLeavesTheOverrideAtTheSystem(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		personality := personalityNamed(t, "dell-r750b")
		f := start(t, personality)
		f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			isSettings := strings.HasSuffix(r.URL.Path, "/Settings")
			if isSettings {
				w.WriteHeader(status)
			}
			return isSettings
		})
		must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
	}
	f := start(t, personalityNamed(t, "dgx-h100"))
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		isSettings := strings.HasSuffix(r.URL.Path, "/SD")
		if isSettings {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return isSettings
	})
	expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Busy, "GET "+bmc.PathSystem+"/SD")
	if got := f.changes(); len(got) != 0 {
		t.Errorf("changes %q while the settings object is busy, expected none", got)
	}
}

func TestAnOverrideThatSomebodyLeftIsNotTakenForOurs(t *testing.T) {
	for name, initial := range map[string]bmc.Override{
		"for a BIOS boot": {Enabled: "Once", Target: "Pxe", Mode: "Legacy"},
		"continuous":      {Enabled: "Continuous", Target: "Pxe"},
		"disabled":        {Enabled: "Disabled", Target: "Pxe"},
		"without target":  {Enabled: "Once", Target: "None"},
		"the disk":        {Enabled: "Once", Target: "Hdd"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: bmc.BootRules{Initial: initial}})
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
			if enabled, target := f.Override(); enabled != "Once" || target != "Pxe" {
				t.Errorf("the override is %s %s, expected Once Pxe", enabled, target)
			}
			if source := f.TakeBoot(); source != hardware.BootNetwork {
				t.Errorf("the server boots from %q, expected the network", source)
			}
		})
	}
}

func TestAnOverrideInASettingsObjectIsSentAgain(t *testing.T) {
	f := start(t, personalityNamed(t, "dgx-h100"))
	for range 2 {
		must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
		if got := f.changes(); len(got) != 1 {
			t.Errorf("changes %q, expected one: the settings object may keep what the firmware has used up", got)
		}
	}
}

// TestABootThatIsNotLoadedYetIsReadAgain has a system that reports its override only after a while, and after a restart of the BMC.
func TestABootThatIsNotLoadedYetIsReadAgain(t *testing.T) {
	for name, boot := range map[string]any{"absent": nil, "empty": map[string]any{}, "a list only": map[string]any{"BootOrder": []any{}}} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{})
			raw, _ := f.Document(bmc.PathSystem)
			var system map[string]any
			must(t, json.Unmarshal(raw, &system))
			system["Boot"] = boot
			unloaded, err := json.Marshal(system)
			must(t, err)
			f.answer(http.MethodGet, bmc.PathSystem, 1, http.StatusOK, string(unloaded))
			expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Busy, bmc.PathSystem, "restart the BMC")
			must(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork))
		})
	}
}

func TestABMCThatKeepsTheLegacyModeIsUnsupported(t *testing.T) {
	f := start(t, bmc.Personality{Boot: bmc.BootRules{Mode: bmc.BootModeReadOnly, Initial: bmc.Override{Mode: "Legacy"}}})
	expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Unsupported, "Legacy", "UEFI", "setup")
}

func TestATargetIsChosenFromThoseOffered(t *testing.T) {
	for _, c := range []struct {
		offered []string
		source  hardware.BootSource
		want    string
	}{
		{[]string{"None", "Pxe", "Cd", "Usb", "UsbCd"}, hardware.BootMedia, "UsbCd"},
		{[]string{"None", "Pxe", "CD/DVD"}, hardware.BootMedia, "CD/DVD"},
		{[]string{"None", "Pxe", "Usb"}, hardware.BootMedia, "Usb"},
		{[]string{"None", "pxe", "hdd"}, hardware.BootNetwork, "pxe"},
		{[]string{"None", "UefiHttp", "Hdd", "UefiTarget"}, hardware.BootDisk, "Hdd"},
	} {
		f := start(t, bmc.Personality{Boot: bmc.BootRules{Targets: c.offered}})
		must(t, f.bmc.SetBootOnce(t.Context(), c.source))
		if _, target := f.Override(); target != c.want {
			t.Errorf("%s of %v: the target is %s, expected %s", c.source, c.offered, target, c.want)
		}
	}
	f := start(t, personalityNamed(t, "uefi-http-only"))
	expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Unsupported, "[None UefiHttp Hdd UefiTarget]", "[Pxe]", "UefiHttp is offered")
}

func TestAnOverrideIsContinuousWhereThatIsOffered(t *testing.T) {
	once, always := hardware.BMC.SetBootOnce, hardware.BMC.SetBootAlways
	for name, c := range map[string]struct {
		offered []string
		call    func(hardware.BMC, *fixture) error
		want    string
	}{
		"always":                {nil, func(b hardware.BMC, f *fixture) error { return always(b, t.Context(), hardware.BootNetwork) }, "Continuous"},
		"always, only once":     {[]string{"Disabled", "Once"}, func(b hardware.BMC, f *fixture) error { return always(b, t.Context(), hardware.BootNetwork) }, "Once"},
		"once":                  {[]string{"Once", "Continuous", "Disabled"}, func(b hardware.BMC, f *fixture) error { return once(b, t.Context(), hardware.BootNetwork) }, "Once"},
		"once, only continuous": {[]string{"Disabled", "Continuous"}, func(b hardware.BMC, f *fixture) error { return once(b, t.Context(), hardware.BootNetwork) }, "Continuous"},
		"always, refused though not listed": {nil, func(b hardware.BMC, f *fixture) error {
			f.refuseBodies("Continuous")
			return always(b, t.Context(), hardware.BootNetwork)
		}, "Once"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: bmc.BootRules{Enabled: c.offered}})
			must(t, c.call(f.bmc, f))
			if enabled, _ := f.Override(); enabled != c.want {
				t.Errorf("the override is %s, expected %s", enabled, c.want)
			}
		})
	}
}

func TestAnOverrideIsClearedOnlyWhereThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		rules   bmc.BootRules
		changes bool
		want    hardware.BootSource
	}{
		"none":                         {bmc.BootRules{}, false, ""},
		"the disk, for ever":           {bmc.BootRules{Initial: bmc.Override{Enabled: "Continuous", Target: "Hdd"}}, true, ""},
		"the disk, once":               {bmc.BootRules{Initial: bmc.Override{Enabled: "Once", Target: "Hdd"}}, true, ""},
		"a shell":                      {bmc.BootRules{Targets: []string{"None", "Pxe", "UefiShell"}, Initial: bmc.Override{Enabled: "Continuous", Target: "UefiShell"}}, true, ""},
		"the disk, not disabled":       {bmc.BootRules{AlwaysContinuous: true, Targets: []string{"Pxe", "Hdd"}}, true, hardware.BootDisk},
		"a BMC that lists no Disabled": {bmc.BootRules{Enabled: []string{"Once", "Continuous"}, Targets: []string{"None", "Pxe"}, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"shown late":                   {bmc.BootRules{ShowsAfter: 3, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"no target":                    {bmc.BootRules{Mode: bmc.BootModeAbsent, Initial: bmc.Override{Enabled: "Once"}}, false, ""},
		"the network, for ever":        {bmc.BootRules{Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"the network, once":            {bmc.BootRules{Initial: bmc.Override{Enabled: "Once", Target: "Pxe"}}, true, ""},
		"a BMC that knows no None":     {bmc.BootRules{Targets: []string{"Pxe", "Hdd"}, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"a BMC that disables none":     {bmc.BootRules{AlwaysContinuous: true, Targets: []string{"Pxe", "Hdd"}, Initial: bmc.Override{Target: "Pxe"}}, true, hardware.BootDisk},
		"at the settings object":       {bmc.BootRules{Settings: &bmc.SettingsRules{Name: "SD", Members: bmc.SettingsOverride}, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"listed in settings only":      {bmc.BootRules{Settings: &bmc.SettingsRules{Name: "SD", Members: bmc.SettingsTargets, RefusesOverride: true}, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
		"a mode that would fall back":  {bmc.BootRules{Mode: bmc.BootModeFallsBack, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, bmc.Personality{Boot: c.rules})
			must(t, f.bmc.ClearBoot(t.Context()))
			if got := f.changes(); (len(got) > 0) != c.changes {
				t.Errorf("changes %q", got)
			}
			if source := f.TakeBoot(); source != c.want {
				t.Errorf("the server boots from %q, expected %q", source, c.want)
			}
			f.Requests()
			must(t, f.bmc.ClearBoot(t.Context()))
			if got := f.changes(); len(got) != 0 {
				t.Errorf("cleared again with %q", got)
			}
		})
	}
	f := start(t, bmc.Personality{Boot: bmc.BootRules{AlwaysContinuous: true, Targets: []string{"Pxe", "Cd"}, Initial: bmc.Override{Target: "Pxe"}}})
	expect(t, f.bmc.ClearBoot(t.Context()), hardware.Unsupported, "Pxe", "Continuous", "setup")
}

// TestARefusalThatAsksToWaitIsNotSentInAnotherForm has an iLO whose server is in its self-test.
func TestARefusalThatAsksToWaitIsNotSentInAnotherForm(t *testing.T) {
	f := start(t, personalityNamed(t, "hpe-dl380a"))
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"code":"iLO.0.10.ExtendedInfo","@Message.ExtendedInfo":[{"MessageId":"iLO.2.37.UnableToModifyDuringSystemPOST"}]}}`))
		return true
	})
	expect(t, f.bmc.SetBootOnce(t.Context(), hardware.BootNetwork), hardware.Busy, "UnableToModifyDuringSystemPOST", "PATCH "+bmc.PathSystem)
	if got := f.changes(); len(got) != 1 {
		t.Errorf("changes %q, expected one", got)
	}
}

// refuseBodies answers a PATCH whose body holds the text with 400.
func (f *fixture) refuseBodies(text string) {
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), text) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		return true
	})
}

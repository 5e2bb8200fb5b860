package presentation

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// warned are the rules of what a plan warns of.
func warned(t *testing.T, r spec.Request) (rules []string) {
	t.Helper()
	plan, err := Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan.Warnings {
		rules = append(rules, w.Rule)
	}
	return rules
}

func TestNamesThatOnlySomeDriversGiveProfilesAreToldOf(t *testing.T) {
	named := func(entries ...v1alpha1.MIGLayout) spec.Request {
		r := byMIG("GB200-186GB", "mixed", 4, entries...)
		r.Image.Software.GPUDriver.Version = "580.126.09"
		return r
	}
	for _, tell := range []struct {
		r    spec.Request
		want bool
	}{
		{named(entry(profiles{"1g.23gb": 7})), true},
		{named(entry(profiles{"1g.24gb": 3, "4g.95gb": 1})), true},
		{named(entry(profiles{"2g.47gb": 3})), false}, // every driver calls it that
		{byMIG("H100-SXM5-80GB", "mixed", 8, entry(profiles{"1g.10gb": 7})), false},
	} {
		if got := slices.Contains(warned(t, tell.r), "unverified/mig-names"); got != tell.want {
			t.Errorf("%+v: told of: %v", tell.r.GPU.Presentation.MIG.Layout, got)
		}
	}
	for _, mix := range []spec.Request{
		named(entry(profiles{"1g.24gb": 3, "4g.93gb": 1})),
		named(entry(profiles{"1g.23gb": 1, "1g.24gb": 1})),
		named(entry(profiles{"1g.23gb": 7}, 0), entry(profiles{"1g.24gb": 7}, 1)),
	} {
		var refusal *spec.Refusal
		if err := resolveError(mix); !errors.As(err, &refusal) || refusal.Rule != "mig/profile-names" || !strings.Contains(refusal.Message, "1g.24gb") {
			t.Errorf("names of two drivers: %+v: %v", mix.GPU.Presentation.MIG.Layout, err)
		}
	}
}

func TestAMIGModeThatNothingTurnsOffIsToldOf(t *testing.T) {
	for _, m := range catalogue.Models() {
		if m.Vendor != v1alpha1.VendorNVIDIA || m.Geometry == nil {
			continue
		}
		byClaims := requestFor(m)
		claims(v1alpha1.DRASpec{})(&byClaims)
		byOperator(&byClaims, "595.91.07")
		isForVMs := machines(m.Name, 8, func(s *v1alpha1.PassthroughSpec) { s.ResourceName = "nvidia.com/GPU" })
		if m.FormFactor == catalogue.Superchip {
			byClaims.GPU.Count, isForVMs.GPU.Count = 4, 4
		}
		for what, r := range map[string]spec.Request{"DRA": byClaims, "virtual machines": isForVMs} {
			if got := slices.Contains(warned(t, r), "unset/mig-mode"); got != m.HasPersistentMIGMode() {
				t.Errorf("%s, %s: told of: %v, and the mode persists: %v", m.Name, what, got, m.HasPersistentMIGMode())
			}
		}
	}
	if got := warned(t, requestFor(find(t, "A100-SXM4-80GB"))); slices.Contains(got, "unset/mig-mode") {
		t.Errorf("the script turns it off: %v", got)
	}
}

func TestASubnetManagerThatNoPackageBringsIsToldOf(t *testing.T) {
	for name, want := range map[string]bool{"B200-SXM-180GB": true, "H100-SXM5-80GB": false, "GB200-186GB": false} {
		r := model(name, 8, "580.126.09")
		byPackages(&r)
		if got := slices.Contains(warned(t, r), "unverified/nvlsm"); got != want {
			t.Errorf("%s: told of: %v, want %v", name, got, want)
		}
		r.GPU.Driver.Packages = append(r.GPU.Driver.Packages, "nvlsm=2025.03.1-1")
		if slices.Contains(warned(t, r), "unverified/nvlsm") {
			t.Errorf("%s: a package brings it", name)
		}
	}
}

func find(t *testing.T, name string) catalogue.Model {
	t.Helper()
	m, err := catalogue.Lookup(v1alpha1.VendorNVIDIA, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

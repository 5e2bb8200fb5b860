package arch

import (
	"slices"
	"strings"
	"testing"
)

// rule says which packages of this module the packages at and below dir may import. The first rule that fits a
// package holds. An entry allows the package of that path and those below it.
type rule struct {
	dir   string
	allow []string
}

// law is the import law. `<` of the design reads: what stands in allow, below or at dir.
var law = []rule{
	{"api/input", nil},
	{"api", []string{"api/input"}},
	{"presentation", []string{"api", "presentation"}},
	{"cloudinit", []string{"api", "presentation", "cloudinit"}},
	{"imagebuilder", []string{"api", "presentation", "imagebuilder"}},
	{"controllers/hardware", []string{"api/input", "controllers/hardware"}},
	// What user data says is a part of what makes a NodeType possible, and so is what its NodeProvider can do.
	{"controllers/plan/feasibility", []string{"api", "presentation", "cloudinit", "controllers/plan/providerkind"}},
	{"controllers/plan/event", nil},
	{"controllers/plan", []string{"api", "presentation", "controllers/plan", "controllers/hardware"}},
	{"controllers/step", []string{"api", "controllers/plan/event"}},
	{"controllers/readyourwrites", nil},
	{"controllers/grants", []string{"controllers/plan/breaker", "controllers/serverclock"}},
	{"controllers/serverclock", []string{"controllers/plan/watched"}},
	{"controllers/tenantaccess", []string{"api", "controllers/step"}},
	{"controllers/hostindex", []string{"api", "controllers/plan/sameserver"}},
	{"controllers", []string{"api", "presentation", "cloudinit", "controllers/plan", "controllers/grants", "controllers/hardware", "controllers/hostindex", "controllers/readyourwrites", "controllers/serverclock", "controllers/step", "controllers/tenantaccess"}},
	{"cmd/ingot-agent", []string{"api/input", "controllers/hardware"}},
	{"cmd/ingot-manager", []string{"api", "presentation", "cloudinit", "imagebuilder/iso", "imagebuilder/uki", "controllers", "cmd/ingot-manager", "config"}},
	{"cmd/ingot-demo", []string{"api", "config", "controllers/plan/leaderlease", "controllers/step", "imagebuilder", "cmd/ingot-demo", "cmd/ingot/cli", "test/environment", "test/invariants", "test/ironic", "test/loopback", "test/metal3rack", "test/rack"}},
	{"cmd/ingot", []string{"api", "presentation", "cloudinit", "imagebuilder", "controllers", "config", "cmd/ingot"}},
	{"config", nil},
	{"test/bmc", []string{"controllers/hardware", "test/bmc"}},
	{"test/conformance", []string{"controllers/hardware", "test/require"}},
	{"test/rack", []string{"api", "controllers/hardware", "test/bmc", "test/rack"}},
	{"test/cluster", nil},
	{"test/controlplane", []string{"test/controlplane"}},
	{"test", []string{"api", "presentation", "cloudinit", "imagebuilder", "controllers", "config", "cmd", "test"}},
}

// adapters are the packages of controllers/hardware that speak to the outside; the port itself and the controllers see none of them.
var adapters = []string{
	"controllers/hardware/redfish", "controllers/hardware/direct", "controllers/hardware/ironic",
	"controllers/hardware/netboot", "controllers/hardware/agent",
}

func TestPackagesImportOnlyWhatTheLawAllows(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		r := ruleFor(dir)
		if r == nil {
			t.Errorf("%s: no rule of the import law covers this package: put it where the layout has a place for it", dir)
			continue
		}
		for _, f := range p.product() {
			for _, imp := range f.imports {
				target, ours := strings.CutPrefix(imp, module+"/")
				if !ours || under(target, dir) {
					continue // a package's own parts are its own business
				}
				if !slices.ContainsFunc(r.allow, func(a string) bool { return under(target, a) }) {
					t.Errorf("%s imports %s: packages in %s may import only %v", f.path, target, r.dir, r.allow)
				}
			}
		}
	}
}

// everyController is the rule of the package controllers itself, the one list of all controllers.
var everyController = rule{"controllers", []string{"controllers", "presentation"}}

func ruleFor(dir string) *rule {
	if dir == everyController.dir {
		return &everyController
	}
	for i := range law {
		if under(dir, law[i].dir) {
			return &law[i]
		}
	}
	return nil
}

// mayImportAdapters are the product packages that wire adapters, or are adapters, beside cmd.
var mayImportAdapters = map[string][]string{
	"controllers/hardware/direct": {"controllers/hardware/netboot"},
	// Its transport is a package of its own.
	"controllers/hardware/redfish": {"controllers/hardware/redfish"},
	"controllers/hardware/netboot": {"controllers/hardware/agent", "controllers/hardware/netboot"},
	"controllers/hardware/agent":   {"controllers/hardware/agent"},
	// It keeps the boot service's sessions in HostRecords, so it implements netboot's Store.
	"controllers/host": {"controllers/hardware/netboot"},
	// The simulated server runs the real agent.
	"test/rack": {"controllers/hardware/agent"},
}

func TestOnlyCommandsWireAdapters(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if under(dir, "cmd") || under(dir, "test") && !under(dir, "test/rack") {
			continue
		}
		for _, f := range p.product() {
			for _, imp := range f.imports {
				target := strings.TrimPrefix(imp, module+"/")
				if slices.ContainsFunc(adapters, func(a string) bool { return under(target, a) }) && !adapterAllowed(dir, target) {
					t.Errorf("%s imports the adapter %s: only cmd wires adapters to controllers; use the port controllers/hardware", f.path, target)
				}
			}
		}
	}
}

func adapterAllowed(dir, target string) bool {
	if under(target, dir) {
		return true
	}
	for from, to := range mayImportAdapters {
		if under(dir, from) && slices.ContainsFunc(to, func(a string) bool { return under(target, a) }) {
			return true
		}
	}
	return false
}

// only maps an outside module to the places that may import it, and why.
var only = map[string]struct {
	dirs []string
	why  string
}{
	"github.com/stmcginnis/gofish":       {[]string{"controllers/hardware/redfish"}, "everything else sees the BMC port"},
	"github.com/gophercloud/gophercloud": {[]string{"controllers/hardware/ironic", "test/bench/ironicloop"}, "everything else sees the Installer port, but for the loop that it is measured against"},
	"github.com/coreos/butane":           {[]string{"cloudinit"}, "the project is archived into ignition; one package must follow it"},
	"github.com/coreos/ignition":         {[]string{"cloudinit", "test/rack/machineos"}, "user data is rendered in one place, and read in one by a simulated server"},
}

// pure are the packages that decide and render: no client, no clock, no randomness, no environment.
var pure = []string{"presentation", "cloudinit", "imagebuilder/recipe", "controllers/plan"}

// impure are imports that a pure package may not have.
var impure = []string{
	"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "net/http", "os/exec", "math/rand", "crypto/rand", "os", "net",
}

func TestOutsideModulesAreImportedInTheirOnePlace(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		for _, f := range p.product() {
			for _, imp := range f.imports {
				for mod, place := range only {
					if under(imp, mod) && !slices.ContainsFunc(place.dirs, func(p string) bool { return under(dir, p) }) {
						t.Errorf("%s imports %s: only %s may: %s", f.path, imp, strings.Join(place.dirs, ", "), place.why)
					}
				}
				if isPure(dir) && slices.ContainsFunc(impure, func(b string) bool {
					return imp == b || strings.Contains(b, ".") && under(imp, b) || b == "math/rand" && under(imp, b)
				}) {
					t.Errorf("%s imports %s: %s is pure; take the value as an argument", f.path, imp, dir)
				}
			}
		}
	}
}

func isPure(dir string) bool {
	return slices.ContainsFunc(pure, func(p string) bool { return under(dir, p) })
}

func TestTheHardwarePortUsesTheStandardLibraryOnly(t *testing.T) {
	tr := loadTree(t)
	for _, f := range tr.pkgs["controllers/hardware"].product() {
		for _, imp := range f.imports {
			if strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
				t.Errorf("%s imports %s: only standard-library values cross the port", f.path, imp)
			}
		}
	}
}

func TestTheBoundaryOfHardwareKnowsNoKubernetes(t *testing.T) {
	tr := loadTree(t)
	for dir, p := range tr.pkgs {
		if !under(dir, "controllers/hardware") {
			continue
		}
		for _, f := range p.product() {
			for _, imp := range f.imports {
				if strings.HasPrefix(imp, "k8s.io/") || strings.HasPrefix(imp, "sigs.k8s.io/") {
					t.Errorf("%s imports %s: adapters speak to metal, not to Kubernetes", f.path, imp)
				}
			}
		}
	}
}

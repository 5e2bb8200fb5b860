package mig_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

// migConfig is mig-parted's configuration file, version v1 (its api/spec/v1), as strict as mig-parted reads it.
type migConfig struct {
	Version    string `json:"version"`
	MIGConfigs map[string][]struct {
		DeviceFilter []string       `json:"device-filter,omitempty"`
		Devices      []int          `json:"devices"`
		MIGEnabled   bool           `json:"mig-enabled"`
		MIGDevices   map[string]int `json:"mig-devices"`
	} `json:"mig-configs"`
}

func TestTheConfigurationNamesEveryGPUOnceWithItsModeAndInstances(t *testing.T) {
	for name, want := range map[string]map[int]string{
		"h100-mig-mixed": {0: "map[1g.10gb:7]", 1: "map[1g.10gb:7]", 2: "map[1g.10gb:7]", 3: "map[1g.10gb:7]", 4: "map[3g.40gb:2]", 5: "map[3g.40gb:2]", 6: "map[3g.40gb:2]", 7: "map[3g.40gb:2]"},
		"a100-mig-part":  {0: "off", 1: "map[1g.5gb:2 2g.10gb:1 3g.20gb:1]", 2: "off", 3: "map[1g.5gb:2 2g.10gb:1 3g.20gb:1]"},
		"h200-mig-dra":   {0: "map[1g.18gb:3 1g.18gb+me:1 3g.71gb:1]", 1: "map[1g.18gb:3 1g.18gb+me:1 3g.71gb:1]", 2: "map[1g.35gb:4]", 3: "off", 4: "off", 5: "off", 6: "off", 7: "off"},
	} {
		plan, err := presentation.Resolve(requests.All()[name])
		if err != nil {
			t.Fatal(err)
		}
		var config migConfig
		if err := yaml.UnmarshalStrict([]byte(plan.Files[1].Content), &config); err != nil || config.Version != "v1" || len(config.MIGConfigs) != 1 {
			t.Fatalf("%s: %v: %s", name, err, plan.Files[1].Content)
		}
		got := map[int]string{}
		for _, e := range config.MIGConfigs["ingot"] {
			for _, gpu := range e.Devices {
				if got[gpu] != "" || e.MIGEnabled != (len(e.MIGDevices) > 0) {
					t.Errorf("%s: GPU %d is there twice, or its mode and instances disagree: %+v", name, gpu, e)
				}
				got[gpu] = "off"
				if e.MIGEnabled {
					got[gpu] = fmt.Sprint(e.MIGDevices)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheDevicePluginsResourcesAreExact(t *testing.T) {
	for sentence, tt := range map[string]struct {
		request spec.Request
		want    string
		labels  string
	}{
		"none leaves every GPU whole": {requests.All()["h100-mig-none"], "nvidia.com/gpu=8", ""},
		"mixed has a resource for each profile, and none for whole GPUs where there are none": {requests.All()["h100-mig-mixed"],
			"nvidia.com/mig-1g.10gb=28 nvidia.com/mig-3g.40gb=8", "nvidia.com/mig.strategy=mixed nvidia.com/mig-3g.40gb.count=8 nvidia.com/mig-1g.10gb.count=28"},
		"mixed counts GPUs without a layout as whole": {requests.All()["a100-mig-part"],
			"nvidia.com/gpu=2 nvidia.com/mig-1g.5gb=4 nvidia.com/mig-2g.10gb=2 nvidia.com/mig-3g.20gb=2",
			"nvidia.com/mig.strategy=mixed nvidia.com/mig-3g.20gb.count=2 nvidia.com/mig-2g.10gb.count=2 nvidia.com/mig-1g.5gb.count=4"},
		"single calls instances GPUs": {requests.All()["a100-mig-single"], "nvidia.com/gpu=6", "nvidia.com/mig.strategy=single nvidia.com/gpu.count=6"},
		"single with more of the profile on some GPUs": {requests.MIG("H100-SXM5-80GB", "single", 2, requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, 0), requests.MIGEntry(requests.Profiles{"1g.10gb": 3}, 1)),
			"nvidia.com/gpu=10", "nvidia.com/mig.strategy=single nvidia.com/gpu.count=10"},
		"a plus sign becomes a dot": {requests.MIG("H100-SXM5-80GB", "mixed", 1, requests.MIGEntry(requests.Profiles{"1g.10gb": 6, "1g.10gb+me": 1})),
			"nvidia.com/mig-1g.10gb=6 nvidia.com/mig-1g.10gb.me=1", "nvidia.com/mig.strategy=mixed nvidia.com/mig-1g.10gb.count=6 nvidia.com/mig-1g.10gb.me.count=1"},
		"a compute instance of the whole GPU instance is that instance": {requests.MIG("H100-SXM5-80GB", "mixed", 1, requests.MIGEntry(requests.Profiles{"1c.1g.10gb": 3, "1g.10gb": 4})),
			"nvidia.com/mig-1g.10gb=7", "nvidia.com/mig.strategy=mixed nvidia.com/mig-1g.10gb.count=7"},
	} {
		t.Run(sentence, func(t *testing.T) {
			tt.request.Resources = nil
			plan, err := presentation.Resolve(tt.request)
			if err != nil {
				t.Fatal(err)
			}
			var got, labels []string
			for _, r := range plan.Expectation.Resources {
				got = append(got, fmt.Sprintf("%s=%s", r.Name, r.Quantity.String()))
			}
			for _, l := range plan.Expectation.Labels[1:] {
				labels = append(labels, l.Key+"="+l.Value)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.labels, strings.Join(labels, " ")); diff != "" {
				t.Error(diff)
			}
			if e := plan.Expectation; !e.IsForeign("nvidia.com/mig-7g.80gb") || !slices.Contains(e.AbsentDrivers, "gpu.nvidia.com") || plan.NodeLabels["nvidia.com/gpu.deploy.mig-manager"] != "false" {
				t.Errorf("another profile, or the DRA driver, is not foreign, or the MIG manager is not kept away: %+v", plan)
			}
		})
	}
}

func TestEveryProfileOfEveryModelResolves(t *testing.T) {
	for _, m := range catalogue.Models() {
		if m.Geometry == nil {
			continue
		}
		for _, p := range m.Geometry.Profiles {
			for _, name := range m.ProfileNames(p) {
				r := requests.ForModel(m)
				r.Image.Software.MIGParted = "0.15.0"
				r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "single", Layout: []v1alpha1.MIGLayout{requests.MIGEntry(requests.Profiles{name: int32(p.Max)})}}}
				if _, err := presentation.Resolve(r); err != nil {
					t.Errorf("%d of %s on %s: %v", p.Max, name, m.Name, err)
				}
			}
		}
	}
}

func TestAnImpossiblePartitionIsRefusedWithItsRuleAndWhatFits(t *testing.T) {
	sxm := func(strategy string, entries ...v1alpha1.MIGLayout) spec.Request {
		return requests.MIG("H100-SXM5-80GB", strategy, 8, entries...)
	}
	with := func(r spec.Request, change func(*spec.Request)) spec.Request { change(&r); return r }
	full := requests.MIGEntry(requests.Profiles{"1g.10gb": 7})
	for sentence, tt := range map[string]struct {
		request      spec.Request
		reason, rule string
		says         string
	}{
		"too much memory": {sxm("mixed", requests.MIGEntry(requests.Profiles{"3g.40gb": 2, "1g.10gb": 1})), "PresentationInvalid", "mig/memory-slices",
			"mig.layout[0].profiles: {3g.40gb: 2, 1g.10gb: 1} does not fit on one H100-SXM5-80GB: the instances need 9 memory slices and the GPU has 8. Of these fits {3g.40gb: 2}; near it are {3g.40gb: 1, 2g.20gb: 1, 1g.10gb: 2} and {"},
		"too much compute":                        {sxm("mixed", requests.MIGEntry(requests.Profiles{"4g.40gb": 1, "2g.20gb": 2})), "PresentationInvalid", "mig/compute-slices", "8 compute slices and the GPU has 7. Of these fits {4g.40gb: 1, 2g.20gb: 1}"},
		"more than there can be":                  {sxm("mixed", requests.MIGEntry(requests.Profiles{"4g.40gb": 2})), "PresentationInvalid", "mig/instances", "fits {4g.40gb: 1}"},
		"the second entry":                        {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, 0), requests.MIGEntry(requests.Profiles{"7g.80gb": 1, "1g.10gb": 1}, 1)), "PresentationInvalid", "mig/compute-slices", "mig.layout[1]"},
		"another model's profile":                 {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.5gb": 7})), "PresentationInvalid", "mig/profile", "it has 7g.80gb, 4g.40gb, 3g.40gb, 2g.20gb, 1g.20gb, 1g.10gb, 1g.10gb+me"},
		"no profile at all":                       {sxm("mixed", requests.MIGEntry(requests.Profiles{"mig-1g.10gb": 7})), "PresentationInvalid", "mig/profile-name", "such as 1g.10gb"},
		"a part of an instance":                   {sxm("mixed", requests.MIGEntry(requests.Profiles{"1c.2g.20gb": 2})), "PresentationInvalid", "mig/compute-instance", "ask for 2g.20gb"},
		"none of a profile":                       {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.10gb": 0})), "PresentationInvalid", "mig/profile-count", "is 0"},
		"less than none":                          {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.10gb": -1})), "PresentationInvalid", "mig/profile-count", "is -1"},
		"an entry without profiles":               {sxm("mixed", requests.MIGEntry(nil)), "PresentationInvalid", "mig/layout", "empty"},
		"no layout":                               {sxm("mixed"), "PresentationInvalid", "mig/layout", "no profiles"},
		"a GPU that is not there":                 {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, 8)), "PresentationInvalid", "mig/gpu-index", "0 to 7"},
		"a GPU before the first":                  {sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, -1)), "PresentationInvalid", "mig/gpu-index", "GPU -1"},
		"a GPU in two entries":                    {sxm("mixed", full, requests.MIGEntry(requests.Profiles{"3g.40gb": 2}, 3)), "PresentationInvalid", "mig/gpu-twice", "GPU 3"},
		"a GPU twice in an entry":                 {sxm("mixed", requests.MIGEntry(requests.Profiles{"3g.40gb": 2}, 3, 3)), "PresentationInvalid", "mig/gpu-twice", "GPU 3"},
		"single with two profiles":                {sxm("single", requests.MIGEntry(requests.Profiles{"3g.40gb": 1, "1g.10gb": 2})), "PresentationInvalid", "mig/single", "3g.40gb and 1g.10gb"},
		"single on some GPUs":                     {sxm("single", requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, 0, 1)), "PresentationInvalid", "mig/single", "GPU 2 has no layout"},
		"single with media engines beside others": {sxm("single", requests.MIGEntry(requests.Profiles{"1g.10gb": 6, "1g.10gb+me": 1})), "PresentationInvalid", "mig/single", "1g.10gb+me"},
		"none with a layout":                      {sxm("none", full), "PresentationInvalid", "mig/strategy", "remove the layout"},
		"an unknown strategy":                     {sxm("triple", full), "PresentationInvalid", "mig/strategy", "triple"},
		"no strategy and layout at all":           {with(sxm("none"), func(r *spec.Request) { r.GPU.Presentation.MIG = nil }), "PresentationInvalid", "mig/missing", "presentation.mig"},
		"no container toolkit in the image":       {with(sxm("mixed", full), func(r *spec.Request) { r.Image.Software.ContainerToolkit = "" }), "PresentationInvalid", "image/container-toolkit", "toolkit"},
		"a driver older than the profile": {with(requests.MIG("A100-PCIe-80GB", "mixed", 1, requests.MIGEntry(requests.Profiles{"1g.20gb": 4})), func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "515.105.01" }),
			"DriverTooOld", "mig/profile-driver", "1g.20gb needs driver 525"},
		"a driver older than the combination": {with(requests.MIG("A100-PCIe-80GB", "mixed", 1, requests.MIGEntry(requests.Profiles{"4g.40gb": 1, "3g.40gb": 1})), func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "470.82.01" }),
			"DriverTooOld", "mig/profile-driver", "4g.40gb beside 3g.40gb needs driver 510"},
		"a GPU that cannot be partitioned": {with(sxm("mixed", full), func(r *spec.Request) { r.GPU.Model = "L4-24GB" }), "PresentationInvalid", "mig/model", "Passthrough"},
		"graphics beside none": {with(sxm("mixed", requests.MIGEntry(requests.Profiles{"1g.24gb+gfx": 1, "1g.24gb": 1})), func(r *spec.Request) {
			r.GPU.Model, r.Image.Software.GPUDriver.Version = "RTX-PRO-6000-Blackwell-Server-96GB", "580.126.09"
		}), "PresentationInvalid", "mig/graphics", "one kind on each GPU"},
		"a promise of another profile": {with(sxm("mixed", full), func(r *spec.Request) { r.Resources["nvidia.com/mig-3g.40gb"] = resource.MustParse("16") }), "ResourcesDisagree", "promise/gpu", "3g.40gb"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := presentation.Resolve(tt.request)
			requests.CheckRefusal(t, err, tt.reason, tt.rule, tt.says)
		})
	}
}

func TestNodesThatDifferInOneGPUsLayoutDifferInTheirConfiguration(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []requests.Profiles{{"1g.10gb": 7}, {"1g.10gb": 6}, {"1g.10gb": 6, "1g.10gb+me": 1}, {"1g.20gb": 4}, {"2g.20gb": 3}} {
		plan, err := presentation.Resolve(requests.MIG("H100-SXM5-80GB", "mixed", 8, requests.MIGEntry(requests.Profiles{"1g.10gb": 7}, 0, 1, 2, 3, 4, 5, 6), requests.MIGEntry(p, 7)))
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(slices.Sorted(maps.Keys(p)), p)
		if other, there := seen[plan.Files[1].Content]; there {
			t.Errorf("%s and %s have the same configuration", key, other)
		}
		seen[plan.Files[1].Content] = key
	}
}

func TestAnOSImageWithoutMigPartedIsWarnedOf(t *testing.T) {
	r := requests.MIG("H100-SXM5-80GB", "mixed", 8, requests.MIGEntry(requests.Profiles{"3g.40gb": 2}))
	r.Image.Software.MIGParted = ""
	p, err := presentation.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Warnings); n != 1 || p.Warnings[0].Rule != "unstated/mig-parted" || !strings.Contains(p.Warnings[0].Message, "software.migParted") {
		t.Errorf("the warnings are %v", p.Warnings)
	}
	if p, err = presentation.Resolve(requests.MIG("H100-SXM5-80GB", "mixed", 8, requests.MIGEntry(requests.Profiles{"3g.40gb": 2}))); err != nil || len(p.Warnings) != 0 {
		t.Errorf("an image that says so: %v, %v", p.Warnings, err)
	}
}

func TestTheServiceOfMIGPartedsPackageNeitherAppliesNorOverwritesALayout(t *testing.T) {
	const packaged = "/etc/systemd/system/nvidia-mig-manager.service.d/90-ingot.conf"
	for name, r := range requests.MIGRequests() {
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range plan.Files {
			files[f.Path] = f.Content
		}
		if name == "h100-mig-none" {
			continue
		}
		_, path, _ := strings.Cut(files[packaged], "\nConditionPathExists=!")
		path = strings.TrimSpace(path)
		if files[path] == "" || path == "/etc/nvidia-mig-manager/config.yaml" || !strings.Contains(files["/usr/local/sbin/ingot-gpu-mode"], "--config-file "+path+" ") {
			t.Errorf("%s: its condition is about %q, which is not what is applied: %q", name, path, files[packaged])
		}
	}
}

func TestInferredPlacementsAreWarnedOf(t *testing.T) {
	r := requests.MIG("B200-SXM-180GB", "mixed", 8, requests.MIGEntry(requests.Profiles{"1g.23gb": 7}))
	r.Image.Software.GPUDriver.Version = "580.126.09"
	plan, err := presentation.Resolve(r)
	if err != nil || len(plan.Warnings) != 1 || plan.Warnings[0].Rule != "unverified/mig-places" {
		t.Errorf("B200: %v, %+v", err, plan.Warnings)
	}
	if plan, err := presentation.Resolve(requests.All()["h100-mig-mixed"]); err != nil || len(plan.Warnings) > 0 {
		t.Errorf("H100: %v, %+v", err, plan.Warnings)
	}
}

func TestTheOperatorsConfigurationIsTheOneThatTheNodeNames(t *testing.T) {
	plan, err := presentation.Resolve(requests.All()["h100-mig-operator"])
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Units)+len(plan.Files)+len(plan.Packages) > 0 {
		t.Errorf("the node gets what the operator brings: %+v", plan)
	}
	config := plan.Tenant.MIGConfig
	var read migConfig
	if err := yaml.UnmarshalStrict([]byte(config.Content), &read); err != nil || len(read.MIGConfigs[config.Name]) != 1 {
		t.Errorf("the MIG manager's configuration: %v: %s", err, config.Content)
	}
	if plan.NodeLabels["nvidia.com/mig.config"] != config.Name || plan.NodeLabels["nvidia.com/gpu.deploy.mig-manager"] != "" || plan.Tenant.DriverVersion != "580.126.09" {
		t.Errorf("the node's labels disagree with what the tenant is told: %v, %+v", plan.NodeLabels, plan.Tenant)
	}
	i := slices.IndexFunc(plan.Expectation.Labels, func(l v1alpha1.ExpectedLabel) bool { return l.Key == "nvidia.com/mig.config.state" })
	if i < 0 || plan.Expectation.Labels[i].Value != "success" || !slices.Contains(plan.Expectation.Labels[i].Passing, "pending") {
		t.Errorf("the manager's state is not expected: %+v", plan.Expectation.Labels)
	}
	other := requests.All()["h100-mig-operator"]
	other.GPU.Presentation.MIG.Layout = []v1alpha1.MIGLayout{requests.MIGEntry(requests.Profiles{"1g.10gb": 6})}
	if second, err := presentation.Resolve(other); err != nil || second.Tenant.MIGConfig.Name == config.Name {
		t.Errorf("another layout has the same name: %v", err)
	}
}

// warningRules are the rules of what a plan warns of.
func warningRules(t *testing.T, r spec.Request) (rules []string) {
	t.Helper()
	plan, err := presentation.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan.Warnings {
		rules = append(rules, w.Rule)
	}
	return rules
}

func TestProfileNamesThatOnlySomeDriversUseAreWarnedOf(t *testing.T) {
	named := func(entries ...v1alpha1.MIGLayout) spec.Request {
		r := requests.MIG("GB200-186GB", "mixed", 4, entries...)
		r.Image.Software.GPUDriver.Version = "580.126.09"
		return r
	}
	for _, tt := range []struct {
		r    spec.Request
		want bool
	}{
		{named(requests.MIGEntry(requests.Profiles{"1g.23gb": 7})), true},
		{named(requests.MIGEntry(requests.Profiles{"1g.24gb": 3, "4g.95gb": 1})), true},
		{named(requests.MIGEntry(requests.Profiles{"2g.47gb": 3})), false}, // every driver calls it that
		{requests.MIG("H100-SXM5-80GB", "mixed", 8, requests.MIGEntry(requests.Profiles{"1g.10gb": 7})), false},
	} {
		if got := slices.Contains(warningRules(t, tt.r), "unverified/mig-names"); got != tt.want {
			t.Errorf("%+v: told of: %v", tt.r.GPU.Presentation.MIG.Layout, got)
		}
	}
	for _, mix := range []spec.Request{
		named(requests.MIGEntry(requests.Profiles{"1g.24gb": 3, "4g.93gb": 1})),
		named(requests.MIGEntry(requests.Profiles{"1g.23gb": 1, "1g.24gb": 1})),
		named(requests.MIGEntry(requests.Profiles{"1g.23gb": 7}, 0), requests.MIGEntry(requests.Profiles{"1g.24gb": 7}, 1)),
	} {
		var refusal *spec.Refusal
		if _, err := presentation.Resolve(mix); !errors.As(err, &refusal) || refusal.Rule != "mig/profile-names" || !strings.Contains(refusal.Message, "1g.24gb") {
			t.Errorf("names of two drivers: %+v: %v", mix.GPU.Presentation.MIG.Layout, err)
		}
	}
}

// TestCardsWithDisplaysAreToldOf: the workstation's cards partition only in the display mode compute, and the server's has no displays.
func TestCardsWithDisplaysAreToldOf(t *testing.T) {
	for model, want := range map[string]bool{"RTX-PRO-6000-Blackwell-Workstation-96GB": true, "RTX-PRO-6000-Blackwell-Max-Q-96GB": true, "RTX-PRO-6000-Blackwell-Server-96GB": false} {
		r := requests.All()["rtx-pro-6000-mig-single"]
		r.GPU.Model = model
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(plan.Warnings, func(w v1alpha1.PlanWarning) bool { return w.Rule == "unset/display-mode" }); got != want {
			t.Errorf("%s: the display mode is told of: %v", model, got)
		}
	}
}

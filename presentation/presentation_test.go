package presentation

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

var update = flag.Bool("update", false, "write the golden files and the table in doc.go")

func TestThePlansAreAsInTheGoldenFiles(t *testing.T) {
	for name, r := range requests.All() {
		t.Run(name, func(t *testing.T) {
			plan, err := Resolve(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryModelOfTheCatalogueResolves(t *testing.T) {
	for _, m := range catalogue.Models() {
		plan, err := Resolve(requests.ForModel(m))
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		own, other := corev1.ResourceName(m.Vendor+".com/gpu"), corev1.ResourceName("amd.com/gpu")
		if own == other {
			other = "nvidia.com/gpu"
		}
		if e := plan.Expectation; !e.IsForeign("nvidia.com/mig-1g.5gb") || !e.IsForeign(other) || e.IsForeign(own) || e.IsForeign("rdma/hca") {
			t.Errorf("%s: wrong resources are foreign", m.Name)
		}
	}
}

func TestDevicesOfOtherPluginsOfAVendorMayBePromised(t *testing.T) {
	r := requests.ForModel(catalogue.Models()[0])
	r.Resources = corev1.ResourceList{"nvidia.com/hostdev": resource.MustParse("8"), "amd.com/nic": resource.MustParse("8")}
	if plan, err := Resolve(r); err != nil || plan.Expectation.IsForeign("nvidia.com/hostdev") || plan.Expectation.IsForeign("amd.com/nic") {
		t.Errorf("not promised: %v", err)
	}
}

func TestImpossibleRequestsAreRefusedWithReasonAndRule(t *testing.T) {
	tests := []struct {
		sentence string
		change   func(*spec.Request)
		reason   string
		rule     string
		says     string
	}{
		{"an unknown model", func(r *spec.Request) { r.GPU.Model = "H100" }, "PresentationInvalid", "gpu/model", "H100-SXM5-80GB"},
		{"no driver in the image", func(r *spec.Request) { r.Image.Software.GPUDriver = nil }, "DriverMissing", "image/driver", "525.85.12"},
		{"another vendor's driver", func(r *spec.Request) { r.Image.Software.GPUDriver.Vendor = "amd" }, "DriverMissing", "image/driver-vendor", "amd"},
		{"a driver that is too old", func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "525.85.11" }, "DriverTooOld", "image/driver-version", "525.85.12"},
		{"a driver that is no version", func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "latest" }, "PresentationInvalid", "image/driver-version", "latest"},
		{"no container toolkit", func(r *spec.Request) { r.Image.Software.ContainerToolkit = "" }, "PresentationInvalid", "image/container-toolkit", "toolkit"},
		{"nouveau not kept away", func(r *spec.Request) { r.Image.KernelArguments = []string{"quiet"} }, "KernelArgumentMissing", "image/kernel-arguments", "modprobe.blacklist=nouveau"},
		{"nouveau kept away in the initramfs only", func(r *spec.Request) { r.Image.KernelArguments = []string{"rd.driver.blacklist=nouveau"} }, "KernelArgumentMissing", "image/kernel-arguments", "nouveau"},
		{"fewer GPUs promised than ordered", func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("4") }, "ResourcesDisagree", "promise/gpu", "8 follows"},
		{"partitions promised of whole GPUs", func(r *spec.Request) { r.Resources["nvidia.com/mig-1g.10gb"] = resource.MustParse("7") }, "ResourcesDisagree", "promise/gpu", "mig-1g.10gb"},
		{"GPUs promised without any", func(r *spec.Request) { r.GPU = nil; r.Resources["nvidia.com/gpu"] = resource.MustParse("8") }, "ResourcesDisagree", "promise/gpu", "nvidia.com/gpu"},
		{"half a device", func(r *spec.Request) { r.Resources["rdma/hca"] = resource.MustParse("500m") }, "ResourcesDisagree", "promise/fraction", "whole"},
		{"less than nothing", func(r *spec.Request) { r.Resources["cpu"] = resource.MustParse("-1") }, "ResourcesDisagree", "promise/negative", "negative"},
		{"a resource that no node has", func(r *spec.Request) { r.Resources["gpus"] = resource.MustParse("8") }, "ResourcesDisagree", "promise/unknown-resource", "gpus"},
		{"no GPU to present", func(r *spec.Request) { r.GPU.Count = 0 }, "PresentationInvalid", "gpu/count", "1 to 64"},
		{"fewer GPUs than none", func(r *spec.Request) { r.GPU.Count = -8 }, "PresentationInvalid", "gpu/count", "-8"},
		{"another vendor's model", func(r *spec.Request) { r.GPU.Vendor = v1alpha1.VendorAMD }, "PresentationInvalid", "gpu/model", "MI300X"},
		{"a vendor and a mode that the table does not have", func(r *spec.Request) { r.GPU.Vendor, r.GPU.Presentation.Mode = "generic", "DRA" }, "PresentationInvalid", "presentation/unknown", "generic"},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			r := requests.H100()
			tt.change(&r)
			_, err := Resolve(r)
			var refusal *spec.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v, want a *Refusal", err)
			}
			requests.CheckField(t, refusal)
			if refusal.Reason != tt.reason || refusal.Rule != tt.rule || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("refused with %s, %s: %s; want %s, %s and a message with %q", refusal.Reason, refusal.Rule, refusal, tt.reason, tt.rule, tt.says)
			}
		})
	}
}

func TestRequestsThatAgreeAreAccepted(t *testing.T) {
	for sentence, change := range map[string]func(*spec.Request){
		"the GPUs promised too":                  func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("8") },
		"a network function of the same vendor":  func(r *spec.Request) { r.Resources["nvidia.com/hostdev"] = resource.MustParse("8") },
		"nouveau in a list":                      func(r *spec.Request) { r.Image.KernelArguments = []string{"modprobe.blacklist=nova_core,nouveau"} },
		"nouveau by the kernel's own argument":   func(r *spec.Request) { r.Image.KernelArguments = []string{"module_blacklist=nouveau"} },
		"kernel arguments that Ignition can set": func(r *spec.Request) { r.Image.UserData = v1alpha1.UserDataIgnition; r.Image.KernelArguments = nil },
		"exactly the minimum driver":             func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "525.85.12" },
		"a distribution's driver version":        func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "550.163.01-2" },
		"the defaults spelled out": func(r *spec.Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadContainer, Advertise: v1alpha1.AdvertiseDevicePlugin}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.H100()
			change(&r)
			if _, err := Resolve(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResolveIsDeterministicAndSetsNothingTwice(t *testing.T) {
	for name, r := range requests.All() {
		first, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			again, err := Resolve(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatal(diff)
			}
		}
		seen := map[string]bool{}
		once := func(what string) {
			if seen[what] {
				t.Errorf("%s: %s is set twice", name, what)
			}
			seen[what] = true
		}
		for _, f := range first.Files {
			once("the file " + f.Path)
		}
		for _, f := range first.SecretFiles {
			once("the file " + f.Path)
		}
		for _, u := range first.Units {
			once("the unit " + u.Name)
		}
		for _, m := range append(slices.Clone(first.Modules.Load), first.Modules.Blacklist...) {
			once("the module " + m)
		}
		for _, a := range first.KernelArguments {
			once("the kernel argument " + a)
		}
		for _, l := range first.Expectation.Labels {
			once("the label " + l.Key)
			once("the check " + l.Check)
		}
		for _, e := range first.Expectation.Resources {
			once("the resource " + string(e.Name))
		}
		if err := resolveError(r); err != nil {
			t.Errorf("%s resolves, and is invalid: %v", name, err)
		}
	}
}

func TestEveryNVIDIAPlanSetsTheMIGModeBeforeKubelet(t *testing.T) {
	check := func(name string, r spec.Request) {
		plan, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		last, script := plan.Units[len(plan.Units)-1], plan.Files[0].Content
		sets := slices.ContainsFunc([]string{"nvidia-smi -mig 0\n", "nvidia-smi -mig 1\n", "\nnvidia-mig-parted apply ", "# GPUs of this model have no MIG mode."}, func(s string) bool { return strings.Contains(script, s) })
		if !strings.Contains(last.Content, "Before=kubelet.service\n") || !strings.Contains(last.Content, "RequiredBy=kubelet.service\n") || !sets {
			t.Errorf("%s: no unit that kubelet requires sets the MIG mode: %+v", name, last)
		}
	}
	for _, m := range catalogue.Models() {
		if m.Geometry != nil {
			check(m.Name, requests.ForModel(m))
		}
	}
	for name, r := range requests.All() {
		if r.GPU != nil && r.GPU.Vendor == v1alpha1.VendorNVIDIA && r.GPU.Driver.Source != v1alpha1.DriverFromOperator && r.GPU.Presentation.Mode != v1alpha1.ModeVGPU && !isForVMs(r.GPU) {
			check(name, r)
		}
	}
}

func TestTheTableOfModesInThePackageDocumentationIsCurrent(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "//\t%-8s %-12s %s\n", "vendor", "mode", "variant")
	for _, m := range resolverRows {
		fmt.Fprintf(&table, "//\t%-8s %-12s %s\n", m.Vendor, m.Mode, m.Variant)
	}
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)// BEGIN MODES\n.*// END MODES\n`).ReplaceAllLiteralString(string(source), "// BEGIN MODES\n//\n"+table.String()+"//\n// END MODES\n")
	if *update {
		if err := os.WriteFile("doc.go", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(source) {
		t.Error("the table in doc.go is stale: go test ./presentation -update")
	}
}

func TestTheSameOfSeveralMistakesIsReportedEveryTime(t *testing.T) {
	r := spec.Request{Resources: corev1.ResourceList{
		"a.example/x": resource.MustParse("500m"), "b.example/x": resource.MustParse("500m"), "c.example/x": resource.MustParse("-1"), "pods": resource.MustParse("1"),
	}}
	_, first := Resolve(r)
	for range 50 {
		if _, err := Resolve(r); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, and then %v", first, err)
		}
	}
}

// resolveError returns the error of Resolve.
func resolveError(r spec.Request) error {
	_, err := Resolve(r)
	return err
}

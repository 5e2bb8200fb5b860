package presentation

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/test/require"
)

var update = flag.Bool("update", false, "write the golden files and the table in doc.go")

// h100 is a request that fits.
func h100() Request {
	return Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8,
			Driver: v1alpha1.GPUDriver{Source: v1alpha1.DriverFromImage}, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}},
		Image: v1alpha1.OSImageSpec{
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13", Kernel: "6.12.107"}, KernelArguments: []string{"quiet", "modprobe.blacklist=nouveau"},
			Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0", ContainerToolkit: "1.18.0",
				GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "550.163.01", KernelModule: "Open"}},
		},
		Resources: corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("768Gi"), "hugepages-1Gi": resource.MustParse("4Gi"), "rdma/hca": resource.MustParse("8")},
	}
}

func TestThePlansAreAsInTheGoldenFiles(t *testing.T) {
	plain := h100()
	plain.GPU = nil
	pcie := h100()
	pcie.GPU.Model = "H100-NVL-94GB"
	four := h100()
	four.GPU.Model, four.GPU.Count = "A100-SXM4-40GB", 4
	for name, r := range map[string]Request{"no-gpu": plain, "h100-sxm-8": h100(), "h100-nvl-8": pcie, "a100-sxm-4": four} {
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
		r := h100()
		r.GPU.Model = m.Name
		plan, err := Resolve(r)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if e := plan.Expectation; !e.Foreign("nvidia.com/mig-1g.5gb") || !e.Foreign("amd.com/gpu") || e.Foreign("nvidia.com/gpu") || e.Foreign("rdma/hca") {
			t.Errorf("%s: wrong resources are foreign", m.Name)
		}
	}
}

func TestWhatCannotWorkIsRefusedWithItsReasonAndRule(t *testing.T) {
	tests := []struct {
		sentence string
		change   func(*Request)
		reason   string
		rule     string
		says     string
	}{
		{"an unknown model", func(r *Request) { r.GPU.Model = "H100" }, "PresentationInvalid", "gpu/model", "H100-SXM5-80GB"},
		{"no driver in the image", func(r *Request) { r.Image.Software.GPUDriver = nil }, "DriverMissing", "image/driver", "525.85.12"},
		{"another vendor's driver", func(r *Request) { r.Image.Software.GPUDriver.Vendor = "amd" }, "DriverMissing", "image/driver-vendor", "amd"},
		{"a driver that is too old", func(r *Request) { r.Image.Software.GPUDriver.Version = "525.85.11" }, "DriverTooOld", "image/driver-version", "525.85.12"},
		{"a driver that is no version", func(r *Request) { r.Image.Software.GPUDriver.Version = "latest" }, "PresentationInvalid", "image/driver-version", "latest"},
		{"no container toolkit", func(r *Request) { r.Image.Software.ContainerToolkit = "" }, "PresentationInvalid", "image/container-toolkit", "toolkit"},
		{"nouveau not kept away", func(r *Request) { r.Image.KernelArguments = []string{"quiet"} }, "KernelArgumentMissing", "image/kernel-arguments", "modprobe.blacklist=nouveau"},
		{"nouveau kept away in the initramfs only", func(r *Request) { r.Image.KernelArguments = []string{"rd.driver.blacklist=nouveau"} }, "KernelArgumentMissing", "image/kernel-arguments", "nouveau"},
		{"fewer GPUs promised than ordered", func(r *Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("4") }, "ResourcesDisagree", "promise/gpu", "8 follows"},
		{"partitions promised of whole GPUs", func(r *Request) { r.Resources["nvidia.com/mig-1g.10gb"] = resource.MustParse("7") }, "ResourcesDisagree", "promise/gpu", "mig-1g.10gb"},
		{"GPUs promised without any", func(r *Request) { r.GPU = nil; r.Resources["nvidia.com/gpu"] = resource.MustParse("8") }, "ResourcesDisagree", "promise/gpu", "nvidia.com/gpu"},
		{"half a device", func(r *Request) { r.Resources["rdma/hca"] = resource.MustParse("500m") }, "ResourcesDisagree", "promise/fraction", "whole"},
		{"less than nothing", func(r *Request) { r.Resources["cpu"] = resource.MustParse("-1") }, "ResourcesDisagree", "promise/negative", "negative"},
		{"a resource that no node has", func(r *Request) { r.Resources["gpus"] = resource.MustParse("8") }, "ResourcesDisagree", "promise/unknown-resource", "gpus"},
		{"virtual machines", func(r *Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadVM}
		}, "PresentationInvalid", "presentation/unknown", "it knows nvidia Passthrough"},
		{"advertised by DRA", func(r *Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Advertise: v1alpha1.AdvertiseDRA}
		}, "PresentationInvalid", "presentation/unknown", "DRA"},
		{"shared", func(r *Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Sharing: &v1alpha1.SharingSpec{Strategy: "MPS", Replicas: 2}}
		}, "PresentationInvalid", "presentation/unknown", "shared"},
		{"the driver from the operator", func(r *Request) { r.GPU.Driver.Source = v1alpha1.DriverFromOperator }, "PresentationInvalid", "presentation/unknown", "operator"},
		{"MIG", func(r *Request) { r.GPU.Presentation.Mode = v1alpha1.ModeMIG }, "PresentationInvalid", "presentation/unknown", "MIG"},
		{"another vendor", func(r *Request) { r.GPU.Vendor = v1alpha1.VendorAMD }, "PresentationInvalid", "presentation/unknown", "amd"},
		{"a vendor and a mode that the table does not have", func(r *Request) { r.GPU.Vendor, r.GPU.Presentation.Mode = "generic", "DRA" }, "PresentationInvalid", "presentation/unknown", "generic"},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			r := h100()
			tt.change(&r)
			_, err := Resolve(r)
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v, want a *Refusal", err)
			}
			if refusal.Reason != tt.reason || refusal.Rule != tt.rule || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("refused with %s, %s: %s; want %s, %s and a message with %q", refusal.Reason, refusal.Rule, refusal.Message, tt.reason, tt.rule, tt.says)
			}
		})
	}
}

func TestWhatAgreesIsAccepted(t *testing.T) {
	for sentence, change := range map[string]func(*Request){
		"the GPUs promised too":                  func(r *Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("8") },
		"a network function of the same vendor":  func(r *Request) { r.Resources["nvidia.com/hostdev"] = resource.MustParse("8") },
		"nouveau in a list":                      func(r *Request) { r.Image.KernelArguments = []string{"modprobe.blacklist=nova_core,nouveau"} },
		"nouveau by the kernel's own argument":   func(r *Request) { r.Image.KernelArguments = []string{"module_blacklist=nouveau"} },
		"kernel arguments that Ignition can set": func(r *Request) { r.Image.UserData = v1alpha1.UserDataIgnition; r.Image.KernelArguments = nil },
		"exactly the minimum driver":             func(r *Request) { r.Image.Software.GPUDriver.Version = "525.85.12" },
		"a distribution's driver version":        func(r *Request) { r.Image.Software.GPUDriver.Version = "550.163.01-2" },
		"the defaults spelled out": func(r *Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadContainer, Advertise: v1alpha1.AdvertiseDevicePlugin}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := h100()
			change(&r)
			if _, err := Resolve(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResolvingIsDeterministicAndSetsNothingTwice(t *testing.T) {
	first, err := Resolve(h100())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := Resolve(h100())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
	}
	seen := map[string]bool{}
	for _, f := range first.Files {
		if seen[f.Path] {
			t.Errorf("%s is written twice", f.Path)
		}
		seen[f.Path] = true
	}
	for _, r := range first.Expectation.Resources {
		if seen[string(r.Name)] {
			t.Errorf("%s is expected twice", r.Name)
		}
		seen[string(r.Name)] = true
	}
}

func TestEveryNVIDIAPlanSetsTheMIGModeBeforeKubelet(t *testing.T) {
	for _, m := range catalogue.Models() {
		r := h100()
		r.GPU.Model = m.Name
		plan, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		last := plan.Units[len(plan.Units)-1]
		if !strings.Contains(last.Content, "Before=kubelet.service\n") || !strings.Contains(last.Content, "RequiredBy=kubelet.service\n") || !strings.Contains(plan.Files[0].Content, "nvidia-smi -mig 0\n") {
			t.Errorf("%s: no unit that kubelet requires sets the MIG mode: %+v", m.Name, last)
		}
	}
}

// nvidiaSMI answers as nvidia-smi does for GPUs whose MIG mode is in the file state; with stuck, even a reset does not change it.
const nvidiaSMI = `#!/bin/sh
echo "$*" >>"$ROOT/calls"
case "$1" in
--query-gpu=*) while read -r mode; do echo "0, $mode"; done <"$ROOT/state" ;;
--gpu-reset) test -e "$ROOT/stuck" || echo Disabled >"$ROOT/state" ;;
esac
`

func TestTheModeScriptEndsWellOnlyWhenTheModeIsOffAndTheFabricManagerRuns(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := Resolve(h100())
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range map[string]struct {
		state, systemctl string
		stuck            bool
		calls            int
		well             bool
	}{
		"off already":              {"Disabled\nDisabled\n", "exit 0", false, 3, true},
		"on, and a reset helps":    {"Enabled\nDisabled\n", "exit 0", false, 4, true},
		"on, and stays on":         {"Enabled\n", "exit 0", true, 4, false},
		"off, no fabric manager":   {"Disabled\n", "exit 3", false, 3, false},
		"nvidia-smi knows no mode": {"[N/A]\n", "exit 0", true, 4, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write("state", tt.state)
			write("nvidia-smi", nvidiaSMI)
			write("systemctl", "#!/bin/sh\n"+tt.systemctl+"\n")
			write("script", plan.Files[0].Content)
			if tt.stuck {
				write("stuck", "")
			}
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "ROOT=" + dir}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if n := bytes.Count(calls, []byte("\n")); n != tt.calls {
				t.Errorf("%d calls of nvidia-smi, want %d:\n%s", n, tt.calls, calls)
			}
		})
	}
}

func TestUnitsAreWhatSystemdTakes(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	plan, err := Resolve(h100())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stub := "[Unit]\nDescription=stub\n[Service]\nExecStart=/bin/true\n"
	for _, u := range append(plan.Units, Unit{Name: "kubelet.service"}) {
		content := strings.ReplaceAll(u.Content, "/usr/local/sbin/ingot-gpu-mode", "/bin/true")
		if content == "" {
			content = stub
		}
		if err := os.WriteFile(filepath.Join(dir, u.Name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(verify, "verify", filepath.Join(dir, "ingot-gpu-mode.service")).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("ingot-gpu-mode")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestTheTableOfModesInThePackageDocumentationIsCurrent(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "//\t%-8s %-12s %-48s %s\n", "vendor", "mode", "variant", "this version")
	for _, m := range modes {
		state := "refused"
		if m.resolve != nil {
			state = "known"
		}
		fmt.Fprintf(&table, "//\t%-8s %-12s %-48s %s\n", m.Vendor, m.Mode, m.Variant, state)
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

func BenchmarkResolve(b *testing.B) {
	r := h100()
	for b.Loop() {
		if _, err := Resolve(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheSameOfSeveralMistakesIsToldEveryTime(t *testing.T) {
	r := Request{Resources: corev1.ResourceList{
		"a.example/x": resource.MustParse("500m"), "b.example/x": resource.MustParse("500m"), "c.example/x": resource.MustParse("-1"), "pods": resource.MustParse("1"),
	}}
	_, first := Resolve(r)
	for range 50 {
		if _, err := Resolve(r); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, and then %v", first, err)
		}
	}
}

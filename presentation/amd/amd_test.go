package amd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
	"github.com/ingot-dev/ingot/test/require"
)

func TestAMDGPUsAreCountedByTheirPartitions(t *testing.T) {
	for name, want := range map[string]string{
		"mi300x": "amd.com/gpu=8", "mi300x-cpx": "amd.com/gpu=64", "mi300x-dpx-mixed": "amd.com/dpx_nps2=16 unverified/amd-partition",
		"mi300x-operator": "amd.com/gpu=8", "mi300x-cpx-operator": "amd.com/cpx_nps1=64 dcm.amd.com/gpu-config-profile-state=success",
		"mi300x-dra":     "amdgpu=8 gpu.amd.com=8 unverified/amd-dra",
		"mi300x-cpx-dra": "amdgpu-partition=64 gpu.amd.com=64 unverified/amd-dra",
	} {
		r := requests.All()[name]
		r.Resources = nil
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range plan.Expectation.Resources {
			got = append(got, fmt.Sprintf("%s=%s", r.Name, r.Quantity.String()))
		}
		for _, s := range plan.Expectation.Slices {
			got = append(got, fmt.Sprintf("%s=%d", s.Devices[0].Type, s.Devices[0].Count), fmt.Sprintf("%s=%d", s.DeviceClasses[0].Name, s.DeviceClasses[0].Count))
		}
		for _, l := range plan.Expectation.Labels {
			got = append(got, l.Key+"="+l.Value)
		}
		for _, w := range plan.Warnings {
			got = append(got, w.Rule)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
		if e := plan.Expectation; !e.IsForeign("nvidia.com/gpu") || !e.IsForeign("amd.com/cpx_nps2") || slices.Contains(e.AbsentDrivers, "gpu.amd.com") != (len(e.Slices) == 0) {
			t.Errorf("%s: wrong things are foreign: %+v", name, e)
		}
	}
}

func TestRequestsThatAMDsSoftwareCannotServeAreRefused(t *testing.T) {
	sharing := &v1alpha1.SharingSpec{Strategy: "MPS", Replicas: 2}
	for sentence, tt := range map[string]struct {
		request      spec.Request
		reason, rule string
		says         string
	}{
		"more memory partitions than compute": {requests.MI300X("SPX", "NPS4", ""), "PresentationInvalid", "amd/partition", "SPX with NPS1, DPX with NPS1, DPX with NPS2, QPX with NPS1, QPX with NPS4, CPX with NPS1, CPX with NPS4"},
		"three parts of eight dies":           {requests.MI300X("TPX", "NPS1", ""), "PresentationInvalid", "amd/partition", "8 compute dies"},
		"a profile that the manager has not":  {requests.MI300X("QPX", "NPS4", "", requests.WithOperatorDriver("30.20.1")), "PresentationInvalid", "amd/profile", "source: Image"},
		"virtual machines":                    {requests.MI300X("", "", "", func(r *spec.Request) { r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: "VM"} }), "PresentationInvalid", "amd/vm", "Container"},
		"sharing":                             {requests.MI300X("", "", "", func(r *spec.Request) { r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Sharing: sharing} }), "PresentationInvalid", "amd/sharing", "partitions"},
		"another vendor's partitions":         {requests.MI300X("", "", "", requests.UseAMDDRA, func(r *spec.Request) { r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG"} }), "PresentationInvalid", "dra/driver", "gpu.amd.com"},
		"claims without CDI":                  {requests.MI300X("", "", "", func(r *spec.Request) { r.GPU.Presentation.Mode = v1alpha1.ModeDRA }), "PresentationInvalid", "dra/containerd-version", "1.7"},
		"no driver":                           {requests.MI300X("", "", "", func(r *spec.Request) { r.Image.Software.GPUDriver = nil }), "DriverMissing", "image/driver", "amdgpu"},
		"another model's name":                {requests.MI300X("", "", "", func(r *spec.Request) { r.GPU.Model = "MI300X" }), "PresentationInvalid", "gpu/model", "MI300X-192GB"},
		"two drivers": {requests.MI300X("", "", "", func(r *spec.Request) {
			r.GPU.Driver = v1alpha1.GPUDriver{Source: "Operator", Version: "30.20.1"}
		}), "PresentationInvalid", "driver/two", "30.20.1"},
		"packages of another version": {requests.MI300X("", "", "", requests.WithOperatorDriver("30.20.1"), func(r *spec.Request) {
			r.GPU.Driver.Source, r.GPU.Driver.Packages = "Packages", []string{"amdgpu-dkms=30.10"}
		}), "PresentationInvalid", "packages/version", "30.20.1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := presentation.Resolve(tt.request)
			requests.CheckRefusal(t, err, tt.reason, tt.rule, tt.says)
		})
	}
}

// TestThePartitionsAreWrittenMemoryFirstAndChecked runs the script over files in the place of sysfs. A reload of the
// driver is what a stand-in for modprobe makes of it.
func TestThePartitionsAreWrittenMemoryFirstAndChecked(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	r := requests.All()["mi300x-cpx"]
	r.GPU.Count = 2
	plan, err := presentation.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range map[string]struct {
		gpus     int
		readOnly bool
		well     bool
	}{
		"whole GPUs are partitioned":   {2, false, true},
		"a GPU is missing":             {1, false, false},
		"a kernel that takes no other": {2, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for i := range tt.gpus {
				device := fmt.Sprintf("bus/pci/devices/0000:%d0:00.0/", i+1)
				write(device+"vendor", "0x1002\n")
				write(device+"device", "0x74a1\n")
				if tt.readOnly {
					// What is written is gone, and reading says the same as before.
					write(device+"current_compute_partition/gone", "")
					write(device+"current_memory_partition/gone", "")
					continue
				}
				write(device+"current_compute_partition", "SPX\n")
				write(device+"current_memory_partition", "NPS1\n")
			}
			write("bin/modprobe", "#!/bin/sh\n")
			write("script", strings.ReplaceAll(plan.Files[0].Content, "/sys/", dir+"/"))
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.well {
				t.Fatalf("the script ended with %v: %s", err, out)
			}
			if !tt.well {
				return
			}
			for _, want := range []string{"compute_partition CPX", "memory_partition NPS4"} {
				file, value, _ := strings.Cut(want, " ")
				if got, err := os.ReadFile(filepath.Join(dir, "bus/pci/devices/0000:20:00.0/current_"+file)); err != nil || string(got) != value+"\n" {
					t.Errorf("%s: %q, %v", want, got, err)
				}
			}
		})
	}
	if script := plan.Files[0].Content; strings.Index(script, "apply memory") > strings.Index(script, "apply compute") {
		t.Error("compute is partitioned before memory")
	}
}

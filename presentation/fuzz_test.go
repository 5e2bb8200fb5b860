package presentation

import (
	"errors"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

// FuzzResolve asks for what no API server lets through, of every model in every mode: it is planned or refused.
func FuzzResolve(f *testing.F) {
	f.Add(uint8(0), uint8(0), int32(8), int32(2), "1g.10gb", int32(7), "A100-20C", "DynamicMIG", "6.8.0", "580.126.09")
	f.Add(uint8(4), uint8(6), int32(-1), int32(0), "7g.80gb", int32(-7), "", "PassthroughSupport", "", "")
	f.Add(uint8(24), uint8(9), int32(64), int32(48), "CPX", int32(1<<30), "x", "x", "5.15.0-91", "latest")
	f.Add(uint8(0), uint8(9), int32(8), int32(2), "Both", int32(1), "", "", "6.8.0", "580.126.09")
	models := catalogue.Models()
	f.Fuzz(func(t *testing.T, model, mode uint8, count, replicas int32, profile string, n int32, vgpu, gate, kernel, driver string) {
		m := models[int(model)%len(models)]
		r := requests.ForModel(m)
		r.GPU.Count, r.Image.OS.Kernel, r.Image.Software.GPUDriver.Version = count, kernel, driver
		r.Image.Software.MIGParted, r.Image.Software.Containerd, r.Image.Software.VGPUDeviceManager = "0.15.0", "2.2.0", "0.5.0"
		r.Image.KernelArguments = append(r.Image.KernelArguments, "amd_iommu=on")
		layout := []v1alpha1.MIGLayout{{Profiles: map[string]int32{profile: n}}}
		sharing := &v1alpha1.SharingSpec{Strategy: gate, Replicas: replicas}
		if replicas%3 > 0 {
			sharing.Strategy = []string{"TimeSlicing", "MPS"}[replicas%3-1]
		}
		presentations := []v1alpha1.Presentation{
			{Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{Sharing: sharing}},
			{Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadVM, Addresses: []string{profile}}},
			{Mode: v1alpha1.ModePassthrough, Partitions: &v1alpha1.PartitionSpec{Compute: profile, Memory: vgpu}},
			{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "mixed", Layout: layout}},
			{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "single", Layout: layout, Advertise: v1alpha1.AdvertiseDRA}},
			{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "MIG", Layout: layout, FeatureGates: []string{gate}}},
			{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{gate, "DynamicMIG"}}},
			{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "VFIO", Sharing: sharing}},
			{Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: "Host", Types: map[string]int32{vgpu: n}}},
			{Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: profile}},
		}
		r.GPU.Presentation = presentations[int(mode)%len(presentations)]
		if r.GPU.Presentation.Mode == v1alpha1.ModeVGPU {
			r.Image.Software.GPUDriver.Kind = "VGPUManager"
		}
		plan, err := Resolve(r)
		var refusal *spec.Refusal
		if err != nil && (!errors.As(err, &refusal) || refusal.Rule == "" || refusal.Message == "") {
			t.Fatalf("error %v, want a *Refusal", err)
		}
		if refusal != nil {
			requests.CheckField(t, refusal)
		}
		if err == nil && len(plan.Expectation.Resources)+len(plan.Expectation.Slices) == 0 {
			t.Fatalf("a plan that expects nothing: %+v", plan)
		}
	})
}

package vgpu

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

const (
	griddUnit = "nvidia-gridd.service"
	griddFile = "/etc/nvidia/gridd.conf"
	tokenFile = "/etc/nvidia/ClientConfigToken/client_configuration_token.tok"
	// TokenKey is the key of the Secret's data that holds a guest's licence token.
	TokenKey = "client_configuration_token.tok"
)

// resolveGuest plans a node whose GPUs are virtual. Without a licence a virtual GPU becomes slow and then refuses work, while the
// node still advertises it. So the node does not join before every virtual GPU has a licence.
func resolveGuest(r spec.Request, vgpuSpec v1alpha1.VGPUSpec) (v1alpha1.NodePlan, error) {
	if vgpuSpec.Licence == nil {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("vgpu.role"), "vgpu/licence", "it is Guest, and vgpu.licence is missing: name the Secret with the client configuration token")
	}
	if t := vgpuSpec.Licence.FeatureType; t < 0 || t > 4 || t == 3 {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("vgpu.licence.featureType"), "vgpu/feature-type", "it is %d: write 1 for NVIDIA vGPU, 2 for RTX Virtual Workstation, 4 for Virtual Compute Server, or leave it out", t)
	}
	if !nvidia.IsDriverFromImage(r) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("driver.source"), "vgpu/driver-source", "it is %s, and a guest's licence is set up where the driver is baked in: use source: Image; NVIDIA's operator has its own driver.licensingConfig", r.GPU.Driver.Source)
	}
	model, err := nvidia.CheckRequest(r, spec.DriverKindVGPUGuest)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if err := nvidia.CheckContainerToolkit(r); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	units := []v1alpha1.SystemdUnit{{Name: griddUnit}}
	file, unit := gpumode.FileAndUnit(licenceScript(r.GPU.Count), units...)
	conf := "# Written by Ingot.\n"
	if t := vgpuSpec.Licence.FeatureType; t != 0 {
		conf += fmt.Sprintf("FeatureType=%d\n", t)
	}
	p := v1alpha1.NodePlan{
		KernelArguments: []string{nvidia.NouveauBlacklistArgument},
		Modules:         v1alpha1.KernelModules{Load: []string{"nvidia", "nvidia_uvm"}, Blacklist: []string{"nouveau"}},
		Files:           []v1alpha1.NodeFile{file, {Path: griddFile, Mode: "0644", Content: conf}},
		SecretFiles:     []v1alpha1.NodeSecretFile{{Path: tokenFile, Mode: "0600", Secret: vgpuSpec.Licence.TokenSecretRef.Name, Key: TokenKey}},
		Units:           append(units, unit),
		Expectation: v1alpha1.NodeExpectation{
			Resources: []v1alpha1.ExpectedResource{nvidia.ExpectedGPUs(int(r.GPU.Count))},
			Labels: []v1alpha1.ExpectedLabel{nvidia.ExpectedDriverLabel(r), {
				Check: "label/" + wellknown.LabelVGPUPresent, Key: wellknown.LabelVGPUPresent, Value: "true",
				Hint: "the node's GPUs are not virtual: " + model.Name + " was passed through whole, or the node is no guest",
			}},
		},
	}
	return p, nil
}

// licenceScript returns the lines that wait until every GPU has its licence. They give up after five minutes: a licence server
// answers within minutes or not at all.
func licenceScript(count int32) []string {
	return []string{
		"# Wait for the licence of every virtual GPU before kubelet starts.",
		"if [ ! -s " + tokenFile + " ]; then",
		"\techo 'the client configuration token is missing: " + tokenFile + "' >&2",
		"\texit 1",
		"fi",
		"tries=0",
		fmt.Sprintf("while [ \"$(nvidia-smi -q | grep -c 'License Status *: Licensed')\" -ne %d ]; do", count),
		"\ttries=$((tries + 1))",
		"\tif [ \"$tries\" -gt 60 ]; then",
		"\t\techo 'not every GPU is licensed: nvidia-smi -q; journalctl -u " + griddUnit + "' >&2",
		"\t\texit 1",
		"\tfi",
		"\tsleep 5",
		"done",
	}
}

package nvidia

import (
	"slices"
	"strconv"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Names on the node.
const (
	fabricManagerUnit = "nvidia-fabricmanager.service"
	imexUnit          = "nvidia-imex.service"
)

// NouveauBlacklistArgument is the kernel argument that keeps the nouveau driver off the GPUs, in the initramfs too.
const NouveauBlacklistArgument = "modprobe.blacklist=nouveau"

// NodePlan returns the plan of a node on which a script sets the mode of the GPUs before kubelet starts. modeScript is the lines
// of the script; the first is a comment that says what it does. The plan expects the driver; the caller adds what is advertised.
func NodePlan(r spec.Request, model catalogue.Model, mode []string) v1alpha1.NodePlan {
	fabric := model.HasNVSwitch(r.GPU.Count)
	units := []v1alpha1.SystemdUnit{{Name: "nvidia-persistenced.service"}}
	if fabric {
		units = append(units, v1alpha1.SystemdUnit{Name: fabricManagerUnit})
	}
	if model.Link == catalogue.LinkRack && r.GPU.IMEX == spec.IMEXHost {
		units = append(units, v1alpha1.SystemdUnit{Name: imexUnit})
	}
	load := []string{"nvidia", "nvidia_uvm", "nvidia_modeset"}
	if fabric && model.Link == catalogue.LinkNVLink5 {
		// Without them the fabric manager takes the way of older boards, and fails (NVIDIA/gpu-operator#2781).
		load = append([]string{"mlx5_core", "mlx5_ib", "ib_umad"}, load...)
	}
	blacklist := []string{"nouveau"}
	if model.HasPersistentMIGMode() {
		blacklist = append(blacklist, "nvidia_drm")
	}
	file, unit := gpumode.FileAndUnit(append(mode, interconnectScript(r, model)...), units...)
	if model.Geometry != nil {
		unit = gpumode.StartBefore(unit, clientUnits()...)
	}
	return v1alpha1.NodePlan{
		KernelArguments: []string{NouveauBlacklistArgument},
		Modules:         v1alpha1.KernelModules{Load: load, Blacklist: blacklist},
		Packages:        r.GPU.Driver.Packages,
		Files:           []v1alpha1.NodeFile{file},
		Units:           append(units, unit),
		Expectation:     v1alpha1.NodeExpectation{Labels: []v1alpha1.ExpectedLabel{ExpectedDriverLabel(r)}},
		Warnings:        driverWarnings(r, model),
	}
}

// The MIG mode of a GPU in the words of nvidia-smi, of which the report keeps letters and slashes.
const (
	migModeDisabled    = "Disabled"
	migModeEnabled     = "Enabled"
	migModeUnsupported = "N/A"
)

// AddModeReport changes the plan so that the node reports the MIG mode of its GPUs, and expects that those with the index are partitioned and the others are not. The
// unit comes before the one that sets the mode, which is the last.
func AddModeReport(p *v1alpha1.NodePlan, model catalogue.Model, count int32, isPartitioned func(gpu int) bool) {
	file, unit := gpumode.ReportFileAndUnit("nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader")
	p.Files = append(p.Files, file)
	p.Units = slices.Insert(p.Units, len(p.Units)-1, unit)
	for gpu := range int(count) {
		mode := migModeDisabled
		switch {
		case model.Geometry == nil:
			mode = migModeUnsupported
		case isPartitioned(gpu):
			mode = migModeEnabled
		}
		p.Expectation.GPUModes = append(p.Expectation.GPUModes, mode)
	}
}

// IsNeverPartitioned is for AddModeReport where every GPU is whole.
func IsNeverPartitioned(int) bool { return false }

// OperatorPlan returns the plan of a node on which NVIDIA's operator installs the driver in a pod, after the node has joined. The
// caller adds what is advertised.
func OperatorPlan(r spec.Request, model catalogue.Model, workload string) v1alpha1.NodePlan {
	return v1alpha1.NodePlan{
		KernelArguments: []string{NouveauBlacklistArgument},
		Modules:         v1alpha1.KernelModules{Blacklist: []string{"nouveau"}},
		NodeLabels:      map[string]string{wellknown.LabelWorkloadConfig: workload},
		Expectation:     v1alpha1.NodeExpectation{Labels: []v1alpha1.ExpectedLabel{ExpectedDriverLabel(r)}},
		Tenant:          v1alpha1.TenantSoftware{DriverVersion: r.GPU.Driver.Version, KernelModule: r.GPU.Driver.KernelModule, WorkloadConfig: workload},
		Warnings:        driverWarnings(r, model),
	}
}

// ExpectedDriverLabel returns the label by which feature discovery reports the driver that was ordered.
func ExpectedDriverLabel(r spec.Request) v1alpha1.ExpectedLabel {
	return v1alpha1.ExpectedLabel{
		Check: "software/gpu-driver", Key: wellknown.LabelDriverVersion, Value: spec.UpstreamVersion(DriverVersion(r)),
		Hint: "the driver that runs is not the one that was ordered: correct the OSImage's software.gpuDriver.version or gpu.driver.version, or rebuild the image with the driver held",
	}
}

// InferredPlacementsWarning returns the warning for a model whose MIG placements are inferred from related models.
func InferredPlacementsWarning(model catalogue.Model) v1alpha1.PlanWarning {
	return v1alpha1.PlanWarning{Rule: "unverified/mig-places", Message: "where the partitions of " + model.Name + " can sit is taken from GPUs of the same size class: compare with nvidia-smi mig -lgipp on the first node"}
}

// DisplayModeWarnings returns a warning for a model with connectors for displays, whose MIG mode only the display mode compute allows (MIG user guide,
// "Supported GPUs").
func DisplayModeWarnings(model catalogue.Model) []v1alpha1.PlanWarning {
	if !model.DisplayOutputs {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unset/display-mode", Message: model.Name + " partitions only in the display mode compute and with a recent vBIOS, and nothing here sets them: use NVIDIA's displaymodeselector on each server"}}
}

// KeptMIGModeWarnings returns a warning when GPUs of the model can keep the MIG mode of an earlier installation and nothing on
// the node turns it off. consequence says what happens then.
func KeptMIGModeWarnings(model catalogue.Model, consequence string) []v1alpha1.PlanWarning {
	if !model.HasPersistentMIGMode() {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unset/mig-mode", Message: model.Name + " keeps the MIG mode of an earlier installation, and nothing here turns it off: " + consequence}}
}

// driverWarnings returns warnings about drivers and packages that may not suffice for the model.
func driverWarnings(r spec.Request, model catalogue.Model) []v1alpha1.PlanWarning {
	var out []v1alpha1.PlanWarning
	if older, _ := spec.IsOlderVersion(DriverVersion(r), model.DocumentedDriver); older {
		out = append(out, v1alpha1.PlanWarning{Rule: "unverified/minimum-driver", Message: "the driver is " + DriverVersion(r) + "; the vendor's documents name " + model.Name + " from " + model.DocumentedDriver + " on"})
	}
	if packaged := r.GPU.Driver.Source == v1alpha1.DriverFromPackages; packaged && model.Link == catalogue.LinkNVLink5 && model.HasNVSwitch(r.GPU.Count) && !HasDriverPackage(r, "nvlsm") {
		out = append(out, v1alpha1.PlanWarning{Rule: "unverified/nvlsm", Message: "the fabric manager of " + model.Name + " starts NVLSM, and gpu.driver.packages has no nvlsm: the image must have it, or the fabric manager's package must bring it"})
	}
	return out
}

// interconnectScript returns the lines that check the software which links the GPUs: the fabric manager runs where there are
// NVSwitches, and IMEX of the image does not run where the DRA driver runs it.
func interconnectScript(r spec.Request, model catalogue.Model) []string {
	switch {
	case model.HasNVSwitch(r.GPU.Count):
		return []string{
			"if ! systemctl is-active --quiet " + fabricManagerUnit + "; then",
			"\techo 'the fabric manager does not run; its version must equal the driver'\"'\"'s: journalctl -u " + fabricManagerUnit + "' >&2",
			"\texit 1",
			"fi",
		}
	case model.Link == catalogue.LinkRack && r.GPU.IMEX != spec.IMEXHost:
		return []string{
			"# The DRA driver's compute domains run IMEX; a second one would take its place.",
			"systemctl mask " + imexUnit,
			"if systemctl is-active --quiet " + imexUnit + "; then",
			"\tsystemctl stop " + imexUnit,
			"fi",
		}
	}
	return nil
}

// UnpartitionedScript returns the lines that leave every GPU unpartitioned, and that fail when a GPU is partitioned or missing.
func UnpartitionedScript(model catalogue.Model, count int32) []string {
	if model.Geometry != nil {
		return MIGDisabledScript()
	}
	n := strconv.Itoa(int(count))
	return []string{
		"# GPUs of this model have no MIG mode. Make sure that the driver has all of them before kubelet starts.",
		"seen=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)",
		"if [ \"$seen\" -ne " + n + " ]; then",
		"\techo \"the driver has $seen GPUs, and " + n + " were ordered: journalctl -k | grep -i xid\" >&2",
		"\texit 1",
		"fi",
	}
}

// MIGDisabledScript returns the lines that turn the MIG mode off on every GPU, and that fail when it stays on. On Ampere a new
// mode takes effect only after a reset of the GPU, which nvidia-smi does unless something uses the GPU.
func MIGDisabledScript() []string {
	return migModeScript("# Turn the MIG mode off on every GPU before kubelet starts. It outlives a re-image on some GPUs.", "0", "Disabled", "off")
}

// MIGEnabledScript returns the lines that turn the MIG mode on for every GPU, and that fail when it stays off. The DRA driver
// then partitions the GPUs.
func MIGEnabledScript() []string {
	return migModeScript("# Turn the MIG mode on on every GPU before kubelet starts. The DRA driver partitions them.", "1", "Enabled", "on")
}

func migModeScript(comment, mode, state, word string) []string {
	return MIGChangeScript(comment,
		"wrong() {",
		"\tnvidia-smi --query-gpu=index,mig.mode.current --format=csv,noheader | grep -v ', "+state+"$'",
		"}",
		"nvidia-smi -mig "+mode,
		"if wrong >/dev/null; then",
		"\tnvidia-smi --gpu-reset",
		"fi",
		"if left=$(wrong); then",
		"\techo \"MIG mode is not "+word+" (GPU, mode): $left\" >&2",
		"\texit 1",
		"fi",
	)
}

// SetMIGManagerConfig changes the plan so that the operator's MIG manager applies the named configuration, after the node has
// joined and before it is admitted.
func SetMIGManagerConfig(p *v1alpha1.NodePlan, name string) {
	const key = wellknown.LabelMIGConfig
	p.NodeLabels[key] = name
	p.Expectation.Labels = append(p.Expectation.Labels, v1alpha1.ExpectedLabel{
		Check: "label/" + key, Key: key, Value: name,
		Hint: "somebody gave the node another label, and the MIG manager partitions by it: GPUs in MIG mode without instances are still counted as whole; correct the label",
	}, ExpectedStateLabel(wellknown.LabelMIGConfigState, "kubectl logs of the pod nvidia-mig-manager on the node: its reason for failing is told there alone"))
}

// ExpectedStateLabel returns the label by which one of the operator's managers reports its progress.
func ExpectedStateLabel(key, hint string) v1alpha1.ExpectedLabel {
	return v1alpha1.ExpectedLabel{Check: "label/" + key, Key: key, Value: "success", Passing: []string{"pending", "rebooting"}, Hint: hint}
}

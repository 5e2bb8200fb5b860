package mig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/dra"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// ResourceName returns the resource that the device plugin advertises for a profile with the MIG strategy mixed:
// nvidia.com/mig-1g.10gb.me for 1g.10gb+me.
func ResourceName(profile string) corev1.ResourceName {
	return corev1.ResourceName(wellknown.NVIDIAMIGPrefix + strings.ReplaceAll(profile, "+", "."))
}

// Resolve plans GPUs of presentation mode MIG. mig-parted partitions them on the node, or the operator's MIG manager does when
// the driver comes from the operator. The error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	if r.GPU.Presentation.MIG == nil {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("mode"), "mig/missing", "it is MIG, and presentation.mig is missing: say which strategy and layout")
	}
	return resolve(r, *r.GPU.Presentation.MIG)
}

// ResolveDRA plans GPUs of presentation mode DRA that are partitioned before the DRA driver starts. The error is a *spec.Refusal.
func ResolveDRA(r spec.Request) (v1alpha1.NodePlan, error) {
	draSpec := r.GPU.Presentation.DRA
	gates, err := dra.FeatureGates(r, *draSpec)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	for _, gate := range []string{wellknown.GateDynamicMIG, wellknown.GatePassthrough} {
		if slices.Contains(gates, gate) {
			return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("dra.layout"), "dra/static-mig", "it partitions the GPUs, and the feature gate %s lets the driver take them apart again: remove one of them", gate)
		}
	}
	p, err := resolve(r, v1alpha1.MIGSpec{Strategy: wellknown.MIGStrategyMixed, Advertise: v1alpha1.AdvertiseDRA, Layout: draSpec.Layout})
	dra.SetTenantDriver(&p, *draSpec, gates)
	return p, err
}

func resolve(r spec.Request, migSpec v1alpha1.MIGSpec) (v1alpha1.NodePlan, error) {
	model, err := checkStrategy(r, migSpec)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	l, err := parseNodeLayout(r, migSpec, model)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p := l.nodePlan(r, migSpec, model)
	p.Warnings = append(p.Warnings, l.nameWarnings(model)...)
	p.Warnings = append(p.Warnings, migPartedWarnings(r)...)
	if model.PlacementsInferred && migSpec.Strategy != wellknown.MIGStrategyNone {
		p.Warnings = append(p.Warnings, nvidia.InferredPlacementsWarning(model))
	}
	if migSpec.Strategy != wellknown.MIGStrategyNone {
		p.Warnings = append(p.Warnings, nvidia.DisplayModeWarnings(model)...)
	}
	if migSpec.Advertise == v1alpha1.AdvertiseDRA {
		dra.ExpectDevices(&p, r, model, l.deviceKinds(model)...)
	} else {
		p.Tenant.MIGStrategy = migSpec.Strategy
		p.Expectation.Resources = l.expectedResources(migSpec.Strategy)
		p.Expectation.Labels = append(p.Expectation.Labels, l.expectedLabels(migSpec.Strategy)...)
		p.Expectation.LabelRules = l.labelRules(migSpec.Strategy, model)
	}
	return p, nil
}

// nodePlan returns the plan with the software that partitions the GPUs: a script before kubelet starts, or the operator's MIG
// manager.
func (l *nodeLayout) nodePlan(r spec.Request, migSpec v1alpha1.MIGSpec, model catalogue.Model) v1alpha1.NodePlan {
	if nvidia.IsDriverFromOperator(r) {
		p := nvidia.OperatorPlan(r, model, wellknown.WorkloadContainer)
		name := wellknown.MIGConfigAllDisabled
		if migSpec.Strategy != wellknown.MIGStrategyNone {
			name = spec.ConfigurationName(l.configuration(configName))
			p.Tenant.MIGConfig = &v1alpha1.SoftwareConfiguration{Name: name, Content: l.configuration(name)}
		}
		if model.Geometry != nil {
			nvidia.SetMIGManagerConfig(&p, name)
		}
		return p
	}
	mode := nvidia.MIGChangeScript("# Partition the GPUs as ordered before kubelet starts. The instances are gone after every boot.",
		"nvidia-mig-parted apply --config-file "+configFile+" --hooks-file "+hooksFile+" --selected-config "+configName)
	if migSpec.Strategy == wellknown.MIGStrategyNone {
		mode = nvidia.UnpartitionedScript(model, r.GPU.Count)
	}
	p := nvidia.NodePlan(r, model, mode)
	if migSpec.Strategy != wellknown.MIGStrategyNone {
		p.Files = append(p.Files, l.configFiles()...)
	}
	nvidia.AddModeReport(&p, model, r.GPU.Count, func(gpu int) bool { return l.gpus[gpu] != nil })
	p.NodeLabels = map[string]string{wellknown.LabelDeployMIGManager: "false"}
	return p
}

// checkStrategy returns the model of the GPUs, and refuses a strategy or an image with which no layout can be applied.
func checkStrategy(r spec.Request, migSpec v1alpha1.MIGSpec) (catalogue.Model, error) {
	model, err := checkDriverAndImage(r, migSpec)
	if err != nil {
		return catalogue.Model{}, err
	}
	switch migSpec.Strategy {
	case wellknown.MIGStrategyNone:
		if len(migSpec.Layout) > 0 {
			return catalogue.Model{}, spec.Invalid(spec.PresentationField("mig.strategy"), "mig/strategy", "it is none, which leaves every GPU whole, and mig.layout partitions them: remove the layout, or choose single or mixed")
		}
		return model, nil
	case wellknown.MIGStrategySingle, wellknown.MIGStrategyMixed:
	default:
		return catalogue.Model{}, spec.Invalid(spec.PresentationField("mig.strategy"), "mig/strategy", "%q is not one of none, single, mixed", migSpec.Strategy)
	}
	if model.Geometry == nil {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("model"), "mig/model", "%s cannot be partitioned: choose another model, or presentation.mode: Passthrough", model.Name)
	}
	return model, checkMIGManager(r, migSpec)
}

// checkDriverAndImage refuses a driver or an image with which the GPUs, or the software that advertises them, do not work.
func checkDriverAndImage(r spec.Request, migSpec v1alpha1.MIGSpec) (catalogue.Model, error) {
	if migSpec.Advertise == v1alpha1.AdvertiseDRA {
		return dra.CheckRequest(r)
	}
	model, err := nvidia.CheckRequest(r, spec.DriverKindGPU)
	if err != nil {
		return catalogue.Model{}, err
	}
	return model, nvidia.CheckContainerToolkit(r)
}

// checkMIGManager refuses a node on which nothing would partition the GPUs: with the operator's DRA driver, the operator runs no
// MIG manager.
func checkMIGManager(r spec.Request, migSpec v1alpha1.MIGSpec) error {
	if nvidia.IsDriverFromOperator(r) && migSpec.Advertise == v1alpha1.AdvertiseDRA {
		return spec.Invalid(spec.GPUField("driver.source"), "mig/operator-dra", "it is Operator and the DRA driver advertises: the operator then runs no MIG manager, and nobody would partition the GPUs; use source: Image or Packages, or advertise: DevicePlugin")
	}
	return nil
}

// migPartedWarnings returns a warning when the OSImage does not say that it has mig-parted. The image may have it all the same:
// no driver brings the program, and older OSImages do not mention it.
func migPartedWarnings(r spec.Request) []v1alpha1.PlanWarning {
	if nvidia.IsDriverFromOperator(r) || r.Image.Software.MIGParted != "" || nvidia.HasDriverPackage(r, "mig-manager") || nvidia.HasDriverPackage(r, "mig-parted") {
		return nil
	}
	return []v1alpha1.PlanWarning{{Rule: "unstated/mig-parted", Message: "the OSImage's software.migParted is empty: without nvidia-mig-parted in the image " +
		"ingot-gpu-mode.service fails, kubelet does not start and the node does not join; bake it in and name its version"}}
}

// What mig-parted reads. Its package's own service writes config.yaml in this directory anew at every boot.
const (
	configFile = "/etc/nvidia-mig-manager/ingot.yaml"
	hooksFile  = "/etc/nvidia-mig-manager/hooks.yaml"
	configName = "ingot"
)

// packageDropIn keeps the service of mig-parted's package, where the image has it, from applying its own configuration.
const packageDropIn = "/etc/systemd/system/nvidia-mig-manager.service.d/90-ingot.conf"

// emptyHooks keeps mig-parted from stopping services, kubelet among them. The script that runs it stops those that use GPUs.
const emptyHooks = "version: v1\nhooks: {}\n"

func (l *nodeLayout) configFiles() []v1alpha1.NodeFile {
	return []v1alpha1.NodeFile{
		{Path: configFile, Mode: "0644", Content: l.configuration(configName)},
		{Path: hooksFile, Mode: "0644", Content: emptyHooks},
		{Path: packageDropIn, Mode: "0644", Content: "[Unit]\nBefore=" + gpumode.UnitName + "\nConditionPathExists=!" + configFile + "\n"},
	}
}

// configuration returns a configuration of mig-parted, version v1, with the given name. GPUs with the same layout share an entry.
func (l *nodeLayout) configuration(name string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "version: v1\n%s:\n  %s:\n", wellknown.MIGConfigsKey, name)
	for g, counts := range l.gpus {
		hasSameLayout := func(other layout.Counts) bool {
			return (other == nil) == (counts == nil) && slices.Equal(other, counts)
		}
		if slices.ContainsFunc(l.gpus[:g], hasSameLayout) {
			continue
		}
		var gpus []string
		for other := g; other < len(l.gpus); other++ {
			if hasSameLayout(l.gpus[other]) {
				gpus = append(gpus, fmt.Sprint(other))
			}
		}
		fmt.Fprintf(&out, "  - devices: [%s]\n    mig-enabled: %t\n", strings.Join(gpus, ", "), counts != nil)
		if counts == nil {
			out.WriteString("    mig-devices: {}\n")
			continue
		}
		out.WriteString("    mig-devices:\n")
		for i, n := range counts {
			if n > 0 {
				fmt.Fprintf(&out, "      %q: %d\n", l.names[i], n)
			}
		}
	}
	return out.String()
}

// countInstances returns the number of instances of each profile on the node, and the number of unpartitioned GPUs.
func (l *nodeLayout) countInstances() (instances []int, unpartitioned int) {
	instances = make([]int, len(l.names))
	for _, counts := range l.gpus {
		if counts == nil {
			unpartitioned++
		}
		for i, n := range counts {
			instances[i] += n
		}
	}
	return instances, unpartitioned
}

// expectedResources returns the resources that the device plugin advertises.
func (l *nodeLayout) expectedResources(strategy string) []v1alpha1.ExpectedResource {
	hint := "nvidia-smi mig -lgi; the plugin's MIG_STRATEGY must be " + strategy
	if strategy == wellknown.MIGStrategySingle {
		return []v1alpha1.ExpectedResource{nvidia.ExpectedResource(wellknown.NVIDIAGPU, l.instanceCount(), hint)}
	}
	var out []v1alpha1.ExpectedResource
	instances, unpartitioned := l.countInstances()
	if unpartitioned > 0 {
		out = append(out, nvidia.ExpectedGPUs(unpartitioned))
	}
	for i, n := range instances {
		if n > 0 {
			out = append(out, nvidia.ExpectedResource(ResourceName(l.names[i]), n, hint))
		}
	}
	return out
}

// expectedLabels returns the labels that feature discovery sets, where it runs.
func (l *nodeLayout) expectedLabels(strategy string) []v1alpha1.ExpectedLabel {
	if strategy == wellknown.MIGStrategyNone {
		return nil
	}
	out := []v1alpha1.ExpectedLabel{{
		Check: "software/mig-strategy", Key: wellknown.LabelMIGStrategy, Value: strategy,
		Hint: "feature discovery runs with another strategy than the NodeType's mig.strategy: its MIG_STRATEGY, and the device plugin's, must be " + strategy,
	}}
	count := func(key string, n int) {
		out = append(out, v1alpha1.ExpectedLabel{
			Check: "label/" + key, Key: key, Value: strconv.Itoa(n),
			Hint: "the GPUs are partitioned otherwise than ordered. On the node: nvidia-smi mig -lgi; journalctl -u " + gpumode.UnitName,
		})
	}
	if strategy == wellknown.MIGStrategySingle {
		count(wellknown.LabelGPUCount, l.instanceCount())
		return out
	}
	instances, _ := l.countInstances()
	for i, n := range instances {
		if n > 0 {
			count(string(ResourceName(l.names[i]))+".count", n)
		}
	}
	return out
}

// labelRules returns the rules for the labels by which feature discovery tells which GPUs, or with the strategy single which instances, it found. A layout of
// that strategy has one profile.
func (l *nodeLayout) labelRules(strategy string, model catalogue.Model) []v1alpha1.ExpectedLabelRule {
	instances, _ := l.countInstances()
	at := slices.IndexFunc(instances, func(n int) bool { return n > 0 })
	if strategy != wellknown.MIGStrategySingle || at < 0 {
		return nvidia.GPULabelRules(model)
	}
	return nvidia.InstanceLabelRules(model, model.Geometry.Profiles[at])
}

// deviceKinds returns the devices that the DRA driver publishes. It does not publish a partitioned GPU beside its instances.
func (l *nodeLayout) deviceKinds(model catalogue.Model) []dra.DeviceKind {
	var out []dra.DeviceKind
	instances, unpartitioned := l.countInstances()
	if unpartitioned > 0 {
		out = append(out, dra.GPUDevices(model, unpartitioned))
	}
	for i, n := range instances {
		if n > 0 {
			out = append(out, dra.MIGDevices(model, model.Geometry.Profiles[i], n))
		}
	}
	return out
}

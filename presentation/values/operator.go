package values

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"

	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// NVIDIA's operator, release 26.7.0.
const (
	operatorVersion = "v26.7.0"
	migConfigs      = "ingot-mig-parted-config"
	vgpuConfigs     = "ingot-vgpu-devices-config"
	allDisabled     = "all-disabled"
	deployToolkit   = "nvidia.com/gpu.deploy.container-toolkit"
)

// byOperator says whether NVIDIA's operator runs in the tenant whatever it is installed from. It then serves every node with
// GPUs of NVIDIA's.
func (t tenant) byOperator() bool {
	return len(only(slices.Concat(t.plugin, t.dra, t.vms), operated)) > 0
}

// needsOperator says whether the operator is among the charts: NVIDIA's KubeVirt device plugin has no chart of its own.
func (t tenant) needsOperator() bool { return t.byOperator() || len(only(t.vms, external)) > 0 }

// operatorPart is what the operator reads beside its own object, which takes its chart.
func (t tenant) operatorPart() (Part, error) {
	if !t.byOperator() {
		return Part{}, nil
	}
	if _, err := t.operatorValues(); err != nil {
		return Part{}, err
	}
	all, err := t.operatorObjects()
	return Part{Name: "nvidia-gpu-operator", Objects: all, About: "What NVIDIA's operator reads beside its own values: configurations that nodes name by label, and drivers. The operator, and with it\n" +
		"every DaemonSet of NVIDIA's, comes with its chart and the values of: ingot render --output operator-values."}, err
}

// operatorChart is the operator's values. The error is a *Conflict.
func (t tenant) operatorChart() ([]Chart, error) {
	if !t.needsOperator() {
		return nil, nil
	}
	values, err := t.operatorValues()
	if err != nil {
		return nil, err
	}
	all, err := t.operatorObjects()
	c := Chart{Name: "gpu-operator", Repository: ngc, Version: operatorVersion, Release: "gpu-operator", Namespace: operatorSpace, Values: values, Objects: all}
	if n := only(t.vms, makesVGPUs); len(n) > 0 {
		c.Warnings = append(c.Warnings, "vgpuManager.repository, and imagePullSecrets where it asks for them, must name the registry to which you pushed the vGPU manager's image: NVIDIA publishes none")
	}
	if len(only(t.dra, operated)) > 0 && len(only(t.plugin, operated)) > 0 {
		c.Warnings = append(c.Warnings, "before it replaces a driver, the operator stops the DRA driver's pods by the label that driver.manager.env names; what it does with other pods on nodes without the label is not documented: drain nodes before a new driver version")
	}
	return []Chart{c}, err
}

// operatorValues are the values of the operator's chart.
func (t tenant) operatorValues() (map[string]any, error) {
	all := sorted(slices.Concat(t.plugin, t.dra, t.vms))
	strategy, err := t.strategy()
	if err != nil {
		return nil, err
	}
	toolkit, err := t.toolkit()
	if err != nil {
		return nil, err
	}
	data, err := configs(t.plugin)
	if err != nil {
		return nil, err
	}
	tolerated := manifest.Tolerations(tolerations("nvidia.com/gpu", all))
	values := map[string]any{
		"daemonsets":             map[string]any{"tolerations": tolerated},
		"node-feature-discovery": map[string]any{"worker": map[string]any{"tolerations": tolerated}},
		"driver":                 t.driver(),
		"toolkit":                map[string]any{"enabled": toolkit},
		"mig":                    map[string]any{"strategy": strategy},
		"sandboxWorkloads":       map[string]any{"enabled": len(t.vms) > 0, "defaultWorkload": "container"},
		// Ingot binds GPUs to vfio before kubelet starts; this would unbind them when its pod stops.
		"vfioManager": map[string]any{"enabled": false},
	}
	plugin := map[string]any{"enabled": len(t.plugin) > 0}
	if len(data) > 0 {
		plugin["config"] = map[string]any{"create": true, "name": pluginConfigs, "default": "default", "data": pluginData(data)}
	}
	values["devicePlugin"] = plugin
	manager := map[string]any{"enabled": len(only(t.plugin, operated)) > 0}
	if len(t.migEntries()) > 0 {
		manager["config"] = map[string]any{"name": migConfigs, "default": allDisabled}
	}
	values["migManager"] = manager
	if slices.ContainsFunc(t.dra, func(n NodeType) bool { return slices.Contains(n.Plan.Tenant.FeatureGates, gatePassthrough) }) {
		// It would hold the GPUs that the DRA driver gives to virtual machines.
		values["dcgmExporter"] = map[string]any{"enabled": false}
	}
	return values, t.virtual(values)
}

// virtual adds what makes virtual GPUs. The error is a *Conflict.
func (t tenant) virtual(values map[string]any) error {
	if len(t.vms) == 0 {
		return nil
	}
	values["sandboxDevicePlugin"] = map[string]any{"enabled": len(only(t.vms, external)) > 0, "version": strings.TrimPrefix(sandboxImage[strings.LastIndex(sandboxImage, ":"):], ":")}
	made := only(t.vms, makesVGPUs)
	manager, devices := map[string]any{"enabled": len(made) > 0}, map[string]any{"enabled": len(made) > 0}
	for _, n := range made {
		if version := n.Plan.Tenant.DriverVersion; version != made[0].Plan.Tenant.DriverVersion {
			return &Conflict{NodeTypes: pair(made[0].Name, n.Name), Software: "the GPU operator", Message: fmt.Sprintf("it installs one version of the vGPU manager in a cluster, and they want %s and %s: give both the same gpu.driver.version, or a TenantCluster each",
				made[0].Plan.Tenant.DriverVersion, version)}
		}
		manager["version"] = n.Plan.Tenant.DriverVersion
		devices["config"] = map[string]any{"name": vgpuConfigs, "default": made[0].Plan.Tenant.VGPUConfig.Name}
	}
	values["vgpuManager"], values["vgpuDeviceManager"] = manager, devices
	return nil
}

// makesVGPUs says whether the operator makes the NodeType's virtual GPUs.
func makesVGPUs(n NodeType) bool { return n.Plan.Tenant.VGPUConfig != nil }

// strategy of MIG that all nodes can have: the operator's device plugin has one. Whole GPUs are advertised alike with each.
func (t tenant) strategy() (string, error) {
	out, from := migNone, ""
	for _, n := range t.plugin {
		s := cmp.Or(n.Plan.Tenant.MIGStrategy, migNone)
		if s == migNone {
			continue
		}
		if out != migNone && s != out {
			return "", &Conflict{NodeTypes: pair(from, n.Name), Software: "the GPU operator", Message: fmt.Sprintf("its device plugin has one MIG strategy in a cluster, and they want %s and %s: give both the same mig.strategy, or a TenantCluster each, or bake the driver in (driver.source: Image), for which each strategy has a DaemonSet",
				out, s)}
		}
		out, from = s, n.Name
	}
	return out, nil
}

// toolkit says whether the operator installs the container toolkit, which it then does on every node that no label keeps it
// from. The error is a *Conflict.
func (t tenant) toolkit() (bool, error) {
	var needs, has []NodeType
	for _, n := range sorted(slices.Concat(t.plugin, t.dra)) {
		baked := n.Image.Software.ContainerToolkit != "" || n.GPU.Driver.Source == v1alpha1.DriverFromPackages
		switch {
		case operated(n) && !baked:
			needs = append(needs, n)
		case baked && n.Labels[deployToolkit] != "false" && n.Plan.NodeLabels[deployToolkit] != "false":
			has = append(has, n)
		}
	}
	if len(needs) > 0 && len(has) > 0 {
		return false, &Conflict{NodeTypes: pair(needs[0].Name, has[0].Name), Software: "the GPU operator", Message: fmt.Sprintf("it installs the container toolkit that %s needs on every node with GPUs, and the nodes of %s have one: set node.labels %s: \"false\" in %s",
			needs[0].Name, has[0].Name, deployToolkit, has[0].Name)}
	}
	return len(needs) > 0, nil
}

// drivers are the NodeTypes whose driver the operator installs.
func (t tenant) drivers() []NodeType {
	return only(sorted(slices.Concat(t.plugin, t.dra)), operated)
}

// oneDriver says whether all nodes get the same driver from the operator.
func (t tenant) oneDriver() bool {
	all := t.drivers()
	for _, n := range all {
		if n.Plan.Tenant.DriverVersion != all[0].Plan.Tenant.DriverVersion || n.Plan.Tenant.KernelModule != all[0].Plan.Tenant.KernelModule {
			return false
		}
	}
	return len(all) == len(t.plugin)+len(t.dra)
}

// driver is the chart's values of that name: one driver for all, or one object for each NodeType, or none.
func (t tenant) driver() map[string]any {
	all := t.drivers()
	if len(all) == 0 {
		return map[string]any{"enabled": false}
	}
	out := map[string]any{"enabled": true}
	if t.oneDriver() {
		out["version"], out["kernelModuleType"] = all[0].Plan.Tenant.DriverVersion, moduleType(all[0])
	} else {
		out["nvidiaDriverCRD"] = map[string]any{"enabled": true, "deployDefaultCR": false}
	}
	if len(only(t.dra, operated)) > 0 {
		out["manager"] = map[string]any{"env": []any{map[string]any{"name": "NODE_LABEL_FOR_GPU_POD_EVICTION", "value": draLabel}}}
	}
	return out
}

// moduleType is the kind of kernel modules in the operator's words.
func moduleType(n NodeType) string {
	return cmp.Or(strings.ToLower(n.Plan.Tenant.KernelModule), "auto")
}

// operatorObjects are what the chart's values name, and drivers that they cannot tell apart.
func (t tenant) operatorObjects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, file := range []struct {
		name, member string
		entries      []string
		also         map[string]any
	}{
		{migConfigs, "mig-configs", t.migEntries(), map[string]any{allDisabled: []any{map[string]any{"devices": "all", "mig-enabled": false}}}},
		{vgpuConfigs, "vgpu-configs", t.vgpuEntries(), nil},
	} {
		if len(file.entries) == 0 {
			continue
		}
		text, err := manifest.Merge(file.member, file.entries, file.also)
		if err != nil {
			return nil, err
		}
		o, err := manifest.Object(manifest.ConfigMap(operatorSpace, file.name, map[string]string{"config.yaml": text}))
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if t.oneDriver() {
		return out, nil
	}
	for _, n := range t.drivers() {
		out = append(out, manifest.Custom("nvidia.com/v1alpha1", "NVIDIADriver", "", "ingot-"+n.Name, map[string]any{
			"driverType": "gpu", "repository": "nvcr.io/nvidia", "image": "driver", "version": n.Plan.Tenant.DriverVersion, "kernelModuleType": moduleType(n), "usePrecompiled": false,
			"nodeSelector": map[string]any{v1alpha1.LabelNodeType: n.Name}, "tolerations": manifest.Tolerations(tolerations("nvidia.com/gpu", []NodeType{n})),
		}))
	}
	return out, nil
}

// migEntries and vgpuEntries are configurations that nodes name, for the operator's managers.
func (t tenant) migEntries() []string {
	return contents(t.plugin, func(p v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration { return p.MIGConfig })
}

func (t tenant) vgpuEntries() []string {
	return contents(t.vms, func(p v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration { return p.VGPUConfig })
}

func contents(nodeTypes []NodeType, of func(v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration) []string {
	var out []string
	for _, n := range nodeTypes {
		if c := of(n.Plan.Tenant); c != nil {
			out = append(out, c.Content)
		}
	}
	return out
}

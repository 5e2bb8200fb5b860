package nvidia

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Release 26.7.0 of NVIDIA's operator, and the objects that it reads.
const (
	operatorVersion = "v26.7.0"
	// gpuOperator names the operator in a Conflict.
	gpuOperator = "the GPU operator"
	// operatorNamespace is the namespace of the operator.
	operatorNamespace = "gpu-operator"
	// migConfigMap is the name of the ConfigMap with the MIG manager's configurations.
	migConfigMap = "ingot-mig-parted-config"
	// vgpuConfigMap is the name of the ConfigMap with the vGPU device manager's configurations.
	vgpuConfigMap = "ingot-vgpu-devices-config"
)

// operatorComponent returns the objects that the operator reads beside its ClusterPolicy, which comes with its chart.
func (t tenant) operatorComponent() (software.Component, error) {
	if !t.hasOperatorDriver() {
		return software.Component{}, nil
	}
	if _, err := t.operatorValues(); err != nil {
		return software.Component{}, err
	}
	all, err := t.operatorObjects()
	return software.Component{Name: "nvidia-gpu-operator", Objects: all, About: "What NVIDIA's operator reads beside its own values: configurations that nodes name by label, and drivers. The operator, and with it\n" +
		"every DaemonSet of NVIDIA's, comes with its chart and the values of: ingot render --output operator-values."}, err
}

// operatorCharts returns the operator's chart when it is needed. The error can be a *software.Conflict.
func (t tenant) operatorCharts() ([]software.Chart, error) {
	if !t.needsOperator() {
		return nil, nil
	}
	values, err := t.operatorValues()
	if err != nil {
		return nil, err
	}
	all, err := t.operatorObjects()
	c := software.Chart{Name: "gpu-operator", Repository: chartRepository, Version: operatorVersion, Release: "gpu-operator", Namespace: operatorNamespace, Values: values, Objects: all}
	if slices.ContainsFunc(t.virtualMachines, hasOperatorVGPUs) {
		c.Warnings = append(c.Warnings, "vgpuManager.repository, and imagePullSecrets where it asks for them, must name the registry to which you pushed the vGPU manager's image: NVIDIA publishes none")
	}
	if len(software.Filter(t.draDriver, software.NodeType.HasOperatorDriver)) > 0 && len(software.Filter(t.devicePlugin, software.NodeType.HasOperatorDriver)) > 0 {
		c.Warnings = append(c.Warnings, "before it replaces a driver, the operator stops the DRA driver's pods by the label that driver.manager.env names; what it does with other pods on nodes without the label is not documented: drain nodes before a new driver version")
	}
	if len(t.draDriver) > 0 {
		c.Warnings = append(c.Warnings, "these values are for a ClusterPolicy, beside which the DRA driver's own chart runs. A GPUCluster, which the operator has from 26.7 on (gpuCluster.deployCR), takes the place of both: "+
			"it brings the DRA driver and neither device plugin, feature discovery, MIG manager nor container toolkit, so that NodeTypes of other presentations have no software there, and a cluster cannot go from one to the other in place")
	}
	return []software.Chart{c}, err
}

// operatorValues returns the values of the operator's chart.
func (t tenant) operatorValues() (map[string]any, error) {
	all := software.SortByName(slices.Concat(t.devicePlugin, t.draDriver, t.virtualMachines))
	strategy, err := t.migStrategy()
	if err != nil {
		return nil, err
	}
	toolkit, err := t.needsToolkit()
	if err != nil {
		return nil, err
	}
	data, err := devicePluginConfigurations(t.devicePlugin)
	if err != nil {
		return nil, err
	}
	tolerated := manifest.Tolerations(tolerations(all))
	values := map[string]any{
		"daemonsets":             map[string]any{"tolerations": tolerated},
		"node-feature-discovery": map[string]any{"worker": map[string]any{"tolerations": manifest.Tolerations(software.AddTolerations(discoveryDefaults, tolerations(all)))}},
		"driver":                 t.driverValues(),
		"toolkit":                map[string]any{"enabled": toolkit},
		"mig":                    map[string]any{"strategy": strategy},
		"sandboxWorkloads":       map[string]any{"enabled": len(t.virtualMachines) > 0, "defaultWorkload": wellknown.WorkloadContainer},
		// Ingot binds GPUs to vfio before kubelet starts. The VFIO manager would unbind them when its pod stops.
		"vfioManager": map[string]any{"enabled": false},
	}
	plugin := map[string]any{"enabled": len(t.devicePlugin) > 0}
	if len(data) > 0 {
		plugin["config"] = map[string]any{"create": true, "name": devicePluginConfigMap, "default": "default", "data": withDefaultConfiguration(data)}
	}
	values["devicePlugin"] = plugin
	manager := map[string]any{"enabled": len(software.Filter(t.devicePlugin, software.NodeType.HasOperatorDriver)) > 0}
	if len(t.migConfigurations()) > 0 {
		manager["config"] = map[string]any{"name": migConfigMap, "default": wellknown.MIGConfigAllDisabled}
	}
	values["migManager"] = manager
	if slices.ContainsFunc(t.containers(), isShared) {
		closeToolkit(values)
	}
	if slices.ContainsFunc(t.draDriver, func(n software.NodeType) bool {
		return slices.Contains(n.Plan.Tenant.FeatureGates, wellknown.GatePassthrough)
	}) {
		// The exporter would hold the GPUs that the DRA driver gives to virtual machines.
		values["dcgmExporter"] = map[string]any{"enabled": false}
	}
	return values, t.addVGPUValues(values)
}

// isShared reports whether pods of several tenants run on the nodes.
func isShared(n software.NodeType) bool { return n.GPU.Tenancy == v1alpha1.TenancyShared }

// closeToolkit has the operator's container toolkit ignore NVIDIA_VISIBLE_DEVICES in containers that are not privileged, and the device plugin name devices
// by CDI. It does so on all nodes of the cluster, where no pod that asks for its GPUs notices it. The container toolkit of an image is set on its node.
func closeToolkit(values map[string]any) {
	values["cdi"] = map[string]any{"enabled": true}
	toolkit, _ := values["toolkit"].(map[string]any)
	toolkit["env"] = []any{
		map[string]any{"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", "value": "false"},
		map[string]any{"name": "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", "value": "false"},
	}
}

// addVGPUValues adds the values of the managers that make virtual GPUs, and of the KubeVirt device plugin. The error can be a
// *software.Conflict.
func (t tenant) addVGPUValues(values map[string]any) error {
	if len(t.virtualMachines) == 0 {
		return nil
	}
	values["sandboxDevicePlugin"] = map[string]any{"enabled": len(software.Filter(t.virtualMachines, needsKubeVirtDevicePlugin)) > 0, "version": kubeVirtDevicePluginVersion}
	made := software.Filter(t.virtualMachines, hasOperatorVGPUs)
	manager, devices := map[string]any{"enabled": len(made) > 0}, map[string]any{"enabled": len(made) > 0}
	for _, n := range made {
		if version := n.Plan.Tenant.DriverVersion; version != made[0].Plan.Tenant.DriverVersion {
			return software.NewConflict(made[0].Name, n.Name, gpuOperator, fmt.Sprintf("it installs one version of the vGPU manager in a cluster, and they want %s and %s: give both the same gpu.driver.version, or a TenantCluster each",
				made[0].Plan.Tenant.DriverVersion, version))
		}
		manager["version"] = n.Plan.Tenant.DriverVersion
		devices["config"] = map[string]any{"name": vgpuConfigMap, "default": made[0].Plan.Tenant.VGPUConfig.Name}
	}
	values["vgpuManager"], values["vgpuDeviceManager"] = manager, devices
	return nil
}

// hasOperatorVGPUs reports whether the operator makes the NodeType's virtual GPUs.
func hasOperatorVGPUs(n software.NodeType) bool { return n.Plan.Tenant.VGPUConfig != nil }

// migStrategy returns the MIG strategy of the operator's device plugin, which has one for all nodes. GPUs that are not partitioned are
// advertised alike with every strategy. The error can be a *software.Conflict.
func (t tenant) migStrategy() (string, error) {
	out, from := wellknown.MIGStrategyNone, ""
	for _, n := range t.devicePlugin {
		s := cmp.Or(n.Plan.Tenant.MIGStrategy, wellknown.MIGStrategyNone)
		if s == wellknown.MIGStrategyNone {
			continue
		}
		if out != wellknown.MIGStrategyNone && s != out {
			return "", software.NewConflict(from, n.Name, gpuOperator, fmt.Sprintf("its device plugin has one MIG strategy in a cluster, and they want %s and %s: give both the same mig.strategy, or a TenantCluster each, or bake the driver in (driver.source: Image), for which each strategy has a DaemonSet",
				out, s))
		}
		out, from = s, n.Name
	}
	return out, nil
}

// needsToolkit reports whether the operator must install the container toolkit. It then does so on every node except those
// whose label opts out. The error can be a *software.Conflict.
func (t tenant) needsToolkit() (bool, error) {
	var needs, has []software.NodeType
	for _, n := range t.containers() {
		baked := n.Image.Software.ContainerToolkit != "" || n.GPU.Driver.Source == v1alpha1.DriverFromPackages
		switch {
		case n.HasOperatorDriver() && !baked:
			needs = append(needs, n)
		case baked && n.Labels[wellknown.LabelDeployContainerToolkit] != "false" && n.Plan.NodeLabels[wellknown.LabelDeployContainerToolkit] != "false":
			has = append(has, n)
		}
	}
	if len(needs) > 0 && len(has) > 0 {
		return false, software.NewConflict(needs[0].Name, has[0].Name, gpuOperator, fmt.Sprintf("it installs the container toolkit that %s needs on every node with GPUs, and the nodes of %s have one: set node.labels %s: \"false\" in %s",
			needs[0].Name, has[0].Name, wellknown.LabelDeployContainerToolkit, has[0].Name))
	}
	return len(needs) > 0, nil
}

// operatorDrivers returns the NodeTypes whose driver the operator installs.
func (t tenant) operatorDrivers() []software.NodeType {
	return software.Filter(t.containers(), software.NodeType.HasOperatorDriver)
}

// hasOneDriver reports whether all nodes get the same driver from the operator.
func (t tenant) hasOneDriver() bool {
	all := t.operatorDrivers()
	for _, n := range all {
		if n.Plan.Tenant.DriverVersion != all[0].Plan.Tenant.DriverVersion || n.Plan.Tenant.KernelModule != all[0].Plan.Tenant.KernelModule {
			return false
		}
	}
	return len(all) == len(t.devicePlugin)+len(t.draDriver)
}

// driverValues returns the chart's value driver: one driver for all nodes, an object for each NodeType, or no driver.
func (t tenant) driverValues() map[string]any {
	all := t.operatorDrivers()
	if len(all) == 0 {
		return map[string]any{"enabled": false}
	}
	out := map[string]any{"enabled": true}
	if t.hasOneDriver() {
		out["version"], out["kernelModuleType"] = all[0].Plan.Tenant.DriverVersion, kernelModuleType(all[0])
	} else {
		out["nvidiaDriverCRD"] = map[string]any{"enabled": true, "deployDefaultCR": false}
	}
	if len(software.Filter(t.draDriver, software.NodeType.HasOperatorDriver)) > 0 {
		out["manager"] = map[string]any{"env": []any{map[string]any{"name": "NODE_LABEL_FOR_GPU_POD_EVICTION", "value": wellknown.LabelDRAKubeletPlugin}}}
	}
	return out
}

// kernelModuleType returns the kind of kernel modules as the operator spells it.
func kernelModuleType(n software.NodeType) string {
	return cmp.Or(strings.ToLower(n.Plan.Tenant.KernelModule), "auto")
}

// operatorObjects returns the ConfigMaps that the chart's values name, and an NVIDIADriver for each NodeType when their drivers differ.
func (t tenant) operatorObjects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, file := range []struct {
		name, member   string
		configurations []string
		others         map[string]any
	}{
		{migConfigMap, wellknown.MIGConfigsKey, t.migConfigurations(), map[string]any{wellknown.MIGConfigAllDisabled: []any{map[string]any{"devices": "all", "mig-enabled": false}}}},
		{vgpuConfigMap, wellknown.VGPUConfigsKey, t.vgpuConfigurations(), nil},
	} {
		if len(file.configurations) == 0 {
			continue
		}
		text, err := manifest.MergeConfigurations(file.member, file.configurations, file.others)
		if err != nil {
			return nil, err
		}
		o, err := manifest.Object(manifest.ConfigMap(operatorNamespace, file.name, map[string]string{"config.yaml": text}))
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if t.hasOneDriver() {
		return out, nil
	}
	for _, n := range t.operatorDrivers() {
		out = append(out, manifest.Custom("nvidia.com/v1alpha1", "NVIDIADriver", "", "ingot-"+n.Name, map[string]any{
			"driverType": "gpu", "repository": "nvcr.io/nvidia", "image": "driver", "version": n.Plan.Tenant.DriverVersion, "kernelModuleType": kernelModuleType(n), "usePrecompiled": false,
			"nodeSelector": map[string]any{v1alpha1.LabelNodeType: n.Name}, "tolerations": manifest.Tolerations(tolerations([]software.NodeType{n})),
		}))
	}
	return out, nil
}

// migConfigurations returns the MIG manager's configurations that nodes name.
func (t tenant) migConfigurations() []string {
	return contents(t.devicePlugin, func(s v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration { return s.MIGConfig })
}

// vgpuConfigurations returns the vGPU device manager's configurations that nodes name.
func (t tenant) vgpuConfigurations() []string {
	return contents(t.virtualMachines, func(s v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration { return s.VGPUConfig })
}

func contents(nodeTypes []software.NodeType, of func(v1alpha1.TenantSoftware) *v1alpha1.SoftwareConfiguration) []string {
	var out []string
	for _, n := range nodeTypes {
		if c := of(n.Plan.Tenant); c != nil {
			out = append(out, c.Content)
		}
	}
	return out
}

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/test/rack/software"
)

// Release is an installed chart.
type Release struct {
	// Chart is its name: gpu-operator.
	Chart string
	// Name and Namespace of the release.
	Name, Namespace string
	// Values are those that differ from the chart's own.
	Values map[string]any
	// Objects that are applied beside it.
	Objects []*unstructured.Unstructured
}

// Cluster is the vendors' software in a tenant's cluster.
type Cluster struct {
	DaemonSets    []appsv1.DaemonSet
	DeviceClasses []resourcev1.DeviceClass
	// Permitted is KubeVirt's; nil: there is no KubeVirt.
	Permitted *software.Permitted

	configMaps          map[string]map[string]string
	hasSandboxWorkloads bool
	hasGPUOperator      bool
}

// ConfigMapReader returns a reader of the namespace's ConfigMaps.
func (c *Cluster) ConfigMapReader(namespace string) software.Reader {
	return func(_ context.Context, name string) (map[string]string, error) {
		data, ok := c.configMaps[namespace+"/"+name]
		if !ok {
			return nil, fmt.Errorf("configmaps %q not found", name)
		}
		return data, nil
	}
}

func (c *Cluster) setConfigMap(namespace, name string, data map[string]string) {
	if c.configMaps == nil {
		c.configMaps = map[string]map[string]string{}
	}
	c.configMaps[namespace+"/"+name] = data
}

// Apply applies objects. Kinds that do not affect nodes are ignored.
func (c *Cluster) Apply(objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.apply(o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (c *Cluster) apply(o *unstructured.Unstructured) error {
	into := func(typed any) error { return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed) }
	switch o.GetKind() {
	case "DaemonSet":
		var set appsv1.DaemonSet
		err := into(&set)
		c.DaemonSets = append(c.DaemonSets, set)
		return err
	case "ConfigMap":
		var config corev1.ConfigMap
		err := into(&config)
		c.setConfigMap(o.GetNamespace(), o.GetName(), config.Data)
		return err
	case "DeviceClass":
		var class resourcev1.DeviceClass
		err := into(&class)
		c.DeviceClasses = append(c.DeviceClasses, class)
		return err
	case "KubeVirt":
		permitted, err := software.ReadPermitted(o.Object)
		c.Permitted = permitted
		c.addVirtHandler()
		return err
	case "NVIDIADriver":
		return c.applyNVIDIADriver(o.Object)
	case "DeviceConfig":
		return c.applyDeviceConfig(o)
	}
	return nil
}

// Install installs a chart and then applies its objects.
func (c *Cluster) Install(release Release) error {
	charts := map[string]func(Release){
		"gpu-operator": c.installGPUOperator, "nvidia-device-plugin": c.installDevicePlugin, "dra-driver-nvidia-gpu": c.installDRADriver, "gpu-operator-charts": c.installAMDOperator,
		"kubevirt": func(Release) {},
	}
	install, known := charts[release.Chart]
	if !known {
		return fmt.Errorf("chart %s is not simulated", release.Chart)
	}
	install(release)
	return c.Apply(release.Objects...)
}

// addVirtHandler adds KubeVirt's own DaemonSet, which tolerates every taint.
func (c *Cluster) addVirtHandler() {
	c.addDaemonSet("kubevirt", "virt-handler", corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "virt-handler", Image: "quay.io/kubevirt/virt-handler:v1.9.0"}},
	})
}

func (c *Cluster) addDaemonSet(namespace, name string, pod corev1.PodSpec) {
	c.DaemonSets = append(c.DaemonSets, appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
	})
}

// addNodeFeatureDiscovery adds the worker of node-feature-discovery, which is part of the charts.
func (c *Cluster) addNodeFeatureDiscovery(namespace string, values map[string]any) {
	c.addDaemonSet(namespace, "node-feature-discovery-worker", corev1.PodSpec{
		Tolerations: tolerations(valueAt(values, "worker", "tolerations")),
		Containers:  []corev1.Container{{Name: "worker", Image: "registry.k8s.io/nfd/node-feature-discovery:v0.18.0"}},
	})
}

// valueAt returns a value of nested maps, or nil.
func valueAt(values map[string]any, path ...string) any {
	var out any = values
	for _, word := range path {
		m, ok := out.(map[string]any)
		if !ok {
			return nil
		}
		out = m[word]
	}
	return out
}

// textAt returns a value as text, or the chart's default.
func textAt(values map[string]any, fallback string, path ...string) string {
	if v := valueAt(values, path...); v != nil && v != "" {
		return fmt.Sprint(v)
	}
	return fallback
}

// isEnabled reports whether a setting of a chart is true.
func isEnabled(values map[string]any, fallback bool, path ...string) bool {
	return textAt(values, fmt.Sprint(fallback), path...) == "true"
}

// decode decodes a value of a chart into a type.
func decode(value any, into any) {
	m, ok := value.(map[string]any)
	if ok {
		// What cannot be decoded the chart's schema would have refused: it stays empty.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(m, into)
	}
}

func tolerations(value any) []corev1.Toleration {
	var out []corev1.Toleration
	list, _ := value.([]any)
	for _, entry := range list {
		var t corev1.Toleration
		decode(entry, &t)
		out = append(out, t)
	}
	return out
}

func affinity(value any) *corev1.Affinity {
	if value == nil {
		return nil
	}
	out := &corev1.Affinity{}
	decode(value, out)
	return out
}

// OperatorLabels returns the labels that NVIDIA's operator sets on a node with these labels; none without the operator.
func (c *Cluster) OperatorLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	if !c.hasGPUOperator || labels["feature.node.kubernetes.io/pci-10de.present"] != "true" {
		return out
	}
	out["nvidia.com/gpu.present"] = "true"
	workload := "container"
	if w := labels["nvidia.com/gpu.workload.config"]; c.hasSandboxWorkloads && operands[w] != nil {
		workload = w
	}
	all := slices.Clone(operands[workload])
	product := strings.ToLower(labels["nvidia.com/gpu.product"])
	known := slices.ContainsFunc([]string{"h100", "a100", "a30"}, func(m string) bool { return strings.Contains(product, m) })
	if capable, told := labels["nvidia.com/mig.capable"]; workload == "container" && (capable == "true" || !told && known) {
		all = append(all, "mig-manager")
	}
	for _, name := range all {
		if key := "nvidia.com/gpu.deploy." + name; labels[key] == "" {
			out[key] = "true"
		}
	}
	if labels["nvidia.com/gpu.deploy.operands"] == "false" {
		maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, "nvidia.com/gpu.deploy.") })
	}
	return out
}

// operands by workload (gpuStateLabels).
var operands = map[string][]string{
	"container":      {"driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter", "operator-validator"},
	"vm-passthrough": {"sandbox-device-plugin", "sandbox-validator", "vfio-manager"},
	"vm-vgpu":        {"sandbox-device-plugin", "vgpu-manager", "vgpu-device-manager", "sandbox-validator"},
}

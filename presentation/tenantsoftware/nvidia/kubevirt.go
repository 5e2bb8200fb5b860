package nvidia

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/kubevirt"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// NVIDIA's KubeVirt device plugin, which its operator calls the sandbox device plugin. It names GPUs by a file in its image, so
// the image is pinned.
const (
	kubeVirtDevicePluginVersion = "v1.6.0"
	kubeVirtDevicePluginImage   = "nvcr.io/nvidia/kubevirt-gpu-device-plugin:" + kubeVirtDevicePluginVersion
)

// needsKubeVirtDevicePlugin reports whether NVIDIA's KubeVirt device plugin must advertise the NodeType's devices. KubeVirt
// advertises the others.
func needsKubeVirtDevicePlugin(n software.NodeType) bool {
	return slices.ContainsFunc(n.Plan.Tenant.HostDevices, func(d v1alpha1.PermittedHostDevice) bool { return d.External })
}

// needsPassthroughGate reports whether the DRA driver gives the NodeType's GPUs to virtual machines too.
func needsPassthroughGate(n software.NodeType) bool {
	return n.HasFeatureGate(wellknown.GatePassthrough)
}

// kubeVirtComponent returns the KubeVirt device plugin, unless the operator runs it, and the KubeVirt object.
func (t tenant) kubeVirtComponent() (software.Component, error) {
	object, err := t.kubeVirtObject()
	if err != nil || object == nil {
		return software.Component{}, err
	}
	out := software.Component{Name: "nvidia-kubevirt", About: "GPUs for KubeVirt's virtual machines: NVIDIA's KubeVirt device plugin, as NVIDIA's own manifest has it with a toleration of the gate,\n" +
		"and what KubeVirt must permit. Note: " + kubevirt.MergeNote + "."}
	if nodeTypes := software.Filter(t.virtualMachines, needsKubeVirtDevicePlugin); len(nodeTypes) > 0 && !t.hasOperatorDriver() {
		daemonSet, err := manifest.Object(kubeVirtDevicePluginDaemonSet(nodeTypes))
		if err != nil {
			return software.Component{}, err
		}
		out.Objects = append(out.Objects, daemonSet)
	}
	out.Objects = append(out.Objects, object)
	return out, nil
}

func kubeVirtDevicePluginDaemonSet(nodeTypes []software.NodeType) any {
	return manifest.DaemonSet("nvidia-kubevirt-gpu-dp-daemonset", map[string]string{"name": "nvidia-kubevirt-gpu-dp-ds"}, corev1.PodSpec{
		Affinity: software.NodeAffinity(nodeTypes), Tolerations: tolerations(nodeTypes),
		Containers: []corev1.Container{{
			Name: "nvidia-kubevirt-gpu-dp-ctr", Image: kubeVirtDevicePluginImage, SecurityContext: manifest.Unprivileged(),
			VolumeMounts: []corev1.VolumeMount{manifest.Mount("device-plugin", "/var/lib/kubelet/device-plugins"), manifest.Mount("vfio", "/dev/vfio")},
		}},
		Volumes: []corev1.Volume{manifest.HostPath("device-plugin", "/var/lib/kubelet/device-plugins", ""), manifest.HostPath("vfio", "/dev/vfio", "")},
	})
}

// kubeVirtCharts returns the KubeVirt object. KubeVirt has no chart, and the operator's chart brings the device plugin.
func (t tenant) kubeVirtCharts() ([]software.Chart, error) {
	object, err := t.kubeVirtObject()
	if err != nil || object == nil {
		return nil, err
	}
	return []software.Chart{{Name: "kubevirt", Namespace: object.GetNamespace(), Objects: []*unstructured.Unstructured{object}, Warnings: []string{kubevirt.MergeNote}}}, nil
}

// kubeVirtObject returns nil when no virtual machine gets a GPU. The error can be a *software.Conflict.
func (t tenant) kubeVirtObject() (*unstructured.Unstructured, error) {
	withDRA := slices.ContainsFunc(t.draDriver, needsPassthroughGate)
	if len(t.virtualMachines) == 0 && !withDRA {
		return nil, nil
	}
	return kubevirt.Object(t.virtualMachines, withDRA)
}

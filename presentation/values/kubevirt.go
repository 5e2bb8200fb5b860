package values

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// NVIDIA's KubeVirt device plugin, which its operator calls the sandbox device plugin. The names that it gives GPUs follow
// from the file in its image, so the image is pinned.
const sandboxImage = "nvcr.io/nvidia/kubevirt-gpu-device-plugin:v1.6.0"

// kubeVirtNote is what is left to people.
const kubeVirtNote = "the KubeVirt object is the part of it that follows from the NodeTypes: merge its lists with those of your own, for an applied list replaces the old one"

// kubeVirtPart is the device plugin of virtual machines' GPUs, and what KubeVirt must permit.
func (t tenant) kubeVirtPart() (Part, error) {
	virt, err := t.kubeVirt()
	if err != nil || virt == nil {
		return Part{}, err
	}
	out := Part{Name: "nvidia-kubevirt", About: "GPUs for KubeVirt's virtual machines: NVIDIA's KubeVirt device plugin, as NVIDIA's own manifest has it with a toleration of the gate,\n" +
		"and what KubeVirt must permit. Note: " + kubeVirtNote + "."}
	if nodes := only(t.vms, external); len(nodes) > 0 && !t.byOperator() {
		set, err := manifest.Object(sandboxSet(nodes))
		if err != nil {
			return Part{}, err
		}
		out.Objects = append(out.Objects, set)
	}
	out.Objects = append(out.Objects, virt)
	return out, nil
}

func sandboxSet(nodes []NodeType) any {
	return manifest.DaemonSet("nvidia-kubevirt-gpu-dp-daemonset", map[string]string{"name": "nvidia-kubevirt-gpu-dp-ds"}, corev1.PodSpec{
		Affinity: nodesOf(nodes), Tolerations: tolerations("nvidia.com/gpu", nodes),
		Containers: []corev1.Container{{
			Name: "nvidia-kubevirt-gpu-dp-ctr", Image: sandboxImage, SecurityContext: manifest.Unprivileged(),
			VolumeMounts: []corev1.VolumeMount{manifest.Mount("device-plugin", "/var/lib/kubelet/device-plugins"), manifest.Mount("vfio", "/dev/vfio")},
		}},
		Volumes: []corev1.Volume{manifest.HostPath("device-plugin", "/var/lib/kubelet/device-plugins", ""), manifest.HostPath("vfio", "/dev/vfio", "")},
	})
}

// kubeVirtChart is the same beside NVIDIA's operator, which runs the device plugin. KubeVirt has no chart.
func (t tenant) kubeVirtChart() ([]Chart, error) {
	virt, err := t.kubeVirt()
	if err != nil || virt == nil {
		return nil, err
	}
	return []Chart{{Name: "kubevirt", Namespace: virt.GetNamespace(), Objects: []*unstructured.Unstructured{virt}, Warnings: []string{kubeVirtNote}}}, nil
}

// kubeVirt is what KubeVirt must be told; nil: nothing. The error is a *Conflict.
func (t tenant) kubeVirt() (*unstructured.Unstructured, error) {
	byClaims := only(t.dra, func(n NodeType) bool { return slices.Contains(n.Plan.Tenant.FeatureGates, gatePassthrough) })
	if len(t.vms)+len(byClaims) == 0 {
		return nil, nil
	}
	gates := map[string]bool{}
	if len(byClaims) > 0 {
		gates["GPUsWithDRA"] = true
	}
	devices, err := hostDevices(t.vms)
	if err != nil {
		return nil, err
	}
	var pci, mediated []any
	for _, d := range devices {
		gates["GPU"] = true
		entry := map[string]any{"resourceName": d.ResourceName}
		if d.External {
			entry["externalResourceProvider"] = true
		}
		if d.MdevName != "" {
			gates["DisableMDEVConfiguration"] = true // Else KubeVirt removes what it did not make.
			entry["mdevNameSelector"] = d.MdevName
			mediated = append(mediated, entry)
		} else {
			entry["pciVendorSelector"] = d.PCISelector
			pci = append(pci, entry)
		}
	}
	permitted := map[string]any{}
	if pci != nil {
		permitted["pciHostDevices"] = pci
	}
	if mediated != nil {
		permitted["mediatedDevices"] = mediated
	}
	configuration := map[string]any{"developerConfiguration": map[string]any{"featureGates": manifest.Words(slices.Sorted(maps.Keys(gates)))}}
	if len(permitted) > 0 {
		configuration["permittedHostDevices"] = permitted
	}
	return manifest.Custom("kubevirt.io/v1", "KubeVirt", "kubevirt", "kubevirt", map[string]any{"configuration": configuration}), nil
}

// hostDevices that KubeVirt must permit, each once.
func hostDevices(nodeTypes []NodeType) ([]v1alpha1.PermittedHostDevice, error) {
	type owned struct {
		v1alpha1.PermittedHostDevice
		owner string
	}
	var all []owned
	for _, n := range nodeTypes {
		for _, d := range n.Plan.Tenant.HostDevices {
			for _, was := range all {
				if d.PCISelector != "" && was.PCISelector == d.PCISelector && was.PermittedHostDevice != d && (!d.External || !was.External) {
					return nil, &Conflict{NodeTypes: pair(was.owner, n.Name), Software: "KubeVirt", Message: "PCI device " + d.PCISelector + " would be advertised by KubeVirt itself and under another name too (" +
						was.ResourceName + ", " + d.ResourceName + "): choose one presentation for GPUs of one model, or a TenantCluster for each"}
				}
			}
			if !slices.ContainsFunc(all, func(was owned) bool { return was.PermittedHostDevice == d }) {
				all = append(all, owned{d, n.Name})
			}
		}
	}
	var out []v1alpha1.PermittedHostDevice
	for _, o := range all {
		out = append(out, o.PermittedHostDevice)
	}
	slices.SortFunc(out, func(a, b v1alpha1.PermittedHostDevice) int {
		return cmp.Or(strings.Compare(a.ResourceName, b.ResourceName), strings.Compare(a.PCISelector, b.PCISelector), strings.Compare(a.MdevName, b.MdevName))
	})
	return out, nil
}

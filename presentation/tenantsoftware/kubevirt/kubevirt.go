package kubevirt

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// MergeNote says what users must do with Object.
const MergeNote = "the KubeVirt object is the part of it that follows from the NodeTypes: merge its lists with those of your own, for an applied list replaces the old one; its fields are those of KubeVirt 1.8"

// Object returns the part of the KubeVirt object that follows from the NodeTypes: the host devices that it must permit, and its
// feature gates. They are those of KubeVirt 1.8 (its pkg/virt-config/featuregate): GPU is generally available there, and a field has replaced
// DisableMDEVConfiguration. withDRA is true when virtual machines also get GPUs by resource claims. The error can be a *software.Conflict.
func Object(nodeTypes []software.NodeType, withDRA bool) (*unstructured.Unstructured, error) {
	gates := map[string]bool{}
	if withDRA {
		gates[wellknown.KubeVirtGateGPUsWithDRA] = true
	}
	devices, err := hostDevices(nodeTypes)
	if err != nil {
		return nil, err
	}
	var pci, mediated []any
	for _, d := range devices {
		entry := map[string]any{"resourceName": d.ResourceName}
		if d.External {
			entry["externalResourceProvider"] = true
		}
		if d.MdevName != "" {
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
	configuration := map[string]any{"developerConfiguration": map[string]any{"featureGates": manifest.Strings(slices.Sorted(maps.Keys(gates)))}}
	if mediated != nil {
		// Otherwise KubeVirt removes mediated devices that it did not make.
		configuration["mediatedDevicesConfiguration"] = map[string]any{"enabled": false}
	}
	if len(permitted) > 0 {
		configuration["permittedHostDevices"] = permitted
	}
	return manifest.Custom("kubevirt.io/v1", "KubeVirt", "kubevirt", "kubevirt", map[string]any{"configuration": configuration}), nil
}

// hostDevices returns the devices that KubeVirt must permit, each once.
func hostDevices(nodeTypes []software.NodeType) ([]v1alpha1.PermittedHostDevice, error) {
	var out []v1alpha1.PermittedHostDevice
	nodeTypeOf := map[v1alpha1.PermittedHostDevice]string{}
	for _, n := range nodeTypes {
		for _, d := range n.Plan.Tenant.HostDevices {
			if other, found := contradicting(out, d); found {
				return nil, software.NewConflict(nodeTypeOf[other], n.Name, "KubeVirt", "PCI device "+d.PCISelector+" would be advertised by KubeVirt itself and under another name too ("+
					other.ResourceName+", "+d.ResourceName+"): choose one presentation for GPUs of one model, or a TenantCluster for each")
			}
			if _, listed := nodeTypeOf[d]; !listed {
				out, nodeTypeOf[d] = append(out, d), n.Name
			}
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.PermittedHostDevice) int {
		return cmp.Or(strings.Compare(a.ResourceName, b.ResourceName), strings.Compare(a.PCISelector, b.PCISelector), strings.Compare(a.MdevName, b.MdevName))
	})
	return out, nil
}

// contradicting returns the device among those listed that has the PCI ids of d and would be advertised in another way. Several
// external device plugins may advertise one PCI id under different names, each on nodes of its own; KubeVirt advertises it on all nodes.
func contradicting(listed []v1alpha1.PermittedHostDevice, d v1alpha1.PermittedHostDevice) (v1alpha1.PermittedHostDevice, bool) {
	i := slices.IndexFunc(listed, func(other v1alpha1.PermittedHostDevice) bool {
		return d.PCISelector != "" && other.PCISelector == d.PCISelector && other != d && (!d.External || !other.External)
	})
	if i < 0 {
		return v1alpha1.PermittedHostDevice{}, false
	}
	return listed[i], true
}

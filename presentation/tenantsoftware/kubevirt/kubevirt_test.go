package kubevirt

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// nodeType returns a NodeType whose virtual machines may have the devices.
func nodeType(name string, devices ...v1alpha1.PermittedHostDevice) software.NodeType {
	n := software.NodeType{Name: name}
	n.Plan.Tenant.HostDevices = devices
	return n
}

func TestTheKubeVirtObjectPermitsTheDevicesOfTheNodeTypes(t *testing.T) {
	h100 := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2330", ResourceName: "nvidia.com/GH100_H100_SXM5_80GB", External: true}
	own := v1alpha1.PermittedHostDevice{PCISelector: "10DE:20B5", ResourceName: "nvidia.com/a100"}
	vgpu := v1alpha1.PermittedHostDevice{MdevName: "NVIDIA A10-12Q", ResourceName: "nvidia.com/NVIDIA_A10-12Q", External: true}
	smaller := v1alpha1.PermittedHostDevice{MdevName: "NVIDIA A10-8Q", ResourceName: "nvidia.com/NVIDIA_A10-8Q"}
	alias := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2330", ResourceName: "nvidia.com/another", External: true}
	sameName := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2331", ResourceName: h100.ResourceName, External: true}
	sameMdevName := v1alpha1.PermittedHostDevice{MdevName: "NVIDIA A10-24Q", ResourceName: vgpu.ResourceName, External: true}
	for _, c := range []struct {
		name      string
		nodeTypes []software.NodeType
		withDRA   bool
		want      string
	}{
		{"nothing is permitted without NodeTypes", nil, false, `{"developerConfiguration":{"featureGates":[]}}`},
		{"nothing is permitted to NodeTypes without devices", []software.NodeType{nodeType("a")}, false, `{"developerConfiguration":{"featureGates":[]}}`},
		{"resource claims need only their own feature gate", nil, true, `{"developerConfiguration":{"featureGates":["GPUsWithDRA"]}}`},
		{"resource claims and host devices need the feature gate of the claims", []software.NodeType{nodeType("a", own)}, true,
			`{"developerConfiguration":{"featureGates":["GPUsWithDRA"]},"permittedHostDevices":{"pciHostDevices":[` +
				`{"pciVendorSelector":"10DE:20B5","resourceName":"nvidia.com/a100"}]}}`},
		{"a PCI device of another device plugin is external", []software.NodeType{nodeType("a", h100)}, false,
			`{"developerConfiguration":{"featureGates":[]},"permittedHostDevices":{"pciHostDevices":[` +
				`{"externalResourceProvider":true,"pciVendorSelector":"10DE:2330","resourceName":"nvidia.com/GH100_H100_SXM5_80GB"}]}}`},
		{"KubeVirt must not remove mediated devices", []software.NodeType{nodeType("a", vgpu, smaller)}, false,
			`{"developerConfiguration":{"featureGates":[]},"mediatedDevicesConfiguration":{"enabled":false},"permittedHostDevices":{"mediatedDevices":[` +
				`{"externalResourceProvider":true,"mdevNameSelector":"NVIDIA A10-12Q","resourceName":"nvidia.com/NVIDIA_A10-12Q"},` +
				`{"mdevNameSelector":"NVIDIA A10-8Q","resourceName":"nvidia.com/NVIDIA_A10-8Q"}]}}`},
		{"a device of two NodeTypes is permitted once", []software.NodeType{nodeType("a", own), nodeType("b", own, own)}, false,
			`{"developerConfiguration":{"featureGates":[]},"permittedHostDevices":{"pciHostDevices":[` +
				`{"pciVendorSelector":"10DE:20B5","resourceName":"nvidia.com/a100"}]}}`},
		{"device plugins on different nodes may advertise one PCI id under two names", []software.NodeType{nodeType("a", alias), nodeType("b", h100)}, false,
			`{"developerConfiguration":{"featureGates":[]},"permittedHostDevices":{"pciHostDevices":[` +
				`{"externalResourceProvider":true,"pciVendorSelector":"10DE:2330","resourceName":"nvidia.com/GH100_H100_SXM5_80GB"},` +
				`{"externalResourceProvider":true,"pciVendorSelector":"10DE:2330","resourceName":"nvidia.com/another"}]}}`},
		{"devices of one name are in the order of their PCI ids or types", []software.NodeType{nodeType("a", sameName, sameMdevName, h100, vgpu)}, false,
			`{"developerConfiguration":{"featureGates":[]},"mediatedDevicesConfiguration":{"enabled":false},"permittedHostDevices":{"mediatedDevices":[` +
				`{"externalResourceProvider":true,"mdevNameSelector":"NVIDIA A10-12Q","resourceName":"nvidia.com/NVIDIA_A10-12Q"},` +
				`{"externalResourceProvider":true,"mdevNameSelector":"NVIDIA A10-24Q","resourceName":"nvidia.com/NVIDIA_A10-12Q"}],"pciHostDevices":[` +
				`{"externalResourceProvider":true,"pciVendorSelector":"10DE:2330","resourceName":"nvidia.com/GH100_H100_SXM5_80GB"},` +
				`{"externalResourceProvider":true,"pciVendorSelector":"10DE:2331","resourceName":"nvidia.com/GH100_H100_SXM5_80GB"}]}}`},
	} {
		o, err := Object(c.nodeTypes, c.withDRA)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		spec, _ := o.Object["spec"].(map[string]any)
		got, err := json.Marshal(spec["configuration"])
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, error %v\nwant %s", c.name, got, err, c.want)
		}
	}
}

func TestAPCIDeviceIsNotAdvertisedByKubeVirtAndUnderAnotherName(t *testing.T) {
	own := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2330", ResourceName: "nvidia.com/own"}
	external := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2330", ResourceName: "nvidia.com/external", External: true}
	second := v1alpha1.PermittedHostDevice{PCISelector: "10DE:2330", ResourceName: "nvidia.com/second"}
	for name, pair := range map[string][2]v1alpha1.PermittedHostDevice{
		"first by KubeVirt":       {own, external},
		"first by another plugin": {external, own},
		"twice by KubeVirt":       {own, second},
	} {
		_, err := Object([]software.NodeType{nodeType("unrelated"), nodeType("b", pair[0]), nodeType("a", pair[1])}, false)
		want := software.Conflict{NodeTypes: [2]string{"a", "b"}, Software: "KubeVirt", Message: "PCI device 10DE:2330 would be advertised by KubeVirt itself and under another name too (" +
			pair[0].ResourceName + ", " + pair[1].ResourceName + "): choose one presentation for GPUs of one model, or a TenantCluster for each"}
		var conflict *software.Conflict
		if !errors.As(err, &conflict) || *conflict != want {
			t.Errorf("%s: got %v, want %v", name, err, &want)
		}
	}
}

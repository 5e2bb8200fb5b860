package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// NodeExpectation is everything that a node must show before it is admitted. What is absent is not promised and not checked.
type NodeExpectation struct {
	// resources whose capacity and allocatable must both equal the quantity: extended resources and hugepages, sorted by name.
	// +optional
	// +listType=atomic
	Resources []ExpectedResource `json:"resources,omitempty"`
	// cpu that the node's capacity must equal; absent: not promised.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory of which the node's capacity must be 95% to 100%: firmware and kernel keep some; absent: not promised.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// ephemeralStorage that the node's capacity must reach; absent: not promised.
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty"`
	// absentPrefixes begin the names of resources that must be absent, unless resources has that very name. A key with
	// the value 0 counts as absent: kubelet keeps the names of earlier plugins at 0 until the Node object is deleted. Under nvidia.com/ and amd.com/ these are the
	// names by which GPU software advertises; what other plugins advertise there is listed in the verdict and not judged.
	// +optional
	// +listType=atomic
	AbsentPrefixes []string `json:"absentPrefixes,omitempty"`
	// kernel is the release, or its leading numbers, that nodeInfo must show; empty: not checked.
	// +optional
	Kernel string `json:"kernel,omitempty"`
	// kubelet is the version, without v, that nodeInfo must show; empty: not checked.
	// +optional
	Kubelet string `json:"kubelet,omitempty"`
	// labels whose value, where the node has the label at all, must be this one. Who sets them is not part of every cluster.
	// +optional
	// +listType=atomic
	Labels []ExpectedLabel `json:"labels,omitempty"`
	// labelRules are rules for labels by which a vendor's software tells which GPUs it found, where the node has the label at all.
	// +optional
	// +listType=atomic
	LabelRules []ExpectedLabelRule `json:"labelRules,omitempty"`
	// gpuModes that the node's own unit must report: Disabled, Enabled or N/A for each GPU by its index, as nvidia-smi calls the MIG mode; empty: the
	// node makes no report.
	// +optional
	// +listType=atomic
	GPUModes []string `json:"gpuModes,omitempty"`
	// containerdReport says that the node's own unit must report that containerd and NVIDIA's container toolkit have what the node needs; false: a
	// report is judged where there is one.
	// +optional
	ContainerdReport bool `json:"containerdReport,omitempty"`
	// slices that DRA drivers must publish for the node, sorted by driver.
	// +optional
	// +listType=atomic
	Slices []ExpectedSlices `json:"slices,omitempty"`
	// absentDrivers are DRA drivers that must publish no device for the node: the same GPUs would be given away twice.
	// +optional
	// +listType=atomic
	AbsentDrivers []string `json:"absentDrivers,omitempty"`
}

// IsForeign reports whether a resource of that name must be absent from the node, if GPU software advertises it.
func (e NodeExpectation) IsForeign(name corev1.ResourceName) bool {
	for _, r := range e.Resources {
		if r.Name == name {
			return false
		}
	}
	for _, p := range e.AbsentPrefixes {
		if strings.HasPrefix(string(name), p) {
			return true
		}
	}
	return false
}

// ExpectedResource is a resource that a node must advertise.
type ExpectedResource struct {
	// name of the resource.
	// +required
	Name corev1.ResourceName `json:"name"`
	// quantity promised.
	// +required
	Quantity resource.Quantity `json:"quantity"`
	// waits says that it appears some time after the boot, so that less than promised is no failure yet.
	// +optional
	Waits bool `json:"waits,omitempty"`
	// hint says where to look when it is not as promised.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// ExpectedLabel is a label that a vendor's software sets to tell what it found.
type ExpectedLabel struct {
	// check names the check: software/gpu-driver.
	// +required
	Check string `json:"check"`
	// key of the label.
	// +required
	Key string `json:"key"`
	// value expected.
	// +optional
	Value string `json:"value,omitempty"`
	// passing are values that the label has while the software that sets it still works.
	// +optional
	// +listType=atomic
	Passing []string `json:"passing,omitempty"`
	// hint says where to look when it differs.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// ExpectedLabelRule is a rule for a label whose value is not known beforehand.
type ExpectedLabelRule struct {
	// check names the check: label/nvidia.com/gpu.product.
	// +required
	Check string `json:"check"`
	// key of the label.
	// +required
	Key string `json:"key"`
	// range in which the value must be.
	// +optional
	Range *ExpectedRange `json:"range,omitempty"`
	// product that the value must name.
	// +optional
	Product *ExpectedProduct `json:"product,omitempty"`
	// hint says where to look when it is not as promised.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// ExpectedRange is a range of quantities. It includes both ends.
type ExpectedRange struct {
	// minimum of the range.
	// +required
	Minimum resource.Quantity `json:"minimum"`
	// maximum of the range.
	// +required
	Maximum resource.Quantity `json:"maximum"`
}

// ExpectedProduct says by its words which names a product has. A word is a run of letters and digits, in upper case.
type ExpectedProduct struct {
	// words that every name of the product has.
	// +optional
	// +listType=atomic
	Words []string `json:"words,omitempty"`
	// absentWords are words of other products, which no name of this product has.
	// +optional
	// +listType=atomic
	AbsentWords []string `json:"absentWords,omitempty"`
	// suffixes are the ends of which the name must have one; empty: any end.
	// +optional
	// +listType=atomic
	Suffixes []string `json:"suffixes,omitempty"`
}

// ExpectedSlices is what one DRA driver must publish for a node, in as many ResourceSlices as it likes. Names of
// devices are never compared: the driver's documentation and its code disagree about them.
type ExpectedSlices struct {
	// driver that publishes: gpu.nvidia.com.
	// +required
	Driver string `json:"driver"`
	// deviceClasses that must exist, and whose selectors must select exactly so many of the node's devices.
	// +optional
	// +listType=atomic
	DeviceClasses []ExpectedDeviceClass `json:"deviceClasses,omitempty"`
	// devices that must be published. A device of the driver that belongs to none of them is foreign.
	// +optional
	// +listType=atomic
	Devices []ExpectedDevices `json:"devices,omitempty"`
	// gpuAttribute has the same value in all devices that are forms of one GPU, where the driver publishes each GPU in every kind of devices, and
	// withdraws the other forms while a claim holds one. All forms must be there until the node is admitted, and one of each GPU from then on. Absent:
	// each device is a part of its own.
	// +optional
	GPUAttribute string `json:"gpuAttribute,omitempty"`
	// hint says where to look when it is not as promised.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// ExpectedDeviceClass is a DeviceClass that claims name.
type ExpectedDeviceClass struct {
	// name of the DeviceClass.
	// +required
	Name string `json:"name"`
	// count of the node's devices that its selectors must select.
	// +required
	Count int `json:"count"`
}

// ExpectedDevices is so many devices of one kind.
type ExpectedDevices struct {
	// type is the value of the device's attribute type: gpu, mig.
	// +optional
	Type string `json:"type,omitempty"`
	// profiles are the accepted values of the attribute profile, the variants of one profile's name; empty: not compared.
	// +optional
	// +listType=atomic
	Profiles []string `json:"profiles,omitempty"`
	// count of such devices.
	// +required
	Count int `json:"count"`
	// attributes by name, each with the values that are accepted. A device that lacks one is not as promised, unless
	// the name is in optional. Names without a domain belong to the driver's. Versions are listed in every form that is accepted.
	// +optional
	Attributes map[string][]string `json:"attributes,omitempty"`
	// optional are the attributes that are compared only where the device has them.
	// +optional
	// +listType=atomic
	Optional []string `json:"optional,omitempty"`
	// products by the name of the attribute that must name them.
	// +optional
	Products map[string]ExpectedProduct `json:"products,omitempty"`
	// capacities by name, each with the range in which it must be.
	// +optional
	Capacities map[string]ExpectedRange `json:"capacities,omitempty"`
}

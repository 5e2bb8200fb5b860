package plan

// SliceExpectation is what one DRA driver must publish for a node, in as many ResourceSlices as it likes. Names of
// devices are never compared: the driver's documentation and its code disagree about them.
type SliceExpectation struct {
	// Driver that publishes: gpu.nvidia.com.
	Driver string
	// DeviceClasses that must exist, and whose selectors must select exactly so many of the node's devices.
	DeviceClasses []DeviceClassExpectation
	// Devices that must be published. A device of the driver that belongs to none of them is foreign.
	Devices []DeviceExpectation
	// Hint says where to look when it is not as promised.
	Hint string
}

// DeviceClassExpectation is a DeviceClass that claims name.
type DeviceClassExpectation struct {
	// Name of the DeviceClass.
	Name string
	// Count of the node's devices that its selectors must select.
	Count int
}

// DeviceExpectation is so many devices of one kind.
type DeviceExpectation struct {
	// Type is the value of the device's attribute type: gpu, mig.
	Type string
	// Profiles are the accepted values of the attribute profile, the variants of one profile's name; empty: not compared.
	Profiles []string
	// Count of such devices.
	Count int
	// Attributes by name, each with the values that are accepted. A device that lacks one is not as promised, unless
	// the name is in Optional. Names without a domain belong to the driver's. Versions are listed in every form that is accepted.
	Attributes map[string][]string
	// Optional are the attributes that are compared only where the device has them.
	Optional []string
}

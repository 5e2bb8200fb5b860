package pci

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Drivers that hold devices for virtual machines.
const (
	VFIO  = "vfio-pci"
	Grace = "nvgrace_gpu_vfio_pci"
)

// Device is a PCI function on the bus.
type Device struct {
	hardware.PCIDevice
	// Driver is the driver that is bound to the device, or empty.
	Driver string
	// PhysicalFunction is set for a virtual function.
	PhysicalFunction *Device
	// VirtualFunctions are the virtual functions while they are enabled.
	VirtualFunctions []*Device
	// VGPUType is the id of a virtual function's vGPU type, or 0.
	VGPUType int
	// MediatedDevices are the type names of the mediated devices, one for each device.
	MediatedDevices []string

	override                       string
	compute, memory, pendingMemory string
}

// Options configure a Bus.
type Options struct {
	Devices []hardware.PCIDevice
	// Kernel is what uname -r prints.
	Kernel string
	// Arguments of the kernel's command line.
	Arguments []string
	// IOMMU means that firmware and kernel turn the IOMMU on by default, as on Arm and with AMD's CPUs.
	IOMMU bool
	// VGPUTypes returns the vGPU types of a device id; nil means that there are none.
	VGPUTypes func(deviceID string) []VGPUType
	// VGPUManager means that NVIDIA's driver is the vGPU manager.
	VGPUManager bool
}

// VGPUType is a type of NVIDIA's virtual GPUs.
type VGPUType struct {
	// ID is the driver's number of the type, Name its name, such as NVIDIA A40-12Q.
	ID   int
	Name string
	// Max is how many virtual GPUs of the type one GPU can have.
	Max int
}

// Bus is the PCI bus during one boot.
type Bus struct {
	options Options
	devices []*Device
	iommu   bool
	// drivers are the parameters of the loaded modules, by module.
	drivers map[string]map[string]string
	// hasDisplayDevice means that a display had taken a device number when AMD's driver started.
	hasDisplayDevice bool
}

// New returns a bus without any loaded modules.
func New(options Options) *Bus {
	b := &Bus{options: options, drivers: map[string]map[string]string{}, iommu: options.IOMMU}
	for _, argument := range options.Arguments {
		switch argument {
		case "intel_iommu=on":
			b.iommu = true
		case "intel_iommu=off", "amd_iommu=off", "iommu=off":
			b.iommu = false
		}
	}
	for _, d := range options.Devices {
		b.devices = append(b.devices, &Device{PCIDevice: d})
	}
	return b
}

// Devices returns all functions, physical ones first.
func (b *Bus) Devices() []*Device {
	out := slices.Clone(b.devices)
	for _, d := range b.devices {
		out = append(out, d.VirtualFunctions...)
	}
	return out
}

// IOMMU reports whether the IOMMU is on, so that devices can be passed to virtual machines.
func (b *Bus) IOMMU() bool { return b.iommu }

// Find returns the device at the address, or nil.
func (b *Bus) Find(address string) *Device {
	for _, d := range b.Devices() {
		if d.Address == address {
			return d
		}
	}
	return nil
}

// moduleDrivers are the drivers of modules, with the vendor and the beginnings of class and device id of the devices that
// they bind to by themselves. Any other module has a driver of its own name that binds to nothing by itself.
var moduleDrivers = map[string]struct{ driver, vendor, class, device string }{
	"nouveau":              {"nouveau", nvidiaVendor, "03", ""},
	"nvidia":               {"nvidia", nvidiaVendor, "03", ""},
	"amdgpu":               {"amdgpu", amdVendor, "", "74"},
	"ast":                  {"ast", "1a03", "03", ""},
	"habanalabs":           {"habanalabs", "1da3", "", ""},
	"xocl":                 {"xocl", "10ee", "", "50"},
	"vfio_pci":             {VFIO, "-", "", ""},
	"nvgrace_gpu_vfio_pci": {Grace, "-", "", ""},
}

const (
	nvidiaVendor = "10de"
	amdVendor    = "1002"
)

// RequestedModules returns the modules that udev loads for the devices unless they are blacklisted.
func (b *Bus) RequestedModules() []string {
	var out []string
	for _, module := range slices.Sorted(maps.Keys(moduleDrivers)) {
		if slices.ContainsFunc(b.devices, func(d *Device) bool { return isDriverFor(module, d) }) {
			out = append(out, module)
		}
	}
	return out
}

func isDriverFor(module string, d *Device) bool {
	k, ok := moduleDrivers[module]
	return ok && d.VendorID == k.vendor && strings.HasPrefix(d.Class, k.class) && strings.HasPrefix(d.DeviceID, k.device) && d.PhysicalFunction == nil
}

// LoadModule loads a module with its parameters. Its driver binds to the matching devices that have no driver.
func (b *Bus) LoadModule(module string, parameters map[string]string) {
	if _, there := b.drivers[module]; there {
		return
	}
	b.drivers[module] = parameters
	for _, d := range b.Devices() {
		b.probe(d)
	}
}

// UnloadModule unloads a module and unbinds its driver.
func (b *Bus) UnloadModule(module string) {
	if _, there := b.drivers[module]; !there {
		return
	}
	delete(b.drivers, module)
	for _, d := range b.Devices() {
		if d.Driver == driverOf(module) {
			b.unbind(d)
		}
	}
}

// Modules returns the loaded modules.
func (b *Bus) Modules() []string { return slices.Sorted(maps.Keys(b.drivers)) }

func driverOf(module string) string {
	if k, ok := moduleDrivers[module]; ok {
		return k.driver
	}
	return module
}

// HasDisplayDevice reports whether a display takes one of the device numbers that the partitions of AMD's GPUs share (ROCm,
// "MI300X troubleshooting").
func (b *Bus) HasDisplayDevice() bool { return b.hasDisplayDevice }

// probe binds a driver to a device that has none.
func (b *Bus) probe(d *Device) {
	if d.Driver != "" {
		return
	}
	for _, module := range b.Modules() {
		if b.canBind(module, d) && b.bind(module, d) == nil {
			return
		}
	}
}

func (b *Bus) canBind(module string, d *Device) bool {
	if d.override != "" {
		return d.override == driverOf(module)
	}
	if module == "vfio_pci" {
		return slices.ContainsFunc(strings.Split(b.drivers[module]["ids"], ","), func(id string) bool {
			return strings.EqualFold(id, d.VendorID+":"+d.DeviceID)
		})
	}
	return isDriverFor(module, d)
}

func (b *Bus) bind(module string, d *Device) error {
	driver := driverOf(module)
	if (driver == VFIO || driver == Grace) && !b.iommu {
		return fmt.Errorf("%s: probe of %s failed with error -22: the device is in no IOMMU group", driver, d.Address)
	}
	d.Driver = driver
	if driver == "amdgpu" {
		d.resetPartitions()
		b.hasDisplayDevice = slices.ContainsFunc(b.devices, func(d *Device) bool { return d.Driver == "ast" })
	}
	return nil
}

func (b *Bus) unbind(d *Device) {
	if d.Driver == "nvidia" {
		d.VirtualFunctions, d.MediatedDevices = nil, nil
	}
	d.Driver = ""
}

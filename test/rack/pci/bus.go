package pci

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Drivers that hold devices for others than the system itself.
const (
	VFIO  = "vfio-pci"
	Grace = "nvgrace_gpu_vfio_pci"
)

// Device is a function on the bus.
type Device struct {
	hardware.PCIDevice
	// Driver holds it; empty: none.
	Driver string
	// Physical is the function that this one is a virtual part of; nil: it is none.
	PhysicalFunction *Device
	// Functions are its virtual functions, while they are enabled.
	VirtualFunctions []*Device
	// VirtualType is the id of a virtual function's vGPU type, 0 for none.
	VGPUType int
	// Mediated are the types of the mediated devices that were made of it, one for each.
	MediatedDevices []string

	override                       string
	compute, memory, pendingMemory string
}

// Options are what a bus follows from.
type Options struct {
	Devices []hardware.PCIDevice
	// Kernel is what uname -r prints.
	Kernel string
	// Arguments of the kernel's command line.
	Arguments []string
	// IOMMU says that the firmware and the kernel turn it on without being told, as on Arm and with AMD's CPUs.
	IOMMU bool
	// Types says which vGPU types NVIDIA's device of that id can have; nil: none.
	VGPUTypes func(deviceID string) []VGPUType
	// Manager says that NVIDIA's driver is the vGPU manager.
	VGPUManager bool
}

// VirtualType is a type of NVIDIA's virtual GPUs.
type VGPUType struct {
	// ID is the driver's number of it, Name what it calls it: NVIDIA A40-12Q.
	ID   int
	Name string
	// Max is how many one GPU can have of it.
	Max int
}

// Bus is the bus in one boot.
type Bus struct {
	options Options
	devices []*Device
	iommu   bool
	// drivers are the registered ones, by the module that brought them.
	drivers map[string]map[string]string
	// crowded: a display had its device number when AMD's driver started.
	hasDisplayDevice bool
}

// New is the bus before any module is loaded.
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

// Devices are those on the bus, physical functions first.
func (b *Bus) Devices() []*Device {
	out := slices.Clone(b.devices)
	for _, d := range b.devices {
		out = append(out, d.VirtualFunctions...)
	}
	return out
}

// IOMMU says whether devices can be given to virtual machines.
func (b *Bus) IOMMU() bool { return b.iommu }

// Find is the device at the address, nil where there is none.
func (b *Bus) Find(address string) *Device {
	for _, d := range b.Devices() {
		if d.Address == address {
			return d
		}
	}
	return nil
}

// known are the PCI drivers that modules bring, with the vendor, and the begin of class and device id, of what they take by
// themselves. What is not listed brings a driver of its own name that takes nothing by itself.
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

// Loads are the modules that udev asks for because of the devices: a blacklisted one is refused by whoever is asked.
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

// Loaded tells the bus of a module that was loaded, with its parameters; it takes what no other driver holds.
func (b *Bus) LoadModule(module string, parameters map[string]string) {
	if _, there := b.drivers[module]; there {
		return
	}
	b.drivers[module] = parameters
	for _, d := range b.Devices() {
		b.probe(d)
	}
}

// Unloaded tells the bus of a module that has gone.
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

// Modules are those that the bus was told of.
func (b *Bus) Modules() []string { return slices.Sorted(maps.Keys(b.drivers)) }

func driverOf(module string) string {
	if k, ok := moduleDrivers[module]; ok {
		return k.driver
	}
	return module
}

// Crowded says whether a display took one of the device numbers that the partitions of AMD's GPUs share (ROCm, "MI300X
// troubleshooting").
func (b *Bus) HasDisplayDevice() bool { return b.hasDisplayDevice }

// probe finds a driver for a device that has none.
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

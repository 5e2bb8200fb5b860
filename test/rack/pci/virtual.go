package pci

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// virtualFunctions is the number of virtual functions of NVIDIA's GPUs from Ampere on. The actual numbers differ by model
// and are not documented.
const virtualFunctions = 32

// turingDevices are the ids of NVIDIA's GPUs without virtual functions.
var turingDevices = []string{"1eb8", "1e30", "1e78"}

// hasMediatedDevices reports whether the kernel offers mediated devices for the GPU: for Turing always, for newer ones
// before Linux 6.8.
func (b *Bus) hasMediatedDevices(d *Device) bool {
	if slices.Contains(turingDevices, d.DeviceID) {
		return true
	}
	major, rest, _ := strings.Cut(b.options.Kernel, ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, _ := strconv.Atoi(major)
	y, _ := strconv.Atoi(minor)
	return x < 6 || x == 6 && y < 8
}

// vgpuManagerGPUs returns the GPUs that the vGPU manager drives.
func (b *Bus) vgpuManagerGPUs() []*Device {
	if !b.options.VGPUManager {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.devices), func(d *Device) bool { return d.Driver != "nvidia" })
}

// EnableVirtualFunctions does what sriov-manage -e ALL does.
func (b *Bus) EnableVirtualFunctions() error {
	gpus := b.vgpuManagerGPUs()
	if len(gpus) == 0 || !b.iommu {
		return errors.New("sriov-manage: no GPU has virtual functions: the vGPU manager does not run, or the IOMMU is off")
	}
	for _, d := range gpus {
		if len(d.VirtualFunctions) > 0 || slices.Contains(turingDevices, d.DeviceID) {
			continue
		}
		for n := range virtualFunctions {
			f := &Device{PCIDevice: d.PCIDevice, PhysicalFunction: d, Driver: d.Driver}
			f.Address = fmt.Sprintf("%s:%02x.%x", d.Address[:7], n/8, n%8)
			if n < 8 {
				f.Address = fmt.Sprintf("%s:04.%x", d.Address[:7], n) // function 0 of device 0 is the GPU itself
			}
			d.VirtualFunctions = append(d.VirtualFunctions, f)
		}
	}
	return nil
}

// CreateMediatedDevices replaces the GPU's mediated devices by the given number of each type. The types are without the
// first word of the driver's names.
func (b *Bus) CreateMediatedDevices(d *Device, types map[string]int) error {
	if !slices.Contains(b.vgpuManagerGPUs(), d) || !b.hasMediatedDevices(d) {
		return fmt.Errorf("%s: no parent device in /sys/class/mdev_bus", d.Address)
	}
	if !slices.Contains(turingDevices, d.DeviceID) && len(d.VirtualFunctions) == 0 {
		return fmt.Errorf("%s: no virtual functions are enabled", d.Address)
	}
	var made []string
	for name, count := range types {
		at := slices.IndexFunc(b.vgpuTypes(d), func(t VGPUType) bool { return strings.HasSuffix(t.Name, " "+name) })
		if at < 0 || b.vgpuTypes(d)[at].Max < count {
			return fmt.Errorf("%s: %d of vGPU type %s are not available", d.Address, count, name)
		}
		made = append(made, slices.Repeat([]string{b.vgpuTypes(d)[at].Name}, count)...)
	}
	slices.Sort(made)
	d.MediatedDevices = made
	return nil
}

func (b *Bus) vgpuTypes(d *Device) []VGPUType {
	if b.options.VGPUTypes == nil {
		return nil
	}
	return b.options.VGPUTypes(d.DeviceID)
}

// VGPUTypeName returns the name of a virtual function's vGPU type, or "".
func (b *Bus) VGPUTypeName(f *Device) string {
	for _, t := range b.vgpuTypes(f) {
		if t.ID == f.VGPUType && f.VGPUType != 0 {
			return t.Name
		}
	}
	return ""
}

// creatableTypes returns the types that a function without one can get. All virtual GPUs of a time-shared GPU have the same
// type.
func (b *Bus) creatableTypes(f *Device) []VGPUType {
	used := map[int]int{}
	for _, other := range f.PhysicalFunction.VirtualFunctions {
		if other.VGPUType != 0 {
			used[other.VGPUType]++
		}
	}
	if f.VGPUType != 0 {
		return nil
	}
	return slices.DeleteFunc(b.vgpuTypes(f), func(t VGPUType) bool {
		return len(used) > 0 && used[t.ID] == 0 || used[t.ID] >= t.Max
	})
}

func (b *Bus) setVGPUType(f *Device, text string) error {
	id, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return errors.New("write error: invalid argument")
	}
	if id != 0 && !slices.ContainsFunc(b.creatableTypes(f), func(t VGPUType) bool { return t.ID == id }) {
		return fmt.Errorf("write error: invalid argument: vGPU type %d is not creatable", id)
	}
	f.VGPUType = id
	return nil
}

// SetVGPUManager sets whether NVIDIA's driver is the vGPU manager, for a driver that comes in a pod.
func (b *Bus) SetVGPUManager(manager bool) { b.options.VGPUManager = manager }

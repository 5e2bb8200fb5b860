package pci

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

const (
	devicesFolder = "/sys/bus/pci/devices"
	driversFolder = "/sys/bus/pci/drivers/"
	modulesFolder = "/sys/module/"
	probeFile     = "/sys/bus/pci/drivers_probe"
)

// locate returns the device for a path below devicesFolder, and the rest of the path.
func (b *Bus) locate(path string) (*Device, string) {
	rest, ok := strings.CutPrefix(path, devicesFolder+"/")
	if !ok {
		return nil, ""
	}
	address, rest, _ := strings.Cut(rest, "/")
	d := b.Find(address)
	for d != nil {
		word, after, _ := strings.Cut(rest, "/")
		number, isVirtual := strings.CutPrefix(word, "virtfn")
		switch n, err := strconv.Atoi(number); {
		case isVirtual && err == nil && n < len(d.VirtualFunctions):
			d, rest = d.VirtualFunctions[n], after
		case word == "physfn" && d.PhysicalFunction != nil:
			d, rest = d.PhysicalFunction, after
		default:
			return d, rest
		}
	}
	return nil, ""
}

// attributes returns the files of the device with their content.
func (b *Bus) attributes(d *Device) map[string]string {
	out := map[string]string{
		"vendor": "0x" + d.VendorID, "device": "0x" + d.DeviceID, "class": "0x" + d.Class, "driver_override": d.override,
	}
	if d.override == "" {
		out["driver_override"] = "(null)"
	}
	if compute, memory := d.Partition(); compute != "" {
		out["current_compute_partition"], out["current_memory_partition"] = compute, memory
	}
	if d.Driver != "" {
		out["driver/unbind"], out["driver/bind"] = "", ""
	}
	if d.PhysicalFunction != nil && !b.hasMediatedDevices(d) {
		list := "ID    : vGPU Name\n"
		for _, t := range b.creatableTypes(d) {
			list += fmt.Sprintf("%-6d: %s\n", t.ID, t.Name)
		}
		out["nvidia/current_vgpu_type"], out["nvidia/creatable_vgpu_types"] = strconv.Itoa(d.VGPUType), strings.TrimSuffix(list, "\n")
	}
	return out
}

// ReadFile reads a file of sysfs or /proc/cmdline.
func (b *Bus) ReadFile(path string) ([]byte, error) {
	if path == "/proc/cmdline" {
		return []byte(strings.Join(b.options.Arguments, " ") + "\n"), nil
	}
	if d, rest := b.locate(path); d != nil {
		if text, ok := b.attributes(d)[rest]; ok {
			return []byte(text + "\n"), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// WriteFile writes to a file of sysfs.
func (b *Bus) WriteFile(path string, content []byte) error {
	text := strings.TrimSpace(string(content))
	if path == probeFile {
		if d := b.Find(text); d != nil {
			b.probe(d)
			return nil
		}
		return fmt.Errorf("%s: write error: no such device", path)
	}
	if driver, action, ok := strings.Cut(strings.TrimPrefix(path, driversFolder), "/"); ok && strings.HasPrefix(path, driversFolder) {
		return b.writeDriverFile(driver, action, text)
	}
	d, rest := b.locate(path)
	if d == nil {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if _, there := b.attributes(d)[rest]; !there {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	switch rest {
	case "driver_override":
		d.override = text
	case "driver/unbind", "driver/bind":
		return b.writeDriverFile(d.Driver, strings.TrimPrefix(rest, "driver/"), text)
	case "current_compute_partition":
		return d.SetPartition("compute", text)
	case "current_memory_partition":
		return d.SetPartition("memory", text)
	case "nvidia/current_vgpu_type":
		return b.setVGPUType(d, text)
	default:
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	return nil
}

// writeDriverFile writes an address to a driver's bind or unbind file.
func (b *Bus) writeDriverFile(driver, action, address string) error {
	d := b.Find(address)
	if d == nil {
		return errors.New("write error: no such device")
	}
	switch action {
	case "unbind":
		if d.Driver != driver {
			return errors.New("write error: no such device")
		}
		b.unbind(d)
		return nil
	case "bind":
		for _, module := range b.Modules() {
			if driverOf(module) == driver && d.Driver == "" {
				return b.bind(module, d)
			}
		}
	}
	return errors.New("write error: no such device")
}

// List returns the names in a directory of sysfs.
func (b *Bus) List(path string) ([]string, error) {
	path = strings.TrimSuffix(path, "/")
	if below, ok := strings.CutPrefix(devicesFolder, path+"/"); ok {
		first, _, _ := strings.Cut(below, "/")
		return []string{first}, nil
	}
	if module, ok := strings.CutPrefix(path, modulesFolder); ok && slices.Contains(b.Modules(), module) {
		return []string{"parameters"}, nil
	}
	if path == devicesFolder {
		var out []string
		for _, d := range b.Devices() {
			out = append(out, d.Address)
		}
		slices.Sort(out)
		return out, nil
	}
	if d, rest := b.locate(path); d != nil {
		if out := b.directoryEntries(d, rest); len(out) > 0 {
			return out, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// directoryEntries returns the names in a directory below the device's.
func (b *Bus) directoryEntries(d *Device, directory string) []string {
	if directory != "" {
		directory += "/"
	}
	var out []string
	for name := range b.attributes(d) {
		if below, ok := strings.CutPrefix(name, directory); ok {
			first, _, _ := strings.Cut(below, "/")
			out = append(out, first)
		}
	}
	if directory == "" {
		for n := range d.VirtualFunctions {
			out = append(out, fmt.Sprint("virtfn", n))
		}
		if d.PhysicalFunction != nil {
			out = append(out, "physfn")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Readlink returns the target of a link of sysfs.
func (b *Bus) Readlink(path string) (string, bool) {
	if d, rest := b.locate(path); d != nil {
		switch {
		case rest == "driver" && d.Driver != "":
			return driversFolder + d.Driver, true
		case rest == "":
			return devicesFolder + "/" + d.Address, true
		}
	}
	return "", false
}

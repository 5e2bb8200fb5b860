package sysfs

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// ReadInventory reads the hardware from a root file system, os.DirFS("/") on a server. Missing attributes result in empty fields. When a
// directory cannot be listed, it returns an error together with the rest of the inventory.
func ReadInventory(root fs.FS) (hardware.Inventory, error) {
	dmi := func(name string) string { return readAttribute(root, "sys/class/dmi/id/"+name) }
	out := hardware.Inventory{
		Manufacturer: dmi("sys_vendor"), Model: dmi("product_name"), SerialNumber: dmi("product_serial"),
		SystemUUID: strings.ToLower(dmi("product_uuid")), BIOSVersion: dmi("bios_version"), BIOSDate: dmi("bios_date"), Architecture: architecture(),
		TPMVersion: readAttribute(root, "sys/class/tpm/tpm0/tpm_version_major"),
	}
	out.CPUSockets, out.CPUCores = readTopology(root)
	out.NUMANodes, out.MemoryModules = countNUMANodes(root), readMemoryModules(root)
	out.CPUModel, out.CPUThreads = parseCPUInfo(readAttribute(root, "proc/cpuinfo"))
	out.MemoryBytes = parseMemTotal(readAttribute(root, "proc/meminfo"))
	var nicErr, pciErr error
	out.NICs, nicErr = readNICs(root)
	disks, _, diskErr := ReadDisks(root)
	for _, disk := range disks {
		out.Disks = append(out.Disks, disk.Disk)
	}
	if out.PCIDevices, pciErr = readPCIDevices(root); pciErr == nil {
		out.DeviceSource = hardware.DevicesByAgent
	}
	return out, errors.Join(nicErr, diskErr, pciErr)
}

// architecture returns the architecture as uname prints it.
func architecture() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// readNICs returns the network interfaces that have hardware of their own.
func readNICs(root fs.FS) ([]hardware.NIC, error) {
	entries, err := fs.ReadDir(root, "sys/class/net")
	if err != nil {
		return nil, err
	}
	var out []hardware.NIC
	for _, entry := range entries {
		dir := path.Join("sys/class/net", entry.Name())
		if _, err := fs.Stat(root, dir+"/device"); err != nil {
			continue
		}
		out = append(out, hardware.NIC{
			Name: entry.Name(), MAC: readMAC(root, dir), NoLink: readAttribute(root, dir+"/carrier") == "0",
			SpeedMbps: int(max(readNumber(root, dir+"/speed"), 0)), Up: readAttribute(root, dir+"/carrier") == "1",
			Driver: readDriver(root, dir+"/device/driver"), Firmware: readNICFirmware(root, dir+"/device"), PCIID: readPCIID(root, dir+"/device"),
			SubsystemID: readSubsystemID(root, dir+"/device"), NUMANode: readNUMANode(root, dir+"/device"),
		})
	}
	return out, nil
}

// readPCIDevices returns the PCI functions.
func readPCIDevices(root fs.FS) ([]hardware.PCIDevice, error) {
	entries, err := fs.ReadDir(root, "sys/bus/pci/devices")
	if err != nil {
		return nil, err
	}
	var out []hardware.PCIDevice
	for _, entry := range entries {
		id := func(name string) string {
			return strings.ToLower(strings.TrimPrefix(readAttribute(root, path.Join("sys/bus/pci/devices", entry.Name(), name)), "0x"))
		}
		dir := path.Join("sys/bus/pci/devices", entry.Name())
		out = append(out, hardware.PCIDevice{
			Address: entry.Name(), VendorID: id("vendor"), DeviceID: id("device"), Class: id("class"),
			LinkWidth: readLinkWidth(root, dir+"/current_link_width"), MaxLinkWidth: readLinkWidth(root, dir+"/max_link_width"),
			MaxLinkSpeed: readLinkSpeed(root, dir+"/max_link_speed"), PortMaxLinkSpeed: readPortLinkSpeed(root, dir),
			SubsystemID: readSubsystemID(root, dir), NUMANode: readNUMANode(root, dir),
		})
	}
	return out, nil
}

// parseCPUInfo returns the first model name and the number of hardware threads from the content of /proc/cpuinfo.
func parseCPUInfo(cpuinfo string) (model string, threads int) {
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor":
			threads++
		case "model name":
			model = cmp.Or(model, strings.TrimSpace(value))
		}
	}
	return model, threads
}

// parseMemTotal returns MemTotal in bytes from the content of /proc/meminfo.
func parseMemTotal(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// readAttribute returns an attribute without surrounding white space, "" when it does not exist. Kernels and devices differ in the
// attributes that they have.
func readAttribute(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
}

// readNumber returns an attribute that is a number, 0 when it does not exist.
func readNumber(root fs.FS, name string) int64 {
	value, err := strconv.ParseInt(readAttribute(root, name), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

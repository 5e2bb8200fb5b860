package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// sectorBytes is the unit of /sys/block/*/size, whatever the device's sectors are (Documentation/ABI/stable/sysfs-block).
const sectorBytes = 512

// Inventory reads the hardware from a root file system, os.DirFS("/") on a server. What is not there is left empty; the
// error says what could not be listed at all, and the inventory is what could be read nevertheless.
func Inventory(root fs.FS) (hardware.Inventory, error) {
	dmi := func(name string) string { return read(root, "sys/class/dmi/id/"+name) }
	out := hardware.Inventory{
		Manufacturer: dmi("sys_vendor"), Model: dmi("product_name"), SerialNumber: dmi("product_serial"),
		SystemUUID: strings.ToLower(dmi("product_uuid")), BIOSVersion: dmi("bios_version"), Architecture: architecture(),
	}
	out.CPUModel, out.CPUThreads = processors(read(root, "proc/cpuinfo"))
	out.MemoryBytes = memory(read(root, "proc/meminfo"))
	var nicErr, pciErr error
	out.NICs, nicErr = nics(root)
	disks, diskErr := Disks(root)
	for _, disk := range disks {
		out.Disks = append(out.Disks, disk.Disk)
	}
	out.PCIDevices, pciErr = pciDevices(root)
	return out, errors.Join(nicErr, diskErr, pciErr)
}

// architecture is the machine's name for its own architecture, as uname says it.
func architecture() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// Disk is a block device that may be written.
type Disk struct {
	hardware.Disk
	// SectorSize is the logical sector size in bytes.
	SectorSize int64
}

// Disks lists the disks: no partitions, no removable, read-only or empty devices, none that is made of others (loop,
// device mapper, RAID) or of memory.
func Disks(root fs.FS) ([]Disk, error) {
	entries, err := fs.ReadDir(root, "sys/block")
	if err != nil {
		return nil, err
	}
	var out []Disk
	for _, entry := range entries {
		dir := path.Join("sys/block", entry.Name())
		if _, err := fs.Stat(root, path.Join(dir, "device")); err != nil {
			continue // loop, ram, zram, dm, md: no hardware behind them
		}
		size := number(root, dir+"/size") * sectorBytes
		if size <= 0 || read(root, dir+"/removable") == "1" || read(root, dir+"/ro") == "1" || read(root, dir+"/hidden") == "1" {
			continue
		}
		sector := number(root, dir+"/queue/logical_block_size")
		if sector <= 0 {
			sector = sectorBytes
		}
		out = append(out, Disk{SectorSize: sector, Disk: hardware.Disk{
			Name: "/dev/" + strings.ReplaceAll(entry.Name(), "!", "/"), Model: read(root, dir+"/device/model"),
			SerialNumber: firstOf(read(root, dir+"/device/serial"), read(root, dir+"/serial")),
			WWN:          strings.TrimPrefix(firstOf(read(root, dir+"/wwid"), read(root, dir+"/device/wwid")), "naa."),
			SizeBytes:    size, Rotational: read(root, dir+"/queue/rotational") == "1",
		}})
	}
	return out, nil
}

// nics lists the interfaces with hardware behind them.
func nics(root fs.FS) ([]hardware.NIC, error) {
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
			Name: entry.Name(), MAC: strings.ToLower(read(root, dir+"/address")),
			SpeedMbps: int(max(number(root, dir+"/speed"), 0)), Up: read(root, dir+"/carrier") == "1",
		})
	}
	return out, nil
}

// pciDevices lists the PCI functions.
func pciDevices(root fs.FS) ([]hardware.PCIDevice, error) {
	entries, err := fs.ReadDir(root, "sys/bus/pci/devices")
	if err != nil {
		return nil, err
	}
	var out []hardware.PCIDevice
	for _, entry := range entries {
		id := func(name string) string {
			return strings.ToLower(strings.TrimPrefix(read(root, path.Join("sys/bus/pci/devices", entry.Name(), name)), "0x"))
		}
		out = append(out, hardware.PCIDevice{Address: entry.Name(), VendorID: id("vendor"), DeviceID: id("device"), Class: id("class")})
	}
	return out, nil
}

// processors reads /proc/cpuinfo: the first model name, and the number of hardware threads.
func processors(cpuinfo string) (model string, threads int) {
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor":
			threads++
		case "model name":
			model = firstOf(model, strings.TrimSpace(value))
		}
	}
	return model, threads
}

// memory reads MemTotal of /proc/meminfo, in bytes.
func memory(meminfo string) int64 {
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

// read returns an attribute without white space around it, "" when there is none: kernels and devices differ in what they tell.
func read(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
}

// number reads an attribute that is a number, 0 when there is none.
func number(root fs.FS, name string) int64 {
	value, err := strconv.ParseInt(read(root, name), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

func firstOf(values ...string) string {
	if at := slices.IndexFunc(values, func(value string) bool { return value != "" }); at >= 0 {
		return values[at]
	}
	return ""
}

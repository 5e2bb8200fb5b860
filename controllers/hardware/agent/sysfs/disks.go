package sysfs

import (
	"cmp"
	"encoding/binary"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// sectorBytes is the unit of /sys/block/*/size. It does not depend on the sector size of the device (Documentation/ABI/stable/sysfs-block).
const sectorBytes = 512

// Disk is a block device that may be written.
type Disk struct {
	hardware.Disk
	// SectorSize is the logical sector size in bytes.
	SectorSize int64
	// ReadOnly is true while the kernel refuses to write to it.
	ReadOnly bool
}

// ReadDisks returns the disks of the server, and as unusable what holds data or may hide a disk and cannot be written: removable disks, disks
// without size, and controllers without a driver. These are no disks: partitions, hidden paths, optical drives, flash memory of
// the firmware, devices without hardware of their own (loop, device mapper, RAID, RAM disks), and the drives that a BMC emulates.
func ReadDisks(root fs.FS) (disks []Disk, unusable []hardware.UnusableDisk, err error) {
	entries, err := fs.ReadDir(root, "sys/block")
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		dir := path.Join("sys/block", entry.Name())
		if !isDisk(root, entry.Name(), dir) {
			continue
		}
		disk := readDisk(root, entry.Name(), dir)
		switch {
		case disk.SizeBytes <= 0:
			unusable = append(unusable, hardware.UnusableDisk{Disk: disk.Disk,
				Why: "has no size: it failed, is locked, or is an empty drive; replace it, or annotate the BareMetalHost with ingot.dev/disk-gone and its serial number, or its path if it has none"})
		case readAttribute(root, dir+"/removable") == "1":
			unusable = append(unusable, hardware.UnusableDisk{Disk: disk.Disk, HasContent: true, Why: "is removable: take it out, or disable it in the firmware"})
		default:
			disks = append(disks, disk)
		}
	}
	return disks, append(unusable, readSilentControllers(root)...), nil
}

// isDisk reports whether the block device is a disk of the server.
func isDisk(root fs.FS, name, dir string) bool {
	if _, err := fs.Stat(root, dir+"/device"); err != nil {
		return false // loop, ram, zram, dm, md: no hardware of their own
	}
	const opticalDrive = "5" // the peripheral type of SCSI, SPC-5 section 6.6.2
	return readAttribute(root, dir+"/hidden") != "1" && readAttribute(root, dir+"/device/type") != opticalDrive &&
		!strings.HasPrefix(name, "sr") && !strings.HasPrefix(name, "mtdblock") && !isVirtualDrive(root, dir)
}

// managementVendors are the vendors that the drives of management controllers name, in lower case.
var managementVendors = []string{"idrac", "ilo", "openbmc"}

// isVirtualDrive reports whether the BMC emulates the drive: it is connected by USB and says that it is virtual, or names a BMC as its vendor.
func isVirtualDrive(root fs.FS, dir string) bool {
	target, err := fs.ReadLink(root, dir)
	if err != nil || !strings.Contains(target, "/usb") {
		return false
	}
	vendor, model := strings.ToLower(readAttribute(root, dir+"/device/vendor")), strings.ToLower(readAttribute(root, dir+"/device/model"))
	return strings.Contains(vendor+" "+model, "virtual") || slices.Contains(managementVendors, vendor)
}

// readDisk reads the attributes of a block device.
func readDisk(root fs.FS, name, dir string) Disk {
	disk := Disk{
		SectorSize: cmp.Or(max(readNumber(root, dir+"/queue/logical_block_size"), 0), sectorBytes), ReadOnly: readAttribute(root, dir+"/ro") == "1",
		Disk: hardware.Disk{
			Name: "/dev/" + strings.ReplaceAll(name, "!", "/"), Model: readAttribute(root, dir+"/device/model"),
			SerialNumber: cmp.Or(readAttribute(root, dir+"/device/serial"), readAttribute(root, dir+"/serial"), readSCSISerial(root, dir)),
			WWN:          strings.TrimPrefix(cmp.Or(readAttribute(root, dir+"/wwid"), readAttribute(root, dir+"/device/wwid")), "naa."),
			SizeBytes:    max(readNumber(root, dir+"/size"), 0) * sectorBytes, Rotational: readAttribute(root, dir+"/queue/rotational") == "1",
			Transport: readTransport(root, name, dir), Firmware: readDiskFirmware(root, dir),
		},
	}
	if strings.HasPrefix(name, "nvme") {
		device := dir + "/device/device" // the namespace is of a controller, which is of a PCI device
		disk.PCIID, disk.SubsystemID, disk.NUMANode = readPCIID(root, device), readSubsystemID(root, device), readNUMANode(root, device)
	}
	return disk
}

// readSCSISerial returns the serial number of a SCSI or SATA disk. The attribute is the vital product data page 80h: a header of four bytes
// with the length, and then the serial number (SPC-5 section 7.7.19).
func readSCSISerial(root fs.FS, dir string) string {
	page, err := fs.ReadFile(root, dir+"/device/vpd_pg80")
	if err != nil || len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	length := min(int(binary.BigEndian.Uint16(page[2:])), len(page)-4)
	return strings.Trim(strings.ToValidUTF8(string(page[4:4+length]), ""), " \x00\n")
}

// readSilentControllers returns the storage controllers that have no driver, and the NVMe drives whose controller does not answer. Their disks
// are not among the block devices.
func readSilentControllers(root fs.FS) []hardware.UnusableDisk {
	var out []hardware.UnusableDisk
	for _, entry := range listNames(root, "sys/bus/pci/devices") {
		dir := path.Join("sys/bus/pci/devices", entry)
		if !strings.HasPrefix(readAttribute(root, dir+"/class"), "0x01") || hasEntry(root, dir+"/driver") || hasEntry(root, dir+"/physfn") {
			continue
		}
		out = append(out, hardware.UnusableDisk{
			Disk: hardware.Disk{Name: entry, Model: "storage controller " + readAttribute(root, dir+"/vendor") + ":" + readAttribute(root, dir+"/device")},
			Why: "has no driver, so that its disks cannot be seen: add the driver to the agent's kernel, or disable the controller in the firmware; " +
				"if it has no disks, annotate the BareMetalHost with ingot.dev/disk-gone: " + entry,
		})
	}
	for _, entry := range listNames(root, "sys/class/nvme") {
		dir := path.Join("sys/class/nvme", entry)
		if state := readAttribute(root, dir+"/state"); state == "dead" || strings.HasPrefix(state, "deleting") {
			out = append(out, hardware.UnusableDisk{
				Disk: hardware.Disk{Name: "/dev/" + entry, Model: readAttribute(root, dir+"/model"), SerialNumber: readAttribute(root, dir+"/serial")},
				Why:  "does not answer: its controller is " + state + "; replace it and annotate the BareMetalHost with ingot.dev/disk-gone and its serial number",
			})
		}
	}
	return out
}

// listNames returns the entries of a directory, none when it does not exist. Kernels without the subsystem have no such directory.
func listNames(root fs.FS, dir string) []string {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func hasEntry(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

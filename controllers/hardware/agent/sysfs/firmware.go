package sysfs

import (
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// readNICFirmware returns the version of a NIC's firmware where its driver has it in sysfs, which are those with RDMA
// (Documentation/ABI/stable/sysfs-class-infiniband).
func readNICFirmware(root fs.FS, device string) string {
	for _, name := range listNames(root, device+"/infiniband") {
		if version := readAttribute(root, path.Join(device, "infiniband", name, "fw_ver")); version != "" {
			return version
		}
	}
	return ""
}

var pciID = regexp.MustCompile(`^0x[0-9a-f]{4}$`)

// readPCIID returns VENDOR:DEVICE, "" for a device that has none.
func readPCIID(root fs.FS, device string) string {
	return readIDPair(root, device+"/vendor", device+"/device")
}

// readSubsystemID returns VENDOR:DEVICE of the board that the device is on, "" for a device that tells none. A zero is no id (PCI Local Bus
// Specification 3.0, 6.2.4).
func readSubsystemID(root fs.FS, device string) string {
	id := readIDPair(root, device+"/subsystem_vendor", device+"/subsystem_device")
	if strings.HasPrefix(id, "0000:") {
		return ""
	}
	return id
}

// readNUMANode returns the number of the memory node that a device is near. The kernel writes -1 where the firmware does not tell
// (Documentation/ABI/testing/sysfs-bus-pci).
func readNUMANode(root fs.FS, device string) string {
	node, err := strconv.ParseUint(readAttribute(root, device+"/numa_node"), 10, 31)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(node, 10)
}

func readIDPair(root fs.FS, vendorName, idName string) string {
	vendor, id := strings.ToLower(readAttribute(root, vendorName)), strings.ToLower(readAttribute(root, idName))
	if !pciID.MatchString(vendor) || !pciID.MatchString(id) {
		return ""
	}
	return vendor[2:] + ":" + id[2:]
}

// readTransport returns how a disk is connected, by the buses on its path; "" is unknown.
func readTransport(root fs.FS, name, dir string) string {
	target, err := fs.ReadLink(root, dir)
	if err != nil {
		target = ""
	}
	isATA := readAttribute(root, dir+"/device/vendor") == "ATA" // libata and the translation of SAS controllers (SAT) write this vendor
	switch {
	case strings.Contains(target, "/usb"):
		return "usb"
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	case strings.Contains(target, "/virtio"):
		return "virtio"
	case isATA:
		return "sata"
	case strings.Contains(target, "/end_device-"):
		return "sas"
	}
	return ""
}

// readDiskFirmware returns the version of a disk's firmware. The revision that SCSI has is cut for an ATA disk, whose version has eight characters, so
// that the ATA information page (89h) tells it; without that page it is unknown.
func readDiskFirmware(root fs.FS, dir string) string {
	if version := readAttribute(root, dir+"/device/firmware_rev"); version != "" {
		return version // nvme
	}
	if readAttribute(root, dir+"/device/vendor") != "ATA" {
		return readAttribute(root, dir+"/device/rev")
	}
	page, err := fs.ReadFile(root, dir+"/device/vpd_pg89")
	if err != nil {
		return ""
	}
	return parseATAFirmware(page)
}

// parseATAFirmware returns the version of the firmware from the ATA information page: the answer to IDENTIFY DEVICE begins at byte 60 (SAT-4, 12.4.2),
// and words 23 to 26 of it are the version, two characters in each, the first one in the high byte (ACS-4, 7.13.6.14).
func parseATAFirmware(page []byte) string {
	const first, last = 60 + 2*23, 60 + 2*27
	if len(page) < last || page[1] != 0x89 {
		return ""
	}
	var out []byte
	for at := first; at < last; at += 2 {
		out = append(out, page[at+1], page[at])
	}
	return strings.Trim(strings.ToValidUTF8(string(out), ""), " \x00")
}

// readLinkSpeed returns the highest speed of a PCIe lane in million transfers per second, 0 where it is unknown. The kernel writes
// "32.0 GT/s PCIe" and "Unknown".
func readLinkSpeed(root fs.FS, name string) int {
	number, unit, _ := strings.Cut(readAttribute(root, name), " ")
	const fastest = 128
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(unit, "GT/s") || !(value > 0 && value <= fastest) {
		return 0
	}
	return int(value * 1000)
}

// readPortLinkSpeed returns the highest speed of the port above a device: the root port, or the port of the switch that the device is at.
func readPortLinkSpeed(root fs.FS, dir string) int {
	target, err := fs.ReadLink(root, dir)
	if err != nil {
		return 0
	}
	port := path.Base(path.Dir(target))
	if strings.HasPrefix(port, "pci") || port == "." || port == ".." {
		return 0 // a device of the root complex has no port above it
	}
	return readLinkSpeed(root, path.Join(path.Dir(dir), port, "max_link_speed"))
}

// readMAC returns the address that a NIC was made with. A member of a bond uses the address of the bond
// (Documentation/ABI/testing/sysfs-class-net-bonding).
func readMAC(root fs.FS, dir string) string {
	return strings.ToLower(cmp.Or(readAttribute(root, dir+"/bonding_slave/perm_hwaddr"), readAttribute(root, dir+"/address")))
}

package hardware

import (
	"fmt"
	"slices"
	"strings"
)

// Requirements are what a server must have beside its GPUs to be installed. The zero value requires nothing.
type Requirements struct {
	// Architecture of the processors, as ArchitectureName has it; empty requires none.
	Architecture string
	// FullGPULinkWidth requires that every GPU has as many PCIe lanes as it can use, FullGPULinkSpeed that the port above it supports its speed.
	FullGPULinkWidth, FullGPULinkSpeed bool
	// GPUVendors are the PCI vendor ids of the GPUs that are meant.
	GPUVendors []string
	// MemoryBytes is the least memory; 0 requires none.
	MemoryBytes int64
	// NICCount is the number of network ports that must have a link of NICSpeedMbps at least.
	NICCount, NICSpeedMbps int
	// Firmware are the lowest versions of firmware.
	Firmware []RequiredFirmware
}

// RequiredFirmware is the lowest version of the firmware of a component.
type RequiredFirmware struct {
	// Component is BIOS, BMC, NIC or Disk.
	Component FirmwareComponent
	// Name is the PCI id or the driver of the NICs, or a part of the model of the disks.
	Name       string
	MinVersion string
}

// FirmwareComponent is a kind of component with firmware.
type FirmwareComponent string

// Components with firmware.
const (
	FirmwareBIOS FirmwareComponent = "BIOS"
	FirmwareBMC  FirmwareComponent = "BMC"
	FirmwareNIC  FirmwareComponent = "NIC"
	FirmwareDisk FirmwareComponent = "Disk"
)

// osMemoryPercent is how much of the installed memory the operating system has at least. The firmware and the kernel keep the rest.
const osMemoryPercent = 95

// Compare says what the server lacks, and what cannot be told from the inventory. Each text has what was expected, what was seen, and where to look.
func (r Requirements) Compare(found Inventory) (missing, unknown []string) {
	c := comparison{found: found}
	c.compareArchitecture(r.Architecture)
	if r.FullGPULinkWidth {
		c.compareGPULinks(r)
	}
	if r.MemoryBytes > 0 {
		c.compareMemory(r.MemoryBytes)
	}
	if r.NICCount > 0 {
		c.compareNICs(r)
	}
	for _, f := range r.Firmware {
		c.compareFirmware(f)
	}
	return c.missing, c.unknown
}

// Difference says why the server cannot be installed after its agent has read it: what is missing, and what could not be read. It is empty when nothing
// is. What nobody can read is not taken for met. Without it: the driver of a NIC does not tell its firmware, and a node is promised that has an old one.
func (r Requirements) Difference(found Inventory) string {
	missing, unknown := r.Compare(found)
	return strings.Join(append(missing, unknown...), "; ")
}

// comparison collects the results of one comparison.
type comparison struct {
	found            Inventory
	missing, unknown []string
}

func (c *comparison) addMissing(format string, args ...any) {
	c.missing = append(c.missing, fmt.Sprintf(format, args...))
}

func (c *comparison) addUnknown(format string, args ...any) {
	c.unknown = append(c.unknown, fmt.Sprintf(format, args...))
}

// isReadByAgent reports whether an agent has read the inventory. A BMC knows neither a link nor what a driver tells.
func (c *comparison) isReadByAgent() bool { return c.found.DeviceSource == DevicesByAgent }

// compareArchitecture compares the architecture, where it is known. An agent has always read it.
func (c *comparison) compareArchitecture(required string) {
	seen := ArchitectureName(c.found.Architecture)
	if required == "" || seen == "" || seen == required {
		return
	}
	c.addMissing("expected a server with processors of the image's architecture, %s, seen %s: give the NodeType an OSImage for %s, or add the label hardware.ingot.dev/architecture=%s to its hostSelector", required, seen, seen, required)
}

// compareGPULinks compares the PCIe links of the GPUs. A server without GPUs lacks none here: RequiredGPUs counts them.
func (c *comparison) compareGPULinks(r Requirements) {
	for _, d := range c.found.PCIDevices {
		if !d.IsAccelerator() || !slices.Contains(r.GPUVendors, d.VendorID) {
			continue
		}
		name := strings.TrimSpace("GPU " + d.VendorID + ":" + d.DeviceID + " " + d.Address)
		switch {
		case d.LinkWidth == 0 || d.MaxLinkWidth == 0:
			c.addUnknown("the PCIe link of %s cannot be read: look at lspci -vv on the server", name)
		case d.LinkWidth < d.MaxLinkWidth:
			c.addMissing("expected that %s has its %d PCIe lanes, seen %d: look whether it is seated, and at its slot, riser and cable", name, d.MaxLinkWidth, d.LinkWidth)
		}
		switch {
		case !r.FullGPULinkSpeed:
		case d.MaxLinkSpeed == 0 || d.PortMaxLinkSpeed == 0:
			c.addUnknown("the PCIe speed of %s or of its port cannot be read: look at lspci -vv on the server", name)
		case d.PortMaxLinkSpeed < d.MaxLinkSpeed:
			c.addMissing("expected that the port of %s supports %s, seen %s: look at the slot, and at the PCIe settings of the firmware", name, linkSpeed(d.MaxLinkSpeed), linkSpeed(d.PortMaxLinkSpeed))
		}
	}
}

// linkSpeed returns the speed of a PCIe lane as lspci prints it.
func linkSpeed(mts int) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(mts)/1000), ".0") + " GT/s"
}

func (c *comparison) compareMemory(required int64) {
	const where = "look whether a memory module has failed"
	if modules := sumOfModules(c.found.MemoryModules); modules > 0 {
		if modules < required {
			c.addMissing("expected %s of memory, seen %s in %d modules: %s", gibibytes(required), gibibytes(modules), len(c.found.MemoryModules), where)
		}
		return
	}
	switch {
	case c.found.MemoryBytes <= 0:
		c.addUnknown("the size of the memory cannot be read")
	case c.found.MemoryBytes < required/100*osMemoryPercent:
		c.addMissing("expected %s of memory, seen %s: %s", gibibytes(required), gibibytes(c.found.MemoryBytes), where)
	}
}

func sumOfModules(modules []MemoryModule) int64 {
	sum := int64(0)
	for _, m := range modules {
		sum += max(m.SizeBytes, 0)
	}
	return sum
}

func gibibytes(n int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<30)), ".0") + " GiB"
}

// compareNICs counts the ports with a link. Only the look of an agent counts: a server that is off has no link, and BMCs do not know all ports.
func (c *comparison) compareNICs(r Requirements) {
	if !c.isReadByAgent() {
		c.addUnknown("no agent has read the links of the NICs")
		return
	}
	count, unread, others := 0, 0, []string(nil)
	for _, nic := range c.found.NICs {
		switch {
		case nic.Up && nic.SpeedMbps >= r.NICSpeedMbps:
			count++
		case nic.Up && nic.SpeedMbps > 0:
			others = append(others, fmt.Sprintf("%s at %s", nic.label(), gigabits(nic.SpeedMbps)))
		case nic.NoLink:
			others = append(others, nic.label()+" without a link")
		default:
			unread++
			others = append(others, nic.label()+" with a link that cannot be read")
		}
	}
	if count >= r.NICCount {
		return
	}
	const most = 8
	if more := len(others) - most; more > 0 {
		others = append(others[:most], fmt.Sprintf("%d more", more))
	}
	seen := strings.Join(append([]string{fmt.Sprintf("%d of them", count)}, others...), ", ")
	add := c.addMissing
	if count+unread >= r.NICCount {
		add = c.addUnknown
	}
	add("expected %d NICs with a link of %s or more, seen %s: look at the cables, the transceivers and the switch ports", r.NICCount, gigabits(r.NICSpeedMbps), seen)
}

// label returns the name of the NIC for messages.
func (n NIC) label() string { return strings.TrimSpace(n.Name + " " + n.MAC) }

func gigabits(mbps int) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(mbps)/1000), ".0") + " Gbit/s"
}

// compareFirmware compares the firmware of the components that are meant.
func (c *comparison) compareFirmware(f RequiredFirmware) {
	switch f.Component {
	case FirmwareBIOS:
		c.compareVersion("BIOS", c.found.BIOSVersion, f.MinVersion)
	case FirmwareBMC:
		c.compareVersion("BMC", c.found.BMCVersion, f.MinVersion)
	case FirmwareNIC:
		for _, nic := range c.found.NICs {
			if strings.EqualFold(nic.Driver, f.Name) || strings.EqualFold(nic.PCIID, f.Name) {
				c.compareVersion("NIC "+nic.label(), nic.Firmware, f.MinVersion)
			}
		}
	case FirmwareDisk:
		for _, disk := range c.found.Disks {
			if strings.Contains(strings.ToLower(disk.Model), strings.ToLower(f.Name)) {
				c.compareVersion(strings.TrimSpace("disk "+disk.Name+" "+disk.Model), disk.Firmware, f.MinVersion)
			}
		}
	}
}

func (c *comparison) compareVersion(component, seen, required string) {
	order, isComparable := compareVersions(seen, required)
	switch {
	case seen == "":
		c.addUnknown("expected firmware %s or later of the %s, which does not tell its version", required, component)
	case !isComparable:
		c.addMissing("expected firmware %s or later of the %s, seen %s, which cannot be compared: write minVersion in the same form", required, component, seen)
	case order < 0:
		c.addMissing("expected firmware %s or later of the %s, seen %s: update it", required, component, seen)
	}
}

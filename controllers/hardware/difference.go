package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bmcMemoryPercent is how much of the memory that the BMC reports the modules have at least that an agent reads from DMI. BMCs round.
const bmcMemoryPercent = 98

// usableMemoryPercent is how much of the memory that the BMC reports an operating system can use at least. Linux reserves 1.6% for its own page structures, and
// the memory of a crash kernel and of firmware.
const usableMemoryPercent = 85

// acceleratorVendors are NVIDIA and AMD, by PCI vendor id (pci-ids.ucw.cz). The graphics of a BMC has another one.
var acceleratorVendors = []string{"10de", "1002"}

// BMCDifference says how the hardware that an agent found differs from what the BMC reported. It is empty when it does not, or the BMC does not tell,
// or what is known is not the BMC's because an agent has looked before. What the BMC tells and the agent does not is a difference. Memory and disks that only the agent finds are no difference, because BMCs leave
// some out.
func BMCDifference(known *Inventory, found Inventory) string {
	if known == nil || known.SystemUUID != "" {
		return ""
	}
	var out []string
	if known.DeviceSource == DevicesByBMC {
		if reported, seen := acceleratorsText(known.PCIDevices, known.PCIDevices), acceleratorsText(found.PCIDevices, known.PCIDevices); reported != seen {
			out = append(out, fmt.Sprintf("the BMC reports %s, the agent sees %s", reported, seen))
		}
	}
	out = append(out, memoryDifference(*known, found)...)
	var absent []string
	for _, disk := range AbsentDisks(known.Disks, found.Disks) {
		if disk.HasIdentity() {
			absent = append(absent, disk.String())
		}
	}
	if len(absent) > 0 {
		out = append(out, "the agent does not see disks that the BMC reports: "+strings.Join(absent, ", "))
	}
	return strings.Join(out, "; ")
}

// memoryDifference compares the memory modules, or the memory that the operating system of the agent may use where DMI does not list them: firmware and kernel
// keep a part of it.
func memoryDifference(known, found Inventory) []string {
	modules := sumOfModules(found.MemoryModules)
	switch {
	case modules > 0 && modules < known.MemoryBytes/100*bmcMemoryPercent:
		return []string{fmt.Sprintf("the BMC reports %s of memory, the agent sees %s in %d modules", gibibytes(known.MemoryBytes), gibibytes(modules), len(found.MemoryModules))}
	case modules == 0 && found.MemoryBytes < known.MemoryBytes/100*usableMemoryPercent:
		return []string{fmt.Sprintf("the BMC reports %s of memory, the agent can use %s and is told of no module", gibibytes(known.MemoryBytes), gibibytes(found.MemoryBytes))}
	}
	return nil
}

// HasMoreParts reports whether an agent has found GPUs, memory or disks that an agent before it had not, and misses none that were there then: a part was
// repaired or added.
func HasMoreParts(before, now Inventory) bool {
	gpus, modules := countAccelerators(now.PCIDevices)-countAccelerators(before.PCIDevices), sumOfModules(now.MemoryModules)-sumOfModules(before.MemoryModules)
	missing, added := len(AbsentDisks(before.Disks, now.Disks)), len(AbsentDisks(now.Disks, before.Disks))
	return gpus >= 0 && modules >= 0 && missing == 0 && (gpus > 0 || modules > 0 || added > 0)
}

// countAccelerators counts the GPUs of the vendors whose GPUs a HostRecord keeps.
func countAccelerators(devices []PCIDevice) int {
	n := 0
	for _, d := range devices {
		if d.IsAccelerator() && slices.Contains(acceleratorVendors, d.VendorID) {
			n++
		}
	}
	return n
}

// acceleratorsText returns the GPUs among the devices as text, by vendor and device id. Where the BMC does not tell the device ids of a vendor's GPUs, it is
// the number of that vendor's GPUs.
func acceleratorsText(devices, reported []PCIDevice) string {
	var unnamed []string
	for _, d := range reported {
		if d.IsAccelerator() && d.DeviceID == "" {
			unnamed = append(unnamed, d.VendorID)
		}
	}
	counts := map[string]int{}
	for _, d := range devices {
		switch {
		case !d.IsAccelerator() || !slices.Contains(acceleratorVendors, d.VendorID):
		case slices.Contains(unnamed, d.VendorID):
			counts["of vendor "+d.VendorID]++
		default:
			counts[d.VendorID+":"+d.DeviceID]++
		}
	}
	var out []string
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d GPUs %s", counts[id], id))
	}
	if len(out) == 0 {
		return "no GPU"
	}
	return strings.Join(out, " and ")
}

package direct

import (
	"cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// merge joins what the BMC reports now with what is known from before. Names, serial number and firmware are the BMC's: it is
// the newer witness. Lists and sizes that an agent read stay, because an operating system sees every function, address and
// block device while BMCs leave some out; every later boot of the agent renews them. Only an agent reports a SystemUUID.
func merge(before *hardware.Inventory, now hardware.Inventory) hardware.Inventory {
	if before == nil {
		return now
	}
	merged := *before
	merged.Manufacturer = cmp.Or(now.Manufacturer, before.Manufacturer)
	merged.Model = cmp.Or(now.Model, before.Model)
	merged.SerialNumber = cmp.Or(now.SerialNumber, before.SerialNumber)
	merged.BIOSVersion = cmp.Or(now.BIOSVersion, before.BIOSVersion)
	byAgent := before.SystemUUID != ""
	merged.Architecture = pick(byAgent, before.Architecture, now.Architecture)
	merged.CPUModel = pick(byAgent, before.CPUModel, now.CPUModel)
	merged.CPUThreads = pick(byAgent, before.CPUThreads, now.CPUThreads)
	merged.MemoryBytes = pick(byAgent, before.MemoryBytes, now.MemoryBytes)
	merged.NICs = pickList(byAgent, before.NICs, now.NICs)
	merged.Disks = pickList(byAgent, before.Disks, now.Disks)
	merged.PCIDevices = pickList(byAgent, before.PCIDevices, now.PCIDevices)
	return merged
}

// pick prefers the value before when an agent reported it, else the one now, and in any case one that is known.
func pick[T comparable](byAgent bool, before, now T) T {
	if byAgent {
		return cmp.Or(before, now)
	}
	return cmp.Or(now, before)
}

func pickList[T any](byAgent bool, before, now []T) []T {
	if len(now) == 0 || byAgent && len(before) > 0 {
		return before
	}
	return now
}

package direct

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// Inspect implements hardware.Installer.
func (i *Installer) Inspect(ctx context.Context, host hardware.Host, attempt hardware.Attempt, inspector hardware.Inspector) error {
	switch inspector {
	case hardware.InspectByBMC:
		return i.inspectByBMC(ctx, host, attempt)
	case hardware.InspectByAgent:
		return i.advance(ctx, host, attempt, netboot.Work{Operation: hardware.OpInspect, Inspector: inspector})
	}
	return hardware.Errorf(hardware.Unsupported, "inspect", host.String(), "unknown inspector %q", inspector)
}

// inspectByBMC reads the inventory from the BMC, without a boot and in any power state.
func (i *Installer) inspectByBMC(ctx context.Context, host hardware.Host, attempt hardware.Attempt) error {
	s, err := i.beginAttempt(ctx, host, attempt, netboot.Work{Operation: hardware.OpInspect})
	if err != nil || s.State != hardware.AttemptRunning {
		return err
	}
	inventory, bmcErr := i.readInventory(ctx, host, s.Deadline.Sub(i.options.Clock()))
	now := i.options.Clock()
	if bmcErr != nil {
		if now.Before(s.Deadline) {
			return bmcErr
		}
		_, err := i.updateSession(ctx, host, s, func(s *netboot.Session) {
			endAttempt(s, hardware.AttemptFailed, hardware.ReasonDeadlineExceeded, "the BMC gave no inventory: "+bmcErr.Error())
		})
		return err
	}
	_, err = i.updateSession(ctx, host, s, func(s *netboot.Session) {
		merged := mergeInventories(s.Inventory, inventory)
		s.Inventory = &merged
		endAttempt(s, hardware.AttemptSucceeded, "", "")
	})
	return err
}

// lastRead is how long reading the inventory may take when the deadline has passed before it begins, so that the failure has its cause.
const lastRead = 10 * time.Second

// readInventory reads the inventory from the BMC within the time that is left.
func (i *Installer) readInventory(ctx context.Context, host hardware.Host, left time.Duration) (hardware.Inventory, error) {
	ctx, cancel := context.WithTimeout(ctx, max(left, lastRead))
	defer cancel()
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return hardware.Inventory{}, err
	}
	return bmc.Inventory(ctx)
}

// mergeInventories merges the inventory that the BMC reports now into the known one. Names, serial number and firmware version are
// taken from the BMC, because its values are newer. Lists and sizes that an agent read are kept, because an operating system sees
// every function, address and block device while BMCs leave some out; the next boot of the agent renews them. An inventory with
// a SystemUUID was read by an agent.
func mergeInventories(known *hardware.Inventory, reported hardware.Inventory) hardware.Inventory {
	if known == nil {
		return reported
	}
	merged := withoutRepairable(*known)
	merged.Manufacturer = cmp.Or(reported.Manufacturer, known.Manufacturer)
	merged.Model = cmp.Or(reported.Model, known.Model)
	merged.SerialNumber = cmp.Or(reported.SerialNumber, known.SerialNumber)
	merged.BIOSVersion = cmp.Or(reported.BIOSVersion, known.BIOSVersion)
	merged.SecureBoot = reported.SecureBoot
	byAgent := known.SystemUUID != ""
	merged.Architecture = mergedValue(byAgent, known.Architecture, reported.Architecture)
	merged.CPUModel = mergedValue(byAgent, known.CPUModel, reported.CPUModel)
	merged.CPUThreads = mergedValue(byAgent, known.CPUThreads, reported.CPUThreads)
	merged.MemoryBytes = cmp.Or(reported.MemoryBytes, known.MemoryBytes) // modules may have been added
	merged.BMCVersion = cmp.Or(reported.BMCVersion, known.BMCVersion)
	if merged.BIOSVersion != known.BIOSVersion {
		merged.BIOSDate = ""
	}
	merged.NICs = mergedList(byAgent, merged.NICs, reported.NICs)
	merged.Disks = mergedList(byAgent, merged.Disks, reported.Disks)
	if known.DeviceSource != hardware.DevicesByAgent {
		merged.PCIDevices, merged.DeviceSource = reported.PCIDevices, reported.DeviceSource
	}
	return merged
}

// withoutRepairable returns the inventory without what an agent read, a BMC cannot tell, and a technician changes: links of GPUs and NICs, memory
// modules, firmware of NICs and disks. An inspection that somebody asks for makes it unknown again. Without it: a GPU is reseated, the inventory says for
// ever that it has half of its lanes, no Machine takes the host, and so no agent looks again.
func withoutRepairable(known hardware.Inventory) hardware.Inventory {
	known.NICs, known.Disks, known.PCIDevices = slices.Clone(known.NICs), slices.Clone(known.Disks), slices.Clone(known.PCIDevices)
	for i := range known.NICs {
		n := &known.NICs[i]
		n.SpeedMbps, n.Up, n.NoLink, n.Firmware = 0, false, false, ""
	}
	for i := range known.Disks {
		known.Disks[i].Firmware = ""
	}
	for i := range known.PCIDevices {
		d := &known.PCIDevices[i]
		d.LinkWidth, d.MaxLinkWidth, d.MaxLinkSpeed, d.PortMaxLinkSpeed = 0, 0, 0, 0
	}
	known.MemoryModules = nil
	return known
}

// mergedValue returns the known value when an agent read it, otherwise the reported one, and in both cases one that is not zero if
// there is one.
func mergedValue[T comparable](byAgent bool, known, reported T) T {
	if byAgent {
		return cmp.Or(known, reported)
	}
	return cmp.Or(reported, known)
}

func mergedList[T any](byAgent bool, known, reported []T) []T {
	if len(reported) == 0 || byAgent && len(known) > 0 {
		return known
	}
	return reported
}

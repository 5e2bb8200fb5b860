package inventory

import (
	"cmp"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// RememberDisks adds the disks that were found to the known ones. Known disks that were not found stay. It keeps only disks with a serial
// number or WWN, because another one cannot be missed. isProof is true when the disks were found by an agent: those are not gone any more.
func RememberDisks(known []v1alpha1.KnownDisk, found []v1alpha1.DiskInventory, isProof bool) []v1alpha1.KnownDisk {
	var out []v1alpha1.KnownDisk
	for _, disk := range known {
		out = append(out, *disk.DeepCopy())
	}
	present := hardwareDisks(found)
	isKnown := make([]bool, len(present))
	for i, at := range hardware.MatchDisks(knownDisks(out), present) {
		if at < 0 {
			continue
		}
		isKnown[at] = true
		out[i].DiskInventory = mergeDisks(out[i].DiskInventory, found[at])
		if isProof {
			out[i].Gone = nil
		}
	}
	var all hardware.DiskSet
	for _, disk := range knownDisks(out) {
		all.Add(disk)
	}
	for i, disk := range present {
		if !isKnown[i] && disk.HasIdentity() && !all.HasPath(disk) && len(out) < v1alpha1.MaxDisks {
			out = append(out, v1alpha1.KnownDisk{DiskInventory: found[i]})
			all.Add(disk)
		}
	}
	return out
}

// mergeDisks returns what was found, and what only the record has.
func mergeDisks(known, found v1alpha1.DiskInventory) v1alpha1.DiskInventory {
	return v1alpha1.DiskInventory{
		Name: cmp.Or(found.Name, known.Name), Model: cmp.Or(found.Model, known.Model), SerialNumber: cmp.Or(found.SerialNumber, known.SerialNumber),
		WWN: cmp.Or(found.WWN, known.WWN), SizeBytes: cmp.Or(found.SizeBytes, known.SizeBytes), Rotational: found.Rotational,
	}
}

// KnownDisks returns the disks that were ever found in the host, those of earlier boots of the attempt under way with them. A record of an earlier version has an
// inventory only.
func KnownDisks(status *v1alpha1.HostRecordStatus) []v1alpha1.KnownDisk {
	known := status.Disks
	if known == nil && status.Inventory != nil {
		known = RememberDisks(nil, status.Inventory.Disks, false)
	}
	if a := status.Progress(); a != nil && len(a.EarlierDisks) > 0 && status.Wanted.IsOpen() {
		known = RememberDisks(known, a.EarlierDisks, true)
	}
	return known
}

// EarlierDisks returns the disks that agents of the attempt under way have found, and the latest one has not; nil stands for the inventory that is kept.
//
// Example: the power is lost during an erase, and a disk that only its agent has seen does not answer after the next boot. If it were forgotten, the erase would count
// without it, and the next tenant would read it when it answers again.
func EarlierDisks(status *v1alpha1.HostRecordStatus, latest *v1alpha1.HostInventory) []v1alpha1.DiskInventory {
	a := status.Progress()
	if a == nil || a.Inventory == nil && len(a.EarlierDisks) == 0 {
		return nil
	}
	seen := slices.Clone(a.EarlierDisks)
	if a.Inventory != nil {
		seen = append(seen, a.Inventory.Disks...)
	}
	var found []v1alpha1.DiskInventory
	if latest != nil {
		found = latest.Disks
	}
	var out []v1alpha1.DiskInventory
	for _, disk := range hardware.AbsentDisks(hardwareDisks(seen), hardwareDisks(found)) {
		if disk.HasIdentity() && len(out) < v1alpha1.MaxDisks {
			out = append(out, v1alpha1.DiskInventory(disk))
		}
	}
	return out
}

// Update replaces the inventory of the record by what was found, and remembers the disks. The disks that were known are read before. Without it:
// the record of an earlier version has two disks in its inventory, an agent finds one of them, and the next erase misses no disk.
func Update(status *v1alpha1.HostRecordStatus, found hardware.Inventory, isProof bool) {
	replace(status, HostInventory(found, status.Inventory), isProof)
}

// TakeOver does the same with the inventory that the agent of the attempt under way has found.
func TakeOver(status *v1alpha1.HostRecordStatus) {
	if seen := status.Seen(); seen != nil {
		replace(status, seen.DeepCopy(), true)
	}
}

func replace(status *v1alpha1.HostRecordStatus, found *v1alpha1.HostInventory, isProof bool) {
	known := KnownDisks(status)
	status.Inventory = found
	status.Disks = RememberDisks(known, found.Disks, isProof)
}

// DisksToErase returns the disks that an erase of the host must clear and those that are gone, or nil when no disk is known.
func DisksToErase(status *v1alpha1.HostRecordStatus) *hardware.KnownDisks {
	known := KnownDisks(status)
	if len(known) == 0 {
		return nil
	}
	out := &hardware.KnownDisks{}
	for _, disk := range known {
		if disk.Gone == nil {
			out.Expected = append(out.Expected, hardware.Disk(disk.DiskInventory))
			continue
		}
		out.Gone = append(out.Gone, hardware.Disk(disk.DiskInventory).Identifier())
	}
	return out
}

// MissingDisks returns the disks that were in the host, were not declared gone, and were not found by the agent that looked last. It returns none
// where a BMC has looked last, because a BMC may leave out disks that are there.
func MissingDisks(status *v1alpha1.HostRecordStatus) []hardware.Disk {
	known := DisksToErase(status)
	if known == nil || status.Inventory == nil || status.Inventory.GPUSource != v1alpha1.SourceAgent {
		return nil
	}
	return hardware.AbsentDisks(known.Expected, hardwareDisks(status.Inventory.Disks))
}

// DeclareGone marks the disks with the names as gone and returns the new list with the disks that were marked now. A name that no disk has
// is kept too: it may be the address of a controller, or a disk that the record does not have.
func DeclareGone(known []v1alpha1.KnownDisk, names []string, gone v1alpha1.DiskGone) (all, marked []v1alpha1.KnownDisk) {
	for _, disk := range known {
		all = append(all, *disk.DeepCopy())
	}
	for _, name := range names {
		isFound := false
		for i := range all {
			if !hardware.Disk(all[i].DiskInventory).IsDeclared(name) {
				continue
			}
			isFound = true
			if all[i].Gone == nil {
				all[i].Gone = gone.DeepCopy()
				marked = append(marked, all[i])
			}
		}
		if !isFound && len(all) < v1alpha1.MaxDisks {
			disk := v1alpha1.KnownDisk{DiskInventory: v1alpha1.DiskInventory{SerialNumber: name}, Gone: gone.DeepCopy()}
			all, marked = append(all, disk), append(marked, disk)
		}
	}
	return all, marked
}

// EraseEvidence returns what an erase has done to each disk, and the disks that are gone.
func EraseEvidence(evidence *hardware.EraseEvidence, known []v1alpha1.KnownDisk) []v1alpha1.DiskEvidence {
	out := RecordEvidence(evidence)
	for _, disk := range known {
		if disk.Gone != nil && len(out) < v1alpha1.MaxDisks {
			out = append(out, v1alpha1.DiskEvidence{DiskInventory: disk.DiskInventory, Result: v1alpha1.DiskWasGone, Gone: disk.Gone.DeepCopy()})
		}
	}
	return out
}

// RecordEvidence returns the evidence as a HostRecord has it.
func RecordEvidence(evidence *hardware.EraseEvidence) []v1alpha1.DiskEvidence {
	if evidence == nil {
		return nil
	}
	var out []v1alpha1.DiskEvidence
	for _, disk := range evidence.Disks {
		out = append(out, v1alpha1.DiskEvidence{
			DiskInventory: v1alpha1.DiskInventory(disk.Disk), Method: v1alpha1.DiskEraseMethod(disk.Method), Bytes: disk.Bytes,
			Result: v1alpha1.DiskEraseResult(disk.Result), Message: disk.Message,
		})
	}
	return out
}

// HardwareEvidence returns the evidence in a HostRecord as the type of package hardware, or nil when there is none.
func HardwareEvidence(kept []v1alpha1.DiskEvidence) *hardware.EraseEvidence {
	if len(kept) == 0 {
		return nil
	}
	out := &hardware.EraseEvidence{}
	for _, disk := range kept {
		out.Disks = append(out.Disks, hardware.DiskEvidence{
			Disk: hardware.Disk(disk.DiskInventory), Method: hardware.EraseMethod(disk.Method), Bytes: disk.Bytes,
			Result: hardware.EraseResult(disk.Result), Message: disk.Message,
		})
	}
	return out
}

// HardwareDisk returns a disk in a HostRecord as the type of package hardware, the zero value when there is none.
func HardwareDisk(kept *v1alpha1.DiskInventory) hardware.Disk {
	if kept == nil {
		return hardware.Disk{}
	}
	return hardware.Disk(*kept)
}

// RecordDisk returns a disk as a HostRecord has it, nil for the zero value.
func RecordDisk(disk hardware.Disk) *v1alpha1.DiskInventory {
	if disk == (hardware.Disk{}) {
		return nil
	}
	kept := v1alpha1.DiskInventory(disk)
	return &kept
}

func hardwareDisks(disks []v1alpha1.DiskInventory) []hardware.Disk {
	var out []hardware.Disk
	for _, disk := range disks {
		out = append(out, hardware.Disk(disk))
	}
	return out
}

func knownDisks(known []v1alpha1.KnownDisk) []hardware.Disk {
	var out []hardware.Disk
	for _, disk := range known {
		out = append(out, hardware.Disk(disk.DiskInventory))
	}
	return out
}

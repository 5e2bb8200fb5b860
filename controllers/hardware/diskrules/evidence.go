package diskrules

import (
	"fmt"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// CheckEvidence refuses an erase that is not proved for every disk that the host has or had: those of the record, which may be nil, and those that the agent has
// found. It returns a *Refusal, or nil.
//
// Example: a disk does not answer after the power-on. The agent erases the others and reports success. Without this check the host would
// count as clean, and the next tenant would read the former tenant's data when the disk answers again.
func CheckEvidence(mode hardware.EraseMode, evidence *hardware.EraseEvidence, known *hardware.KnownDisks, found []hardware.Disk) error {
	if mode == hardware.EraseNone {
		return nil
	}
	if evidence == nil || len(evidence.Disks) == 0 {
		return refusef(hardware.ReasonEvidenceMissing, "the erase has no evidence: expected what was done to each disk")
	}
	var erased []hardware.Disk
	for _, disk := range evidence.Disks {
		if problem := evidenceProblem(mode, disk); problem != "" {
			return refusef(hardware.ReasonEvidenceMissing, "disk %s is not proved to be erased: %s", disk.Disk, problem)
		}
		erased = append(erased, disk.Disk)
	}
	if missing := hardware.AbsentDisks(disksToErase(known, found), erased); len(missing) > 0 {
		return refusef(hardware.ReasonEvidenceMissing, "the erase has no evidence for %s", diskTexts(missing))
	}
	return nil
}

// disksToErase returns the disks that the record of the host names, and those that the agent has found and the record does not name.
func disksToErase(known *hardware.KnownDisks, found []hardware.Disk) []hardware.Disk {
	var disks []hardware.Disk
	if known != nil {
		disks = append(disks, known.Expected...)
	}
	return append(disks, hardware.AbsentDisks(found, disks)...)
}

// evidenceProblem returns why the evidence of one disk is no proof of the erase mode, "" when it is.
func evidenceProblem(mode hardware.EraseMode, disk hardware.DiskEvidence) string {
	switch {
	case disk.Result != hardware.DiskErased:
		return fmt.Sprintf("its result is %q", disk.Result)
	case mode == hardware.EraseMetadata && disk.Method == hardware.MethodMetadata:
		if disk.Bytes <= 0 {
			return "no byte was overwritten"
		}
	case !disk.Method.IsComplete():
		return fmt.Sprintf("the erase mode is %s, and its method is %q", mode, disk.Method)
	case disk.SizeBytes <= 0 || disk.Bytes < disk.SizeBytes:
		return fmt.Sprintf("%d of %d bytes were erased", disk.Bytes, disk.SizeBytes)
	}
	return ""
}

package diskrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// CheckErase returns a *Refusal if an erase of the disks that were found would leave one out. known are the disks of the host; nil when nothing is known.
//
// Example: one disk of a host does not answer after the power-on. Without this check the others are erased, the host counts as clean, and
// the next tenant reads the former tenant's data when the disk answers again.
func CheckErase(found Found, known *hardware.KnownDisks) error {
	if known == nil {
		known = &hardware.KnownDisks{}
	}
	present := slices.Clone(found.Disks)
	var reasons []hardware.Reason
	var problems []string
	for _, disk := range found.Unusable {
		isGone := !disk.HasContent && slices.ContainsFunc(known.Gone, disk.IsDeclared)
		present = append(present, disk.Disk)
		if !isGone {
			reasons, problems = append(reasons, hardware.ReasonDiskNotErasable), append(problems, disk.String()+" "+disk.Why)
		}
	}
	if absent := hardware.AbsentDisks(known.Expected, present); len(absent) > 0 {
		reasons, problems = append(reasons, hardware.ReasonDiskMissing), append(problems, absentText(absent))
	}
	if len(found.Disks) == 0 {
		reasons = append(reasons, hardware.ReasonNoDisk)
		problems = append(problems, "the server has no disk that can be written: look at its storage controllers and at the drivers of the agent's kernel")
	}
	if len(problems) == 0 {
		return nil
	}
	return refusef(reasons[0], "nothing was erased: %s", strings.Join(problems, "; "))
}

// absentText says which disks are not found and what to do. The names come last: of many disks a message that is too long loses some of them, and
// not the remedy.
func absentText(absent []hardware.Disk) string {
	var names, texts []string
	for _, disk := range absent {
		names, texts = append(names, disk.Identifier()), append(texts, disk.String())
	}
	return fmt.Sprintf("%d of the disks of this host are missing: put them back or mend them; if they were taken out, or are behind a RAID controller, "+
		"annotate the BareMetalHost with ingot.dev/disk-gone: %s. Missing: %s", len(absent), strings.Join(names, ","), strings.Join(texts, ", "))
}

package host

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// maxDiskName is the limit of WantedAttempt.acceptedRootDisk and of DiskGone.by, in bytes.
const maxDiskName = 128

// previousRootDisk returns the disk that the last installation for the Machine was written to, or nil when that is not known. While an
// installation runs or has failed, nothing is installed, and the attempt has the disk. Without it: the root disk of a server does not answer
// during a roll, the next disk by size is one with the Machine's data, and the image is written over that.
func (p *planner) previousRootDisk(machine types.UID) *v1alpha1.DiskInventory {
	if in := p.d.Record.Installed; in != nil {
		if in.MachineUID == machine {
			return in.RootDisk.DeepCopy()
		}
		return nil
	}
	if w := p.d.Record.Wanted; w != nil && w.Operation == string(hardware.OpInstall) && w.MachineUID == machine {
		return w.PreviousRootDisk.DeepCopy()
	}
	return nil
}

// acceptRootDisk resets the failures of an installation that refused to write to another disk, when the annotation ingot.dev/root-disk has
// another value than that installation knew.
func (p *planner) acceptRootDisk() result {
	w := p.d.Record.Wanted
	if p.Host.RootDisk != "" && w != nil && p.isIdle() && w.Reason == string(hardware.ReasonRootDiskDiffers) &&
		w.AcceptedRootDisk != input.Truncate(p.Host.RootDisk, maxDiskName) {
		p.d.Record.Failures = 0
	}
	return done
}

// hasOverwrittenDisks reports whether the attempt before was a metadata erase that failed while it overwrote a whole disk, because the partitions
// of the disk cannot be read. Only such a metadata erase has a number of bytes in total. Without it: overwriting the disk takes hours, each
// attempt ends after the minutes that a metadata erase has, and the next one begins at the first byte again.
func (p planner) hasOverwrittenDisks() bool {
	w, progress := p.d.Record.Wanted, p.d.Record.Progress()
	return w != nil && w.Operation == string(hardware.OpErase) && w.Outcome == v1alpha1.AttemptFailed && w.Erase == v1alpha1.EraseMetadata &&
		w.Step == string(hardware.StepErasing) && progress != nil && progress.TotalBytes > 0
}

// missingDiskReasons are the failures of an erase that end when a disk is declared gone.
var missingDiskReasons = []string{
	string(hardware.ReasonDiskMissing), string(hardware.ReasonDiskNotErasable), string(hardware.ReasonEvidenceMissing), string(hardware.ReasonNoDisk),
}

// acceptGoneDisks records the disks that the annotation ingot.dev/disk-gone names, with the time and the author of the annotation, and lets an
// erase that failed for want of them be tried again. The record outlives the annotation, which is removed.
func (p *planner) acceptGoneDisks() {
	if len(p.Host.DisksGone) == 0 {
		return
	}
	r := &p.d.Record
	p.d.RemoveAnnotations = append(p.d.RemoveAnnotations, AnnotationDiskGone)
	gone := v1alpha1.DiskGone{At: microTime(p.Host.DisksGoneAt), By: input.Truncate(p.Host.DisksGoneBy, maxDiskName)}
	if p.Host.DisksGoneAt.IsZero() {
		gone.At = microTime(p.Now)
	}
	var marked []v1alpha1.KnownDisk
	r.Disks, marked = inventory.DeclareGone(inventory.KnownDisks(r), p.Host.DisksGone, gone)
	var names []string
	for _, disk := range marked {
		names = append(names, hardware.Disk(disk.DiskInventory).String())
	}
	if len(names) > 0 {
		p.d.Events = append(p.d.Events, event.Warning("DiskGone", string(hardware.OpErase),
			fmt.Sprintf("declared gone by %q, no erase waits for: %s", gone.By, strings.Join(names, "; "))))
	}
	if w := r.Wanted; w != nil && p.isIdle() && slices.Contains(missingDiskReasons, w.Reason) {
		r.Failures = 0
	}
}

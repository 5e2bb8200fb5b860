package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

var rootDisk = v1alpha1.DiskInventory{Name: "/dev/nvme0n1", SerialNumber: "ROOT", SizeBytes: 1 << 40}

func TestTheRootDiskIsKeptFromOneInstallationToTheNext(t *testing.T) {
	// A first installation names no disk, and what it wrote is recorded.
	f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptSucceeded, "")
	f.Observed.Attempt.RootDisk, f.Observed.Attempt.Message = hardware.Disk(rootDisk), "written to disk ROOT, the smallest of 2"
	f.Host.RootDisk = "ROOT"
	d := Plan(f)
	if in := d.Record.Installed; in == nil || in.RootDisk == nil || *in.RootDisk != rootDisk {
		t.Fatalf("installed = %+v", in)
	}
	if len(d.Events) == 0 || !strings.Contains(d.Events[0].Message, "the smallest of 2") || !slices.Contains(d.RemoveAnnotations, AnnotationRootDisk) {
		t.Errorf("events %+v, annotations removed %v", d.Events, d.RemoveAnnotations)
	}
	// A roll requires that disk, after a failure too.
	f = facts(metal3.StateProvisioned, hardware.PowerOff).claimed().installed().with(otherImage)
	f.Record.Installed.RootDisk, f.Spec.Attempt = &rootDisk, 2
	d = Plan(f)
	if w := d.Record.Wanted; w == nil || w.PreviousRootDisk == nil || *w.PreviousRootDisk != rootDisk || d.Record.Installed != nil {
		t.Fatalf("wanted = %+v", w)
	}
	f.Record, f.Host.Status.State = d.Record, metal3.StateProvisioning
	f.Observed = &hardware.Observation{Power: hardware.PowerOff, Attempt: &hardware.AttemptStatus{Number: d.Record.Wanted.Number, State: hardware.AttemptRunning}}
	if d = Plan(f); d.Action.Kind != ActionInstall || d.Action.PreviousRootDisk != hardware.Disk(rootDisk) {
		t.Errorf("action = %+v", d.Action)
	}
	f.Observed.Attempt.State, f.Observed.Attempt.Reason = hardware.AttemptFailed, hardware.ReasonDiskError
	f.Record = Plan(f).Record
	f.Now = f.Now.Add(time.Hour)
	if w := Plan(f).Record.Wanted; w.Number != d.Record.Wanted.Number+1 || w.PreviousRootDisk == nil || *w.PreviousRootDisk != rootDisk {
		t.Errorf("after a failure: %+v", w)
	}
	// Another Machine has no disk from before.
	other := facts(metal3.StateAvailable, hardware.PowerOff).claimed()
	other.Record.Wanted = &v1alpha1.WantedAttempt{Number: 5, Operation: string(hardware.OpInstall), MachineUID: "m0", PreviousRootDisk: &rootDisk, Outcome: v1alpha1.AttemptFailed, EndedAt: &other.Record.Power.ObservedAt}
	if w := Plan(other).Record.Wanted; w == nil || w.MachineUID != "m1" || w.PreviousRootDisk != nil {
		t.Errorf("another Machine: %+v", w)
	}
}

func TestAnotherRootDiskIsRefusedUntilTheAnnotationAcceptsIt(t *testing.T) {
	f := facts(metal3.StateProvisioning, hardware.PowerOff).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonRootDiskDiffers).ended(3)
	f.Record.Wanted.PreviousRootDisk = &rootDisk
	f.Now = f.Now.Add(24 * time.Hour)
	d := Plan(f)
	if d.Record.Wanted.Number != 4 || d.Record.Error == nil || d.Record.Error.Reason != "RootDiskDiffers" {
		t.Fatalf("without the annotation: %+v, error %+v", d.Record.Wanted, d.Record.Error)
	}
	f.Host.RootDisk = "NEW"
	d = Plan(f)
	if w := d.Record.Wanted; w.Number != 5 || w.AcceptedRootDisk != "NEW" || w.PreviousRootDisk == nil {
		t.Fatalf("with the annotation: %+v", w)
	}
	// The same value is not accepted again after it was refused.
	f.Record.Wanted.AcceptedRootDisk = "NEW"
	if d = Plan(f); d.Record.Wanted.Number != 4 {
		t.Errorf("the same annotation again: %+v", d.Record.Wanted)
	}
}

func TestADiskIsDeclaredGoneWithTimeAndAuthorAndTheEraseIsTriedAgain(t *testing.T) {
	f := facts(metal3.StateDeprovisioning, hardware.PowerOff).attempted(4, hardware.OpErase, hardware.AttemptFailed, hardware.ReasonDiskMissing).ended(3)
	f.Record.LastTenant = "team/research"
	lost := v1alpha1.DiskInventory{SerialNumber: "LOST", SizeBytes: 7}
	f.Record.Disks = []v1alpha1.KnownDisk{{DiskInventory: rootDisk}, {DiskInventory: lost}}
	f.Now = f.Now.Add(24 * time.Hour)
	if d := Plan(f); d.Record.Wanted.Number != 4 {
		t.Fatalf("without the annotation: %+v", d.Record.Wanted)
	}
	f.Host.DisksGone, f.Host.DisksGoneBy, f.Host.DisksGoneAt = []string{"lost", "0000:18:00.0"}, "kubectl-annotate", noon.Add(time.Minute)
	d := Plan(f)
	if d.Record.Wanted.Number != 5 || !slices.Contains(d.RemoveAnnotations, AnnotationDiskGone) {
		t.Errorf("wanted = %+v, annotations removed %v", d.Record.Wanted, d.RemoveAnnotations)
	}
	gone := d.Record.Disks[1].Gone
	if d.Record.Disks[0].Gone != nil || gone == nil || gone.By != "kubectl-annotate" || !gone.At.Equal(&[]v1alpha1.DiskGone{{At: at(time.Minute)}}[0].At) || len(d.Record.Disks) != 3 {
		t.Errorf("disks = %+v", d.Record.Disks)
	}
	// The proof of the erase has both disks.
	f.Host.DisksGone, f.Record = nil, d.Record
	f.Observed = &hardware.Observation{Power: hardware.PowerOff, Attempt: &hardware.AttemptStatus{Number: 5, State: hardware.AttemptSucceeded, Evidence: &hardware.EraseEvidence{
		Disks: []hardware.DiskEvidence{{Disk: hardware.Disk(rootDisk), Method: hardware.MethodOverwrite, Bytes: rootDisk.SizeBytes, Result: hardware.DiskErased}}}}}
	proof := Plan(f).Record.Erased
	if proof == nil || len(proof.Disks) != 3 || proof.Disks[0].Result != v1alpha1.DiskErased || proof.Disks[0].Bytes != rootDisk.SizeBytes ||
		proof.Disks[1].Result != v1alpha1.DiskWasGone || proof.Disks[1].Gone.By != "kubectl-annotate" {
		t.Errorf("proof = %+v", proof)
	}
}

func TestTheDisksOfAnInspectionAreKnown(t *testing.T) {
	f := facts(metal3.StateInspecting, hardware.PowerOff).attempted(1, hardware.OpInspect, hardware.AttemptSucceeded, "")
	f.Observed.Inventory = &hardware.Inventory{Disks: []hardware.Disk{hardware.Disk(rootDisk), {Name: "/dev/vda", SizeBytes: 5}}}
	if disks := Plan(f).Record.Disks; len(disks) != 1 || disks[0].SerialNumber != "ROOT" {
		t.Errorf("disks = %+v", disks)
	}
}

func TestAnInspectionForgetsNoDiskOfAnEarlierVersion(t *testing.T) {
	f := facts(metal3.StateInspecting, hardware.PowerOff).attempted(1, hardware.OpInspect, hardware.AttemptSucceeded, "")
	f.Record.Inventory = &v1alpha1.HostInventory{Disks: []v1alpha1.DiskInventory{rootDisk, {SerialNumber: "LOST", SizeBytes: 7}}}
	f.Observed.Inventory = &hardware.Inventory{Disks: []hardware.Disk{hardware.Disk(rootDisk)}}
	if disks := Plan(f).Record.Disks; len(disks) != 2 || disks[1].SerialNumber != "LOST" {
		t.Errorf("disks = %+v", disks)
	}
}

func TestAMetadataEraseThatOverwritesADiskHasTheTimeOfAFullErase(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  hardware.Step
		total int64
		want  time.Duration
	}{
		{"whole disks", hardware.StepErasing, 1 << 40, DefaultTimeouts().EraseFull},
		{"signatures", hardware.StepErasing, 0, DefaultTimeouts().EraseMetadata},
		{"nothing yet", hardware.StepBooting, 0, DefaultTimeouts().EraseMetadata},
	} {
		f := facts(metal3.StateDeprovisioning, hardware.PowerOff).attempted(4, hardware.OpErase, hardware.AttemptFailed, hardware.ReasonDeadlineExceeded)
		f.Observed.Attempt.Step = c.step
		f = f.ended(1)
		f.Record.LastTenant, f.Record.Wanted.Erase = "team/research", v1alpha1.EraseMetadata
		f.Record.Attempt = &v1alpha1.HostAttempt{Number: 4, TotalBytes: c.total}
		f.Now = f.Now.Add(time.Hour)
		w := Plan(f).Record.Wanted
		if w.Number != 5 || w.Erase != v1alpha1.EraseMetadata || w.Deadline.Sub(w.Since.Time) != c.want {
			t.Errorf("after an erase of %s: %+v, expected %s", c.name, w, c.want)
		}
	}
}

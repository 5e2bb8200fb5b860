package conformance

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Condition is the condition in which a case leaves the last attempt, the server, its disk and the Machine. Where a field is a list, it is one of them.
type Condition struct {
	// Attempt is how the last attempt has ended, or that it runs; empty: there was none.
	Attempt []Outcome
	Power   hardware.PowerState
	// Runs is what the server runs from its disk: diskImage or DiskForeign; empty: nothing.
	Runs string
	// Disk is what the disk holds: diskImage, DiskForeign, DiskPartial or DiskErased.
	Disk    []string
	Machine Holding
}

// Outcome is how an attempt has ended.
type Outcome struct {
	State  hardware.AttemptState
	Reason hardware.Reason
}

func failedBy(reason hardware.Reason) Outcome { return Outcome{hardware.AttemptFailed, reason} }

// succeeded is the outcome of an attempt that has done its work.
var succeeded = Outcome{State: hardware.AttemptSucceeded}

// diskImage stands for the Rig's image, whose content has the name of its checksum.
const diskImage = "the image"

// Holding is what the Machine has of the host to which the last attempt belonged.
type Holding string

// Holdings.
const (
	// holdsBefore is after no attempt, or after an inspection.
	holdsBefore Holding = "what it had"
	holdsImage  Holding = "its image"
	// holdsAnyTenant is after an erase of each byte of each disk that has evidence.
	holdsAnyTenant Holding = "nothing, and the host may go to another tenant"
	// holdsMetadata is after an erase of the metadata, or after a full erase without evidence for each disk: it may have left one out.
	holdsMetadata Holding = "nothing, and the host may go to another tenant only where Metadata is enough between tenants"
	// holdsUnproven is after an attempt that has failed, and after an erase of nothing.
	holdsUnproven Holding = "nothing, and the host may not go to another tenant"
	holdsNotYet   Holding = "nothing yet, the work goes on"
)

// holdingOf returns what the Machine has by the status of an attempt. What counts between tenants follows from what the Installer says of itself:
// controllers/plan/providerkind, ProvenErase, decides the same by the kind of the NodeProvider, and controllers/plan/placement which host is passed over.
func holdingOf(status hardware.AttemptStatus, w work, can hardware.Capabilities) Holding {
	switch {
	case status.Number == 0 || w.operation == hardware.OpInspect:
		return holdsBefore
	case status.State == hardware.AttemptRunning:
		return holdsNotYet
	case status.State != hardware.AttemptSucceeded:
		return holdsUnproven
	case w.operation == hardware.OpInstall:
		return holdsImage
	case w.mode == hardware.EraseFull && can.DiskEvidence:
		return holdsAnyTenant
	case w.mode == hardware.EraseFull || w.mode == hardware.EraseMetadata:
		return holdsMetadata
	default:
		return holdsUnproven
	}
}

// Conditions that many cases leave.
var (
	installed   = Condition{[]Outcome{succeeded}, hardware.PowerOn, diskImage, []string{diskImage}, holdsImage}
	erased      = Condition{[]Outcome{succeeded}, hardware.PowerOff, "", []string{DiskErased}, holdsMetadata}
	inspectedOn = Condition{[]Outcome{succeeded}, hardware.PowerOn, DiskForeign, []string{DiskForeign}, holdsBefore}
	inspected   = Condition{[]Outcome{succeeded}, hardware.PowerOff, "", []string{DiskForeign}, holdsBefore}
	untouched   = Condition{nil, hardware.PowerOn, DiskForeign, []string{DiskForeign}, holdsBefore}
	poweredOff  = Condition{nil, hardware.PowerOff, "", []string{DiskForeign}, holdsBefore}
)

// failedOff is after an attempt that has ended in one of these ways, with the server off.
func failedOff(disk []string, outcomes ...Outcome) Condition {
	return Condition{outcomes, hardware.PowerOff, "", disk, holdsUnproven}
}

// failedOn is the same with the server on. It runs nothing of its disk.
func failedOn(disk []string, outcomes ...Outcome) Condition {
	return Condition{outcomes, hardware.PowerOn, "", disk, holdsUnproven}
}

// seen is what is so.
type seen struct {
	outcome     Outcome
	power       hardware.PowerState
	runs, disk  string
	machine     Holding
	observation hardware.Observation
}

// look returns what is so with the server now.
func (f *fixture) look() seen {
	f.t.Helper()
	status := f.attemptStatus()
	observation, _ := f.Installer().Observe(f.t.Context(), f.Host())
	return seen{
		Outcome{status.State, status.Reason}, f.Power(), f.content(f.Running()), f.content(f.Disk()), holdingOf(status, f.works[status.Number], f.Installer().Capabilities()), observation,
	}
}

// content returns the name of what a disk holds.
func (f *fixture) content(held string) string {
	if held == f.Image().Checksum {
		return diskImage
	}
	return held
}

// isSeen reports whether the condition is so.
func (c Condition) isSeen(s seen) bool {
	hasOutcome := slices.Contains(c.Attempt, s.outcome) || len(c.Attempt) == 0 && s.outcome == Outcome{}
	return hasOutcome && s.power == c.Power && s.runs == c.Runs && slices.Contains(c.Disk, s.disk) && s.machine == c.Machine
}

// expectLeft checks that the server is left in the condition, within the minutes that a server takes to start, and that the Installer says of it what is so.
func (f *fixture) expectLeft(want Condition) {
	f.t.Helper()
	now := f.look()
	for range 60 {
		if want.isSeen(now) {
			break
		}
		f.Advance(callInterval)
		now = f.look()
	}
	if !want.isSeen(now) {
		f.t.Errorf("the case leaves %s, expected %s", now, want)
	}
	if told := now.observation.Power; (told == hardware.PowerOn || told == hardware.PowerOff) && told != now.power {
		f.t.Errorf("the Installer says that the power is %s, and it is %s", told, now.power)
	}
	if other := f.SecondDisk(); now.machine == holdsAnyTenant && (now.disk != DiskErased || other != "" && other != DiskErased) {
		f.t.Errorf("the host may go to another tenant with the disks %q and %q", now.disk, other)
	}
}

func (s seen) String() string {
	var attempt []Outcome
	if s.outcome != (Outcome{}) {
		attempt = append(attempt, s.outcome)
	}
	return Condition{attempt, s.power, s.runs, []string{s.disk}, s.machine}.String()
}

// String returns the columns of the condition in words.
func (c Condition) String() string {
	return strings.Join([]string{c.attemptText(), c.serverText(), c.diskText(), string(c.Machine)}, " | ")
}

func (c Condition) attemptText() string {
	var texts []string
	for _, o := range c.Attempt {
		text := string(o.State)
		if o.Reason != "" {
			text += ", " + string(o.Reason)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, " or ")
}

func (c Condition) serverText() string {
	switch {
	case c.Power == hardware.PowerOff && c.Runs == "":
		return "off"
	case c.Runs == "":
		return strings.ToLower(string(c.Power)) + ", runs nothing of its disk"
	default:
		return strings.ToLower(string(c.Power)) + ", runs " + contentText(c.Runs)
	}
}

func (c Condition) diskText() string {
	var texts []string
	for _, content := range c.Disk {
		texts = append(texts, contentText(content))
	}
	return strings.Join(texts, " or ")
}

// contentText returns what a disk holds in words.
func contentText(content string) string {
	if content == DiskForeign {
		return "what another owner left"
	}
	return content
}

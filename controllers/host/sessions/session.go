package sessions

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// session returns the session of a host from the two objects. Its times are by the clock as it is now.
//
// Without that: the API server's clock is a day ahead when a server is powered on, and is set back. The boot service refuses its agent for a day, because the
// server will have been powered on tomorrow, and no time-out ends the attempt.
func (s *Store) session(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) netboot.Session {
	out := storedSession(host, record)
	if s.Clock != nil {
		out = out.WithTimes(serverclock.Of(s.Clock).Present)
	}
	return out
}

// storedSession returns the session with its times as they are stored.
func storedSession(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) netboot.Session {
	s := netboot.Session{
		HostUID: string(host.UID), Namespace: host.Namespace, Name: host.Name, BootMAC: strings.ToLower(host.Spec.BootMACAddress),
		Inventory: inventory.HardwareInventory(record.Status.Seen()), Disks: inventory.DisksToErase(&record.Status), KnownTPM: inventory.KnownTPM(host.Annotations[v1alpha1.AnnotationTPMKey], &record.Status),
	}
	w := record.Status.Wanted
	if w == nil {
		return s
	}
	s.Since, s.Deadline, s.Operation, s.Erase = w.Since.Time, w.Deadline.Time, hardware.Operation(w.Operation), hardware.EraseMode(w.Erase)
	if w.IsAgentInspection() {
		s.Inspector = hardware.InspectByAgent
	}
	if w.Image != nil {
		s.Image = hardware.Image{URL: w.Image.URL, Checksum: w.Image.Checksum, Format: string(w.Image.Format)}
	}
	if s.Operation == hardware.OpInstall {
		s.GPUs, s.Requirements = inventory.RequiredGPUs(w.GPUs), inventory.Requirements(w.Hardware, w.Image)
		s.RootDevice = RootDevice(host.Spec.RootDeviceHints)
		s.PreviousRootDisk, s.AcceptedRootDisk = inventory.HardwareDisk(w.PreviousRootDisk), w.AcceptedRootDisk
	}
	a := record.Status.Progress()
	if a == nil {
		// No progress is stored yet. The first step is written with the first change.
		s.AttemptStatus = hardware.AttemptStatus{Number: w.Number, State: hardware.AttemptRunning, Step: hardware.StepPoweringOff}
		s.StepAt = s.Since
		s.SilentBoots = silentBootsBefore(record.Status.Attempt)
		if before := record.Status.Attempt; before != nil {
			s.BootOrder = before.BootOrder
		}
		s.Findings.InventoryDiffers = inventoryDifferenceBefore(record.Status.Attempt)
		return s
	}
	s.AttemptStatus = hardware.AttemptStatus{
		Number: a.Number, State: hardware.AttemptState(a.State), Step: hardware.Step(a.Step), DoneBytes: a.DoneBytes, TotalBytes: a.TotalBytes,
		Boots: int(a.Boots), Reason: hardware.Reason(a.Reason), Message: a.Message,
		RootDisk: inventory.HardwareDisk(a.RootDisk), Evidence: inventory.HardwareEvidence(a.Disks), Channel: hardware.Channel(a.Channel),
		TPM: inventory.HardwareTPM(a.TPM),
	}
	s.BootOrder = a.BootOrder
	s.BootWay, s.ImageBoots, s.SilentBoots = hardware.BootSource(a.BootWay), int(a.ImageBoots), silentBoots(a.SilentBoots)
	s.StepAt, s.StepDeadline, s.OpenedAt = timeOf(a.StepAt), timeOf(a.StepDeadline), timeOf(a.OpenedAt)
	s.ConfigDriveAwaitedAt, s.KernelFetchedAt = timeOf(a.ConfigDriveAwaitedAt), timeOf(a.KernelFetchedAt)
	if k := a.KernelAwaited; k != nil {
		s.KernelAwaited = netboot.KernelAwaited{At: k.At.Time, URL: k.URL}
	}
	if agent := a.Agent; agent != nil {
		s.Agent = netboot.Agent{KeyDigest: agent.KeyDigest, Address: agent.Address, RegisteredAt: agent.RegisteredAt.Time, HeardAt: agent.HeardAt.Time}
	}
	for _, f := range a.Findings {
		if into := finding(&s.Findings, f.Reason); into != nil {
			*into = netboot.Finding{Count: int(f.Count), At: f.At.Time, Message: f.Message}
		}
	}
	return s
}

// silentBootsBefore returns the silent boots that a new attempt goes on with: those of the failed one before it. A success ends the row.
func silentBootsBefore(before *v1alpha1.HostAttempt) netboot.SilentBoots {
	if before == nil || hardware.AttemptState(before.State) != hardware.AttemptFailed {
		return netboot.SilentBoots{}
	}
	return silentBoots(before.SilentBoots)
}

// inventoryDifferenceBefore returns the finding that the hardware differs from what the BMC reported, which a new attempt goes on with: a missing part is
// not there because another attempt begins.
func inventoryDifferenceBefore(before *v1alpha1.HostAttempt) netboot.Finding {
	if before != nil {
		for _, f := range before.Findings {
			if f.Reason == v1alpha1.FindingInventoryDiffers {
				return netboot.Finding{Count: int(f.Count), At: f.At.Time, Message: f.Message}
			}
		}
	}
	return netboot.Finding{}
}

func silentBoots(b *v1alpha1.SilentBoots) netboot.SilentBoots {
	if b == nil {
		return netboot.SilentBoots{}
	}
	return netboot.SilentBoots{Way: hardware.BootSource(b.Way), Boots: int(b.Boots)}
}

// recordSilentBoots returns the silent boots as they are stored; nil when there are none.
func recordSilentBoots(b netboot.SilentBoots) *v1alpha1.SilentBoots {
	if b.Boots == 0 {
		return nil
	}
	return &v1alpha1.SilentBoots{Way: v1alpha1.BootWay(b.Way), Boots: int32(b.Boots)}
}

// finding returns the finding of a reason, and nil for a reason that is not known.
func finding(f *netboot.Findings, reason v1alpha1.HostFindingReason) *netboot.Finding {
	return map[v1alpha1.HostFindingReason]*netboot.Finding{
		v1alpha1.FindingAnotherAgent: &f.AnotherAgent, v1alpha1.FindingBootRequestedAgain: &f.BootRequestedAgain, v1alpha1.FindingServerDiffers: &f.ServerDiffers,
		v1alpha1.FindingBootLoadFailed: &f.BootLoadFailed, v1alpha1.FindingKernelNotRequested: &f.KernelNotRequested,
		v1alpha1.FindingNoAgentRegistered: &f.NoAgentRegistered, v1alpha1.FindingInventoryDiffers: &f.InventoryDiffers,
		v1alpha1.FindingBootWayRefused: &f.BootWayRefused, v1alpha1.FindingBootWaySilent: &f.BootWaySilent, v1alpha1.FindingBootNotEncrypted: &f.BootNotEncrypted,
	}[reason]
}

// hostAgent returns the agent as it is stored; nil when there is none.
func hostAgent(a netboot.Agent) *v1alpha1.HostAgent {
	if a.KeyDigest == "" {
		return nil
	}
	return &v1alpha1.HostAgent{KeyDigest: a.KeyDigest, Address: a.Address, RegisteredAt: metav1.NewMicroTime(a.RegisteredAt), HeardAt: metav1.NewMicroTime(a.HeardAt)}
}

// kernelAwaited returns the boot document whose kernel is awaited as it is stored; nil when there is none.
func kernelAwaited(k netboot.KernelAwaited) *v1alpha1.KernelAwaited {
	if k.At.IsZero() {
		return nil
	}
	return &v1alpha1.KernelAwaited{At: metav1.NewMicroTime(k.At), URL: input.Truncate(k.URL, v1alpha1.MaxBootURL)}
}

// findingReasons are the reasons of findings, in order.
var findingReasons = []v1alpha1.HostFindingReason{
	v1alpha1.FindingAnotherAgent, v1alpha1.FindingBootLoadFailed, v1alpha1.FindingBootNotEncrypted, v1alpha1.FindingBootRequestedAgain, v1alpha1.FindingBootWayRefused,
	v1alpha1.FindingBootWaySilent, v1alpha1.FindingInventoryDiffers, v1alpha1.FindingKernelNotRequested, v1alpha1.FindingNoAgentRegistered, v1alpha1.FindingServerDiffers,
}

// hostFindings returns the findings as they are stored, in the order of their reasons.
func hostFindings(findings netboot.Findings) []v1alpha1.HostFinding {
	var out []v1alpha1.HostFinding
	for _, reason := range findingReasons {
		if f := finding(&findings, reason); f.Count > 0 {
			out = append(out, v1alpha1.HostFinding{Reason: reason, Message: f.Message, Count: int32(f.Count), At: metav1.NewMicroTime(f.At)})
		}
	}
	return out
}

// hasSameProgress reports whether nothing that is stored of the attempt's progress differs between the sessions.
func hasSameProgress(before, after netboot.Session) bool {
	return after.AttemptStatus == before.AttemptStatus && after.BootWay == before.BootWay && after.ImageBoots == before.ImageBoots && after.SilentBoots == before.SilentBoots && slices.Equal(after.BootOrder, before.BootOrder) && after.StepAt.Equal(before.StepAt) && after.OpenedAt.Equal(before.OpenedAt) &&
		after.ConfigDriveAwaitedAt.Equal(before.ConfigDriveAwaitedAt) && after.KernelFetchedAt.Equal(before.KernelFetchedAt) && after.Agent == before.Agent && after.KernelAwaited == before.KernelAwaited && after.Findings == before.Findings
}

// updateRecord sets the fields of the record that differ between the sessions. It returns a Conflict if the attempt is not the wanted one.
func updateRecord(record *v1alpha1.HostRecord, before, after netboot.Session) error {
	if after.Number != before.Number || !after.IsSame(before.Work) {
		err := hardware.Errorf(hardware.Conflict, opUpdate, after.Namespace+"/"+after.Name, "attempt %d is not the one that is wanted of the host, %d", after.Number, before.Number)
		err.Reason = hardware.ReasonAttemptConflict
		return err
	}
	if hasSameProgress(before, after) && after.Inventory == before.Inventory {
		return nil
	}
	found, earlier := attemptInventory(record, before, after)
	record.Status.Attempt = &v1alpha1.HostAttempt{
		Number: after.Number, State: string(after.State), Step: string(after.Step), StepAt: microTime(after.StepAt), StepDeadline: stepDeadline(after), OpenedAt: microTime(after.OpenedAt),
		Boots: int32(after.Boots), BootWay: string(after.BootWay), Channel: v1alpha1.AgentChannel(after.Channel), TPM: inventory.RecordTPM(after.TPM), ImageBoots: int32(after.ImageBoots), SilentBoots: recordSilentBoots(after.SilentBoots), BootOrder: after.BootOrder, DoneBytes: after.DoneBytes, TotalBytes: after.TotalBytes, Reason: string(after.Reason), Message: input.Line(after.Message, v1alpha1.MaxAttemptMessage),
		Agent: hostAgent(after.Agent), ConfigDriveAwaitedAt: microTime(after.ConfigDriveAwaitedAt), Findings: hostFindings(after.Findings), KernelAwaited: kernelAwaited(after.KernelAwaited), KernelFetchedAt: microTime(after.KernelFetchedAt),
		Inventory: found, EarlierDisks: earlier, RootDisk: inventory.RecordDisk(after.RootDisk), Disks: inventory.RecordEvidence(after.Evidence),
	}
	return nil
}

// attemptInventory returns the inventory of the attempt as it is stored, nil where it is the one that is kept, and the disks that only its earlier boots have found.
func attemptInventory(record *v1alpha1.HostRecord, before, after netboot.Session) (found *v1alpha1.HostInventory, earlier []v1alpha1.DiskInventory) {
	if after.Inventory == before.Inventory || after.Inventory == nil {
		if a := record.Status.Progress(); a != nil {
			return a.Inventory, a.EarlierDisks
		}
		return nil, nil
	}
	found = inventory.HostInventory(*after.Inventory, record.Status.Seen())
	if equality.Semantic.DeepEqual(found, record.Status.Inventory) {
		found = nil
	}
	return found, inventory.EarlierDisks(&record.Status, found)
}

// stepDeadline returns the deadline of the step of a running attempt. A deadline after that of the attempt never comes.
func stepDeadline(s netboot.Session) *metav1.MicroTime {
	if s.State != hardware.AttemptRunning || s.StepDeadline.After(s.Deadline) {
		return nil
	}
	return microTime(s.StepDeadline)
}

func timeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewMicroTime(t)
	return &out
}

// RootDevice returns Metal3's root device hints.
func RootDevice(hints *metal3.RootDeviceHints) hardware.RootDevice {
	if hints == nil {
		return hardware.RootDevice{}
	}
	device := hardware.RootDevice{
		DeviceName: hints.DeviceName, SerialNumber: hints.SerialNumber, WWN: hints.WWN, Model: hints.Model, HCTL: hints.HCTL, Vendor: hints.Vendor,
		WWNWithExtension: hints.WWNWithExtension, WWNVendorExtension: hints.WWNVendorExtension,
		MinSizeBytes: int64(hints.MinSizeGigabytes) << 30, // Ironic, which Metal3 passes the number to, counts in GiB
	}
	if hints.Rotational != nil {
		device.Rotational = strconv.FormatBool(*hints.Rotational)
	}
	return device
}

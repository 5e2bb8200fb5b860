package sessions

import (
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// session returns the session of a host from the two objects.
func session(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) netboot.Session {
	s := netboot.Session{
		HostUID: string(host.UID), Namespace: host.Namespace, Name: host.Name, BootMAC: strings.ToLower(host.Spec.BootMACAddress),
		Inventory: inventory.HardwareInventory(record.Status.Inventory),
	}
	w := record.Status.Wanted
	if w == nil {
		return s
	}
	s.Since, s.Deadline, s.Operation, s.Erase = w.Since.Time, w.Deadline.Time, hardware.Operation(w.Operation), hardware.EraseMode(w.Erase)
	if w.Image != nil {
		s.Image = hardware.Image{URL: w.Image.URL, Checksum: w.Image.Checksum, Format: string(w.Image.Format)}
	}
	if s.Operation == hardware.OpInstall {
		s.RootDevice, _ = RootDevice(host.Spec.RootDeviceHints)
	}
	a := record.Status.Progress()
	if a == nil {
		// No progress is stored yet. The first step is written with the first change.
		s.AttemptStatus = hardware.AttemptStatus{Number: w.Number, State: hardware.AttemptRunning, Step: hardware.StepPoweringOff}
		s.StepAt = s.Since
		return s
	}
	s.AttemptStatus = hardware.AttemptStatus{
		Number: a.Number, State: hardware.AttemptState(a.State), Step: hardware.Step(a.Step), DoneBytes: a.DoneBytes, TotalBytes: a.TotalBytes,
		Boots: int(a.Boots), Reason: hardware.Reason(a.Reason), Message: a.Message,
	}
	s.StepAt, s.OpenedAt = timeOf(a.StepAt), timeOf(a.OpenedAt)
	return s
}

// updateRecord sets the fields of the record that differ between the sessions. It returns a Conflict if the attempt is not the wanted one.
func updateRecord(record *v1alpha1.HostRecord, before, after netboot.Session) error {
	if after.Inventory != before.Inventory && after.Inventory != nil {
		record.Status.Inventory = inventory.HostInventory(*after.Inventory)
	}
	if after.Number != before.Number || after.Work != before.Work {
		return hardware.Errorf(hardware.Conflict, opUpdate, after.Namespace+"/"+after.Name, "attempt %d is not the one that is wanted of the host, %d", after.Number, before.Number)
	}
	if after.AttemptStatus == before.AttemptStatus && after.StepAt.Equal(before.StepAt) && after.OpenedAt.Equal(before.OpenedAt) {
		return nil
	}
	record.Status.Attempt = &v1alpha1.HostAttempt{
		Number: after.Number, State: string(after.State), Step: string(after.Step), StepAt: microTime(after.StepAt), OpenedAt: microTime(after.OpenedAt),
		Boots: int32(after.Boots), DoneBytes: after.DoneBytes, TotalBytes: after.TotalBytes, Reason: string(after.Reason), Message: v1alpha1.Truncate(after.Message, v1alpha1.MaxAttemptMessage),
	}
	return nil
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

// RootDevice returns Metal3's root device hints for the agent, and the names of the hints that the agent does not support. A host with
// such a hint must not be installed, because another disk could be overwritten.
func RootDevice(hints *metal3.RootDeviceHints) (hardware.RootDevice, []string) {
	if hints == nil {
		return hardware.RootDevice{}, nil
	}
	var unsupported []string
	for name, set := range map[string]bool{
		"hctl": hints.HCTL != "", "vendor": hints.Vendor != "", "wwnWithExtension": hints.WWNWithExtension != "",
		"wwnVendorExtension": hints.WWNVendorExtension != "", "rotational": hints.Rotational != nil,
	} {
		if set {
			unsupported = append(unsupported, name)
		}
	}
	slices.Sort(unsupported)
	return hardware.RootDevice{
		DeviceName: hints.DeviceName, SerialNumber: hints.SerialNumber, WWN: hints.WWN, Model: hints.Model,
		MinSizeBytes: int64(hints.MinSizeGigabytes) << 30, // Ironic, which Metal3 passes the number to, counts in GiB
	}, unsupported
}

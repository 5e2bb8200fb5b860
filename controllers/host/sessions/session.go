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
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// session reads a session from the two objects.
func session(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) netboot.Session {
	s := netboot.Session{
		HostUID: string(host.UID), Namespace: host.Namespace, Name: host.Name,
		BootMAC:   strings.ToLower(host.Spec.BootMACAddress),
		Inventory: inventory(record.Status.Inventory, host.Status.HardwareDetails),
	}
	a := record.Status.Attempt
	if a == nil {
		return s
	}
	s.Attempt, s.Operation, s.Erase = a.Number, hardware.Operation(a.Operation), hardware.EraseMode(a.Erase)
	s.State, s.Step = hardware.AttemptState(a.State), hardware.Step(a.Step)
	s.DoneBytes, s.TotalBytes, s.Boots = a.DoneBytes, a.TotalBytes, int(a.Boots)
	s.Reason, s.Message = hardware.Reason(a.Reason), a.Message
	s.StartedAt, s.Deadline = a.StartedAt.Time, a.Deadline.Time
	s.StepAt, s.OpenedAt = timeOf(a.StepAt), timeOf(a.OpenedAt)
	if a.Image != nil {
		s.Image = hardware.Image{URL: a.Image.URL, Checksum: a.Image.Checksum, Format: string(a.Image.Format)}
	}
	if s.Operation == hardware.OpInstall {
		s.RootDevice, _ = RootDevice(host.Spec.RootDeviceHints)
	}
	return s
}

// keep writes what changed into the record.
func keep(record *v1alpha1.HostRecord, before, after netboot.Session) {
	if after.Inventory != before.Inventory && after.Inventory != nil {
		record.Status.Inventory = plan.Inventory(*after.Inventory)
	}
	if after.Attempt == 0 {
		return
	}
	a := record.Status.Attempt
	if a == nil || a.Number != after.Attempt {
		a = &v1alpha1.HostAttempt{}
		record.Status.Attempt = a
	}
	a.Number, a.Operation, a.Erase = after.Attempt, string(after.Operation), v1alpha1.EraseMode(after.Erase)
	a.State, a.Step = string(after.State), string(after.Step)
	a.DoneBytes, a.TotalBytes, a.Boots = after.DoneBytes, after.TotalBytes, int32(after.Boots)
	a.Reason, a.Message = string(after.Reason), plan.AttemptMessage(after.Message)
	a.StartedAt, a.Deadline = metav1.NewMicroTime(after.StartedAt), metav1.NewMicroTime(after.Deadline)
	a.StepAt, a.OpenedAt = microTime(after.StepAt), microTime(after.OpenedAt)
	a.Image = nil
	if after.Image != (hardware.Image{}) {
		a.Image = &v1alpha1.ExactImage{URL: after.Image.URL, Checksum: after.Image.Checksum, Format: v1alpha1.ImageFormat(after.Image.Format)}
	}
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

// RootDevice translates Metal3's root device hints, and names those that the agent cannot follow: a host that has one
// must not be installed, since another disk might be overwritten.
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

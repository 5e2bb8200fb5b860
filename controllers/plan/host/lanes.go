package host

import (
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Lane says which part of the workers may reconcile a host. A call to a BMC that accepts the connection and never answers blocks its worker
// until the time-out, so hosts whose BMC may do that use few of the workers.
type Lane string

// Lanes.
const (
	// LaneWork is for a host whose BMC answered last, and of which something is wanted: a power-off before a roll, an installation, an
	// erase.
	LaneWork Lane = "Work"
	// LaneRoutine is for a host whose BMC answered last, and that is only observed or inspected. An inventory may take a minute.
	LaneRoutine Lane = "Routine"
	// LaneTrial is for a host whose BMC has not answered yet, or did not answer last while something is wanted of the host.
	LaneTrial Lane = "Trial"
	// LaneSuspect is for a host whose BMC did not answer last, and of which nothing is wanted.
	LaneSuspect Lane = "Suspect"
)

// LaneOf returns the lane of the host. Facts need no observation of the hardware. Everything that it depends on is stored, so a new process
// knows at once which BMCs do not answer.
func LaneOf(f Facts) Lane {
	isSuspect := slices.ContainsFunc(f.Record.FailingCalls, func(c v1alpha1.FailingCall) bool { return isUnreachable(c.Reason) })
	switch {
	case f.Record.Power == nil && !isSuspect, isSuspect && f.isWorkWanted():
		return LaneTrial
	case isSuspect:
		return LaneSuspect
	case f.isWorkWanted():
		return LaneWork
	}
	return LaneRoutine
}

// isUnreachable reports whether the reason is that of calls that get no answer, which may take until their time-out.
func isUnreachable(reason string) bool {
	return reason == v1alpha1.ReasonBMCUnreachable || reason == v1alpha1.ReasonInstallerUnreachable
}

// isWorkWanted reports whether anything but an observation or an inspection is wanted of the host.
func (f Facts) isWorkWanted() bool {
	w, power := f.Record.Wanted, f.Record.Power
	switch f.Host.Status.State {
	case metal3.StatePreparing, metal3.StateProvisioning, metal3.StateDeprovisioning, metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting:
		return true
	}
	isChanged := power != nil && power.ObservedGeneration != f.Host.Generation
	return f.Host.Deleting || w.IsOpen() && w.Operation != string(hardware.OpInspect) || isChanged || f.isPowerWanted() || f.isInstallationWanted()
}

// isPowerWanted reports whether the power of a host that a Machine has is switched, or must be. A host that must be on is not known to be off
// while its BMC does not answer.
func (f Facts) isPowerWanted() bool {
	power := f.Record.Power
	if !f.Host.Claimed || power == nil {
		return false
	}
	switch hardware.PowerState(power.State) {
	case hardware.PowerOff:
		return f.Host.Online && f.Host.Status.State == metal3.StateProvisioned
	case hardware.PowerTurningOn, hardware.PowerTurningOff:
		return true
	}
	return !f.Host.Online || f.Host.Reboot
}

// isInstallationWanted reports whether the Machine that has the host requests another attempt than is installed.
func (f Facts) isInstallationWanted() bool {
	in := f.Record.Installed
	return f.Host.Claimed && f.Spec.Machine != nil && (in == nil || in.MachineUID != f.Spec.Machine.UID || in.Attempt != f.Spec.Attempt)
}

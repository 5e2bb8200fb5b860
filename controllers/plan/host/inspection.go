package host

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// wayWithoutInspection is what a person can do who does not need the inspection.
const wayWithoutInspection = "set its spec.inspectionMode to " + string(metal3.InspectionModeDisabled) + " to go without this look"

// inspectionAttempt and agentInspectionAttempt return an attempt without a number and times.
func inspectionAttempt() v1alpha1.WantedAttempt {
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpInspect)}
}

func agentInspectionAttempt() v1alpha1.WantedAttempt {
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpInspect), Inspector: v1alpha1.SourceAgent}
}

// inspectionOfState returns the attempt that the state inspecting requires: by the BMC first and then, where that is wanted, by the agent. One that the
// agent has begun is finished when the NodeProvider does not want it any more, but not when the host is not free any more.
func (p *planner) inspectionOfState() v1alpha1.WantedAttempt {
	isBegun := !p.isIdle() && p.d.Record.Wanted.IsAgentInspection()
	if p.isReadByBMC() && (p.mustInspectByAgent() || isBegun && p.isUnused()) {
		return agentInspectionAttempt()
	}
	return inspectionAttempt()
}

// isReadByBMC reports whether the last attempt is an inspection whose part of the BMC has succeeded.
func (p planner) isReadByBMC() bool {
	w := p.d.Record.Wanted
	return w != nil && w.Operation == string(hardware.OpInspect) && (w.IsAgentInspection() || w.Outcome == v1alpha1.AttemptSucceeded)
}

// mustInspectByAgent reports whether the agent looks at the host before it is available. A host that somebody uses, or will use, is not booted for
// that. A host whose disks are not clean is erased first, and the agent of the erase looks at it. Without that: the boot of the agent fails, the server
// goes on with its disk, and the system of the former tenant runs again.
func (p planner) mustInspectByAgent() bool {
	return p.Inspector == v1alpha1.SourceAgent && p.isUnused() && p.isReadyForPool() && !p.Host.InspectionDisabled
}

// isInspected reports whether everybody who is to look at the hardware has done so.
func (p planner) isInspected() bool {
	switch {
	case !p.isIdle():
		return false
	case p.Host.InspectionDisabled:
		return true
	case p.mustInspectByAgent():
		return p.hasSucceeded(agentInspectionAttempt())
	}
	return p.isReadByBMC()
}

// isHardwareKnown reports whether a host whose status was lost need not be inspected. One that was being inspected is inspected on. Without it: the
// status is lost while the agent looks at the server, and the host is available with what the BMC said of it.
func (p planner) isHardwareKnown() bool {
	if p.Host.InspectionDisabled {
		return true
	}
	isInterrupted := p.isReadByBMC() && p.mustInspectByAgent() && !p.hasSucceeded(agentInspectionAttempt())
	return p.d.Record.Inventory != nil && !isInterrupted
}

// waitForPowerOff has an inspection by the agent wait until the server is off. It is not powered off for it. Without it: a server on which somebody
// works, or which still runs what it was used for before, is registered, and its power is cut although nobody has asked for anything but a look.
func (p *planner) waitForPowerOff(a v1alpha1.WantedAttempt) result {
	if !a.IsAgentInspection() || p.observedPower() == hardware.PowerOff {
		return done
	}
	if p.observedPower() != hardware.PowerOn {
		return waitResult("the power-off", p.Timeouts.PollInterval)
	}
	p.setError(metal3.InspectionError, v1alpha1.ReasonServerIsOn, "the agent looks at the hardware before the host is available, for which the server must be off, and it is on: it is left as it is, "+
		"because nobody knows what runs on it. Power it off by its BMC, or "+wayWithoutInspection)
	return waitResult("the power-off", p.Timeouts.RetryBase)
}

// hasPoweredServerOn reports whether the recorded attempt may have powered the server on. An inspection by the BMC does not, and one by the agent that found
// the server on has not.
func (p planner) hasPoweredServerOn() bool {
	w := p.d.Record.Wanted
	return w.Operation != string(hardware.OpInspect) || w.IsAgentInspection() && w.Reason != string(hardware.ReasonServerIsOn)
}

package direct

import (
	"errors"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/diskrules"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// agentSilence is how long the agent must have reported nothing at the deadline for the reason to be AgentSilent. Agents report
// every few seconds.
const agentSilence = time.Minute

// facts are all inputs of a decision about a running attempt.
type facts struct {
	// power is the power state that the BMC reported; PowerUnknown when reading it failed.
	power hardware.PowerState
	// powerErr is the error of reading the power state.
	powerErr error
	session  netboot.Session
	// record holds what this process has observed of the attempt.
	record attemptRecord
	// refusal is why the last try to boot the server from the network failed; nil when it did not.
	refusal error
	// lostImage is why the BMC could not fetch the boot medium; nil when it could, or was not asked to.
	lostImage error
	now       time.Time
	timeouts  hardware.Timeouts
	// ways are those in which the host may be booted.
	ways []hardware.BootSource
}

// actionKind is what the Installer does. Each kind changes the session at most once, and the power of the host at most once.
// The values appear in logs.
type actionKind string

const (
	actionWait        actionKind = "wait"
	actionReturnError actionKind = "report"       // returns powerErr: nothing can be done without the BMC
	actionPowerOff    actionKind = "power off"    // is repeated at every call: cutting the power twice does no harm
	actionBootNetwork actionKind = "boot network" // sets the boot override, enters Booting with OpenedAt, then requests power-on
	actionPowerOn     actionKind = "power on"     // does the same within the step Booting
	actionBootAgain   actionKind = "boot again"   // begins another boot with a power-off, because no agent came up
	actionSucceed     actionKind = "succeed"
	actionFail        actionKind = "fail"
	actionClear       actionKind = "clear" // nothing is left to decide; what the boot needed is cleared once
)

// action is what to do next for an attempt.
type action struct {
	kind actionKind
	// reason is set with actionFail.
	reason hardware.Reason
	// message says why, for logs and, with actionFail, for the status.
	message string
	// step is the step that failed. It is set with actionFail.
	step hardware.Step
	// isSilent is true when the boot brought up no agent.
	isSilent bool
}

// isChange reports whether the action changes the attempt or the power of its host, which is decided by what the API server has.
func (a action) isChange() bool {
	return a.kind != actionWait && a.kind != actionReturnError && a.kind != actionClear
}

// nextAction returns what to do next for a running attempt. It has no side effects.
func nextAction(f facts) action {
	s := f.session
	// The result of the agent counts even when the deadline has passed before it is read.
	if s.Step == hardware.StepFinishing && s.Operation == hardware.OpInstall {
		return action{kind: actionSucceed}
	}
	if !f.now.Before(s.Deadline) {
		return f.failure(f.deadlineReason(), fmt.Sprintf("the deadline passed after %s in total", elapsed(s.Since, f.now)))
	}
	switch s.Step {
	case hardware.StepPoweringOff, hardware.StepFinishing:
		return f.powerOffAction()
	case hardware.StepBooting:
		return f.bootingAction()
	}
	if reason, timeout, since := f.stepTimeout(); timeout > 0 && !f.now.Before(since.Add(timeout)) {
		if s.Step == hardware.StepLoading {
			return f.silentAction(reason, timeout)
		}
		return f.failure(reason, fmt.Sprintf("the time-out of this step is %s", timeout))
	}
	if f.power == hardware.PowerOff {
		return action{kind: actionBootNetwork, message: "the power was lost at " + string(s.Step)}
	}
	if f.powerErr != nil {
		return action{kind: actionReturnError}
	}
	return action{kind: actionWait}
}

// powerOffAction returns the action in the two steps that end with a confirmed power-off: PoweringOff, before the work, and Finishing,
// after an erase.
//
// Only PowerOff counts as confirmed. Example: the BMC accepts the power-off and the host keeps running. If an accepted request were
// enough, the boot service would hand the agent to a server whose old operating system still writes to the same disk.
func (f facts) powerOffAction() action {
	s := f.session
	switch {
	case f.powerErr != nil:
		return action{kind: actionReturnError}
	case f.power == hardware.PowerOff:
		if s.Step == hardware.StepFinishing || (s.Operation == hardware.OpErase && s.Erase == hardware.EraseNone) {
			return f.judgedAction()
		}
		return action{kind: actionBootNetwork}
	case s.IsAgentInspection() && s.Step == hardware.StepPoweringOff:
		return f.refuseRunningServer()
	}
	request := nextPowerRequest(hardware.PowerChange{Desired: hardware.PowerOff, Since: s.StepAt}, f.power, time.Time{}, f.now, f.timeouts)
	if request.ignored != "" {
		return f.failure(request.ignored, fmt.Sprintf("the BMC accepts power-off and reports %s", f.power))
	}
	return action{kind: actionPowerOff}
}

// judgedAction ends an attempt whose agent has reported success. An erase has succeeded only where its evidence is a proof: the boot service hands over what the
// agent said, and this judges it.
func (f facts) judgedAction() action {
	s := f.session
	if s.Operation != hardware.OpErase {
		return action{kind: actionSucceed}
	}
	var found []hardware.Disk
	if s.Inventory != nil {
		found = s.Inventory.Disks
	}
	var refusal *diskrules.Refusal
	if errors.As(diskrules.CheckEvidence(s.Erase, s.Evidence, s.Disks, found), &refusal) {
		return f.failure(refusal.Reason, refusal.Message)
	}
	return action{kind: actionSucceed}
}

// refuseRunningServer returns the action for an inspection whose server is not off before the agent was booted.
//
// Example: somebody powers a free server on between the decision to inspect it and the first call, to work on it. If the power were cut as before an
// installation, that work would be lost, and nobody has asked for it.
func (f facts) refuseRunningServer() action {
	if f.power == hardware.PowerOn || f.power == hardware.PowerTurningOn {
		return f.failure(hardware.ReasonServerIsOn, "expected a server that is off; it is left as it is, because nobody knows what runs on it: power it off")
	}
	return action{kind: actionWait}
}

// bootingAction returns the action for a host that was powered on and has not yet fetched its boot document.
//
// Every power-on sets the boot override again. Example: the override is for one boot only, the server boots with it, and the power
// fails during the self-test. A power-on without a new override would boot the disk, whose content may be the former tenant's.
func (f facts) bootingAction() action {
	s := f.session
	timedOut := !f.now.Before(s.OpenedAt.Add(f.timeouts.Boot))
	switch {
	case s.OpenedAt.Before(s.StepAt) && f.powerErr == nil:
		return action{kind: actionPowerOn} // OpenedAt is from an earlier boot of this attempt
	case timedOut && (f.power == hardware.PowerOn || f.powerErr != nil):
		return f.silentAction(f.noBootReason(), f.timeouts.Boot)
	case f.powerErr != nil:
		return action{kind: actionReturnError}
	case f.power == hardware.PowerOn:
		return action{kind: actionWait}
	case f.record.wasPoweredOn && f.power == hardware.PowerOff:
		return action{kind: actionBootNetwork, message: "the power was lost at " + string(s.Step)}
	case f.record.wasPoweredOn:
		return action{kind: actionWait}
	}
	return f.powerOnAction()
}

// powerOnAction returns the action for a host whose power has not been observed on since power-on was requested. The power-on counts as
// ignored only when this process has observed the step for the whole time-out: an earlier process may have observed the power on.
func (f facts) powerOnAction() action {
	s := f.session
	request := nextPowerRequest(hardware.PowerChange{Desired: hardware.PowerOn, Since: s.StepAt}, f.power, s.OpenedAt, f.now, f.timeouts)
	switch {
	case request.ignored != "" && !f.now.Before(f.record.firstObserved.Add(f.timeouts.PowerOn)):
		answer := "accepts"
		if f.refusal != nil {
			answer = "was asked for"
		}
		return f.failure(request.ignored, fmt.Sprintf("the BMC %s power-on and reports %s: look at the server's power supplies and the BMC's log", answer, f.power))
	case request.action != "":
		return action{kind: actionPowerOn}
	}
	return action{kind: actionWait}
}

// stepTimeout returns the time-out of a step that the server ends, the reason for which the attempt fails when it has passed, and the
// time from which it counts. A time-out of 0 means that the step has none.
func (f facts) stepTimeout() (reason hardware.Reason, timeout time.Duration, since time.Time) {
	timeout = f.timeouts.OfStep(f.session.Step)
	switch f.session.Step {
	case hardware.StepLoading:
		return hardware.ReasonAgentMissing, timeout, f.session.StepAt
	case hardware.StepRegistered, hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying:
		return hardware.ReasonAgentSilent, timeout, f.lastHeard()
	}
	return hardware.ReasonDeadlineExceeded, 0, time.Time{}
}

// lastHeard returns the time from which the agent's silence counts: its last progress. An agent that waits for its config drive makes none, so
// for it every stored sign of life counts. Without it: the tenant's API server does not answer for a quarter of an hour, no bootstrap token can
// be made, and the attempt fails as if the agent were dead.
func (f facts) lastHeard() time.Time {
	if f.isConfigDriveAwaited() && f.session.Agent.HeardAt.After(f.record.lastProgress) {
		return f.session.Agent.HeardAt
	}
	return f.record.lastProgress
}

// isConfigDriveAwaited reports whether the agent waits for its config drive, or has received it and has not begun to write.
func (f facts) isConfigDriveAwaited() bool {
	return f.session.Step == hardware.StepRegistered && !f.session.ConfigDriveAwaitedAt.IsZero()
}

// deadlineReason returns the reason for an attempt whose deadline has passed: the failure that explains its step.
func (f facts) deadlineReason() hardware.Reason {
	switch f.session.Step {
	case hardware.StepPoweringOff, hardware.StepFinishing:
		if f.powerErr == nil && f.power != hardware.PowerOff {
			return hardware.ReasonPowerOffIgnored
		}
		if f.lostImage != nil {
			return hardware.ReasonBootImageNotFetched
		}
	case hardware.StepBooting:
		if f.powerErr == nil && f.reportedStep() == hardware.StepPoweringOn {
			return hardware.ReasonPowerOnIgnored
		}
		return f.noBootReason()
	case hardware.StepLoading:
		return hardware.ReasonAgentMissing
	case hardware.StepRegistered:
		return f.registeredReason()
	case hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying:
		if f.now.Sub(f.record.lastProgress) >= agentSilence {
			return hardware.ReasonAgentSilent
		}
	}
	return hardware.ReasonDeadlineExceeded
}

// noBootReason returns the reason for a server that has not begun to load the agent. A server that boots from a medium asks the boot service for
// nothing before its agent registers.
func (f facts) noBootReason() hardware.Reason {
	if f.session.BootWay == hardware.BootMedia {
		return hardware.ReasonAgentMissing
	}
	return hardware.ReasonNoBootRequest
}

// registeredReason returns the reason for an agent that has registered and begun nothing by the deadline.
func (f facts) registeredReason() hardware.Reason {
	if f.isConfigDriveAwaited() && f.now.Sub(f.lastHeard()) < f.timeouts.OfStep(f.session.Step) {
		return hardware.ReasonNoConfigDrive
	}
	return hardware.ReasonAgentSilent
}

// reasonHints say where to look after a failure.
var reasonHints = map[hardware.Reason]string{
	hardware.ReasonNoBootRequest: "the server never asked for its boot document: look at POST on its console, the cable and link of the boot NIC, its MAC address, and DHCP",
	hardware.ReasonAgentMissing:  "the boot document or the pinned program was fetched and no agent registered: look at the console for kernel and initrd, and at the way from the server to the boot service",
	hardware.ReasonNoConfigDrive: "the agent waited for its config drive: look at the conditions of the Machine, which writes it, and at its TenantCluster",
	hardware.ReasonAgentSilent:   "the agent reports no more: look at the server's console",
}

// bootingHints say where to look when a server that boots with an image of its own has not begun to load it, or no agent has come up from it.
var bootingHints = map[hardware.BootSource]string{
	hardware.BootMedia: "the server was powered on with a boot medium and no agent registered: look at its console, whether Secure Boot is on, which refuses the unsigned " +
		"medium, whether the BMC reaches the boot service, and at the way from the server to the boot service",
	hardware.BootPinned: "the server was powered on with a pinned URL and never asked for it: look at its console, the link and DHCP of the NIC that its firmware boots from by HTTP, " +
		"whether the firmware has UEFI HTTP boot enabled, and at the way from the server to the boot service",
}

// failure returns the action that fails the attempt, with the step, its duration, the bytes and the power in the message.
func (f facts) failure(reason hardware.Reason, detail string) action {
	s := f.session
	message := fmt.Sprintf("%s for %s; %s", f.reportedStep(), elapsed(s.StepAt, f.now), detail)
	if hint := reasonHints[reason]; hint != "" && s.BootWay.HasOwnImage() && s.Step == hardware.StepBooting {
		message += "; " + bootingHints[s.BootWay]
	} else if hint != "" {
		message += "; " + hint
	}
	if reason == hardware.ReasonAgentMissing && !s.KernelFetchedAt.IsZero() {
		message += fmt.Sprintf("; the server has booted the agent %d times in this attempt and fetched the kernel last at %s", s.Boots, s.KernelFetchedAt.UTC().Format(time.RFC3339))
	}
	if s.TotalBytes > 0 {
		message += fmt.Sprintf("; %d of %d bytes done", s.DoneBytes, s.TotalBytes)
	}
	if f.lostImage != nil {
		message += "; " + f.lostImage.Error()
	} else if f.refusal != nil {
		message += "; the last request to boot it from the network failed: " + f.refusal.Error()
	}
	if f.powerErr != nil {
		message += "; the BMC does not help: " + f.powerErr.Error()
	} else if f.power != "" {
		message += fmt.Sprintf("; power is %s", f.power)
	}
	return action{kind: actionFail, reason: reason, message: message, step: f.reportedStep(), isSilent: f.isSilentFailure(reason)}
}

func (f facts) reportedStep() hardware.Step {
	return reportedStep(f.session, f.power, f.record.wasPoweredOn)
}

// elapsed returns the time between the two, rounded to seconds.
func elapsed(from, to time.Time) time.Duration { return to.Sub(from).Round(time.Second) }

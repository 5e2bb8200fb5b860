package direct

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// silent is how long an agent must have been quiet at the deadline for the reason to be its silence: agents report
// every few seconds.
const silent = time.Minute

// facts are all that a decision depends on.
type facts struct {
	// power is PowerUnknown when reading it failed.
	power hardware.PowerState
	// powerErr is why reading the power failed.
	powerErr error
	session  netboot.Session
	// watched is what this process has seen of the attempt.
	watched  watched
	now      time.Time
	timeouts hardware.Timeouts
}

// act is what a decision asks for. Each is at most one change of the session, and at most one change of the host's power.
type act string

const (
	actWait        act = "wait"
	actReport      act = "report"       // return powerErr: nothing can be done without the BMC
	actPowerOff    act = "power off"    // asks again at every call: cutting the power twice does no harm
	actBootNetwork act = "boot network" // sets the override, enters Booting with OpenedAt, then asks for power-on
	actPowerOn     act = "power on"     // the same again, within the same step
	actSucceed     act = "succeed"
	actFail        act = "fail" // with reason and message
)

// decision is what to do next, and why.
type decision struct {
	act     act
	reason  hardware.Reason
	message string
	// step at which it failed.
	step hardware.Step
}

// decide looks at a running attempt. It is pure.
func decide(f facts) decision {
	s := f.session
	// The agent's result counts even when we come late to read it.
	if s.Step == hardware.StepFinishing && s.Operation == hardware.OpInstall {
		return decision{act: actSucceed}
	}
	if !f.now.Before(s.Deadline) {
		return f.fail(f.deadlineReason(), fmt.Sprintf("the deadline passed after %s in total", span(s.Since, f.now)))
	}
	switch s.Step {
	case hardware.StepPoweringOff, hardware.StepFinishing:
		return f.poweringOff()
	case hardware.StepBooting:
		return f.booting()
	}
	if reason, limit, since := f.stepLimit(); limit > 0 && !f.now.Before(since.Add(limit)) {
		return f.fail(reason, fmt.Sprintf("the time-out of this step is %s", limit))
	}
	if f.power == hardware.PowerOff {
		return decision{act: actBootNetwork, message: "the power was lost at " + string(s.Step)}
	}
	if f.powerErr != nil {
		return decision{act: actReport}
	}
	return decision{act: actWait}
}

// poweringOff serves the confirmed power-off before and, for an erase, after the work.
func (f facts) poweringOff() decision {
	s := f.session
	switch {
	case f.powerErr != nil:
		return decision{act: actReport}
	case f.power == hardware.PowerOff:
		if s.Step == hardware.StepFinishing || (s.Operation == hardware.OpErase && s.Erase == hardware.EraseNone) {
			return decision{act: actSucceed}
		}
		return decision{act: actBootNetwork}
	}
	next := nextPower(hardware.PowerChange{Desired: hardware.PowerOff, Since: s.StepAt}, f.power, time.Time{}, f.now, f.timeouts)
	if next.ignored != "" {
		return f.fail(next.ignored, fmt.Sprintf("the BMC accepts power-off and reports %s", f.power))
	}
	return decision{act: actPowerOff}
}

// booting serves a host that was powered on, until it fetches its boot document. Power-on is asked for again while the power stays
// off, and a power that is lost is restored. The override is set each time: one that was used up would let the disk boot.
func (f facts) booting() decision {
	s := f.session
	late := !f.now.Before(s.OpenedAt.Add(f.timeouts.Boot))
	switch {
	case s.OpenedAt.Before(s.StepAt) && f.powerErr == nil:
		return decision{act: actPowerOn} // a power-on of an earlier boot does not count
	case late && (f.power == hardware.PowerOn || f.powerErr != nil):
		return f.fail(hardware.ReasonNoBootRequest, fmt.Sprintf("the time-out of this step is %s", f.timeouts.Boot))
	case f.powerErr != nil:
		return decision{act: actReport}
	case f.power == hardware.PowerOn:
		return decision{act: actWait}
	case f.watched.cameOn && f.power == hardware.PowerOff:
		return decision{act: actBootNetwork, message: "the power was lost at " + string(s.Step)}
	case f.watched.cameOn:
		return decision{act: actWait}
	}
	return f.poweringOn()
}

// poweringOn serves a host that was not seen to power on since that was asked for.
func (f facts) poweringOn() decision {
	s := f.session
	next := nextPower(hardware.PowerChange{Desired: hardware.PowerOn, Since: s.StepAt}, f.power, s.OpenedAt, f.now, f.timeouts)
	switch {
	case next.ignored != "" && !f.now.Before(f.watched.since.Add(f.timeouts.PowerOn)):
		return f.fail(next.ignored, fmt.Sprintf("the BMC accepts power-on and reports %s: look at the server's power supplies and the BMC's log", f.power))
	case next.ask != "":
		return decision{act: actPowerOn}
	}
	return decision{act: actWait}
}

// stepLimit is the time-out of a step that the server itself has to end, the reason when it passes, and since when it runs.
func (f facts) stepLimit() (hardware.Reason, time.Duration, time.Time) {
	switch f.session.Step {
	case hardware.StepLoading:
		return hardware.ReasonAgentMissing, f.timeouts.Load, f.session.StepAt
	case hardware.StepRegistered, hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying:
		return hardware.ReasonAgentSilent, f.timeouts.Silence, f.watched.changedAt
	}
	return hardware.ReasonDeadlineExceeded, 0, time.Time{}
}

// deadlineReason names the hop at which the deadline found the attempt.
func (f facts) deadlineReason() hardware.Reason {
	switch f.session.Step {
	case hardware.StepPoweringOff, hardware.StepFinishing:
		if f.powerErr == nil && f.power != hardware.PowerOff {
			return hardware.ReasonPowerOffIgnored
		}
	case hardware.StepBooting:
		if f.powerErr == nil && f.shownStep() == hardware.StepPoweringOn {
			return hardware.ReasonPowerOnIgnored
		}
		return hardware.ReasonNoBootRequest
	case hardware.StepLoading:
		return hardware.ReasonAgentMissing
	case hardware.StepRegistered:
		return hardware.ReasonAgentSilent
	case hardware.StepWriting, hardware.StepErasing, hardware.StepVerifying:
		if f.now.Sub(f.watched.changedAt) >= silent {
			return hardware.ReasonAgentSilent
		}
	}
	return hardware.ReasonDeadlineExceeded
}

// hints say where to look when a step fails.
var hints = map[hardware.Reason]string{
	hardware.ReasonNoBootRequest: "the server never asked for its boot document: look at POST on its console, the cable and link of the boot NIC, its MAC address, and DHCP",
	hardware.ReasonAgentMissing:  "the boot document was fetched and no agent registered: look at the console for kernel and initrd, and at the way from the server to the boot service",
	hardware.ReasonAgentSilent:   "the agent reports no more: look at the server's console",
}

func (f facts) fail(reason hardware.Reason, detail string) decision {
	s := f.session
	message := fmt.Sprintf("%s for %s; %s", f.shownStep(), span(s.StepAt, f.now), detail)
	if hint := hints[reason]; hint != "" {
		message += "; " + hint
	}
	if s.TotalBytes > 0 {
		message += fmt.Sprintf("; %d of %d bytes done", s.DoneBytes, s.TotalBytes)
	}
	if f.powerErr != nil {
		message += "; the BMC does not help: " + f.powerErr.Error()
	} else if f.power != "" {
		message += fmt.Sprintf("; power is %s", f.power)
	}
	return decision{act: actFail, reason: reason, message: message, step: f.shownStep()}
}

func (f facts) shownStep() hardware.Step { return shownStep(f.session, f.power, f.watched.cameOn) }

func span(from, to time.Time) time.Duration { return to.Sub(from).Round(time.Second) }

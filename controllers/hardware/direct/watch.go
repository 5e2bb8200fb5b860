package direct

import (
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// watched is what this process has seen of an attempt. It is not kept: after a restart an agent, and a power-on, get their time
// anew, within the deadline.
type watched struct {
	attempt int64
	boots   int
	step    hardware.Step
	stepAt  time.Time
	bytes   int64
	// changedAt is when the agent last reported something new, or the step was entered, as far as was seen.
	changedAt time.Time
	// since is when this process first saw the step, cameOn says whether it saw the power on in it.
	since  time.Time
	cameOn bool
}

// watch notes what a look at the attempt shows.
func (i *Installer) watch(s netboot.Session, power hardware.PowerState, now time.Time) watched {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := i.watched[s.HostUID]
	if last.attempt != s.Number || last.boots != s.Boots || last.step != s.Step || !last.stepAt.Equal(s.StepAt) {
		last = watched{attempt: s.Number, boots: s.Boots, step: s.Step, stepAt: s.StepAt, bytes: s.DoneBytes, changedAt: now, since: now}
	}
	if last.bytes != s.DoneBytes {
		last.bytes, last.changedAt = s.DoneBytes, now
	}
	if power == hardware.PowerOn {
		last.cameOn = true
	}
	i.watched[s.HostUID] = last
	return last
}

// forget ends the watch over a host's attempt.
func (i *Installer) forget(host hardware.Host) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.watched, host.UID)
}

// shownStep is the step as it is shown. From the request for power-on until the boot document is fetched only one step is kept,
// Booting; whether the server has powered on is seen and not written.
func shownStep(s netboot.Session, power hardware.PowerState, cameOn bool) hardware.Step {
	if s.State == hardware.AttemptRunning && s.Step == hardware.StepBooting && power != hardware.PowerOn && (!cameOn || power == hardware.PowerOff) {
		return hardware.StepPoweringOn
	}
	return s.Step
}

package direct

import (
	"fmt"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// maxSilentBoots is how many boots in a row by one way may bring up no agent before the next way is tried. One may be lost by chance: a link that
// comes up late, a BMC that drops the override.
const maxSilentBoots = 2

// waysOf returns the ways in which the host may be booted, in the order of preference. Where nobody prefers one, the strongest comes first that this installation
// makes images for: what an agent reports after a boot by the network proves nothing (hardware.Channel).
func (i *Installer) waysOf(host hardware.Host) []hardware.BootSource {
	if len(host.BootWays) > 0 {
		return host.BootWays
	}
	var ways []hardware.BootSource
	if i.options.MediaURLs != nil {
		ways = append(ways, hardware.BootMedia)
	}
	if i.options.ProgramURLs != nil {
		ways = append(ways, hardware.BootPinned)
	}
	return append(ways, hardware.BootNetwork)
}

// orderedWays returns the ways in the order in which they are tried for the next boot, and the ways that are not tried first because they were silent.
// The order ends with those: a BMC that cannot do what is left boots the server as before.
//
// The silent boots are those of this attempt, and of the failed ones right before it. Without the latter: an attempt has time for two boots, so that
// each would spend its time on the first way, and the server would never be installed. After a success the first way is the first again. Without
// that: who can keep a server from booting once would move it for good to a way that resists less.
func orderedWays(ways []hardware.BootSource, silent netboot.SilentBoots) (ordered, skipped []hardware.BootSource) {
	first := slices.Index(ways, silent.Way)
	switch {
	case first < 0:
		return ways, nil
	case silent.Boots >= maxSilentBoots && first < len(ways)-1:
		first++
	}
	return slices.Concat(ways[first:], ways[:first]), ways[:first]
}

// addSilentBoot counts the session's boot as one in which no agent came up.
func addSilentBoot(s netboot.Session) netboot.SilentBoots {
	silent := s.SilentBoots
	if silent.Way != s.Way() {
		silent = netboot.SilentBoots{Way: s.Way()}
	}
	silent.Boots = min(silent.Boots+1, maxSilentBoots)
	return silent
}

// hasFurtherBoot reports whether the server is booted again when no agent comes up in the present boot. With the last way it is not: the attempt
// fails, as it does where there is one way only.
func (f facts) hasFurtherBoot() bool {
	at := slices.Index(f.ways, f.session.Way())
	return at >= 0 && at < len(f.ways)-1
}

// isSilentFailure reports whether the boot of an attempt that fails has brought up no agent. A boot that the deadline cut short says nothing about its way.
func (f facts) isSilentFailure(reason hardware.Reason) bool {
	isNoAgent := reason == hardware.ReasonNoBootRequest || reason == hardware.ReasonAgentMissing
	return isNoAgent && !f.now.Before(f.session.OpenedAt.Add(f.timeouts.Boot/2))
}

// silentAction returns the action for a server in which no agent has come up within a time-out: the power is cut and it is booted again, or the
// attempt fails.
func (f facts) silentAction(reason hardware.Reason, timeout time.Duration) action {
	failure := f.failure(reason, fmt.Sprintf("the time-out of this step is %s", timeout))
	failure.isSilent = true
	if f.power != hardware.PowerOn || !f.hasFurtherBoot() {
		return failure
	}
	return action{kind: actionBootAgain, reason: reason, message: failure.message}
}

// bootAgain has the session begin another boot with a confirmed power-off. OpenedAt stays: the boot service keeps the server from its disk meanwhile.
func bootAgain(s *netboot.Session, now time.Time, timeouts hardware.Timeouts) {
	s.SilentBoots = addSilentBoot(*s)
	s.Step, s.StepAt, s.StepDeadline, s.Agent = hardware.StepPoweringOff, now, now.Add(timeouts.OfStep(hardware.StepPoweringOff)), netboot.Agent{}
	s.KernelAwaited, s.KernelFetchedAt = netboot.KernelAwaited{}, time.Time{}
}

package host

import (
	"fmt"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/queue"
)

// queuePollIntervals is how many poll intervals pass until the place of a host is looked at again. A place that changes is a write.
const queuePollIntervals = 5

// waitForTurn has a host wait until its installer may work on it. Nothing is begun, so that no deadline runs and no token is made.
func (p *planner) waitForTurn(a v1alpha1.WantedAttempt) result {
	place := p.Places[hardware.Operation(a.Operation)]
	if place == 0 || !queue.IsLimited(&a) {
		return done
	}
	waiting := &v1alpha1.HostQueue{Operation: a.Operation, Place: int32(place), Since: microTime(p.Now)} //nolint:gosec // the number of hosts
	if before := p.Record.Queue; before != nil && before.Operation == a.Operation {
		waiting.Since = before.Since
	}
	p.d.Record.Queue = waiting
	interval := p.Timeouts.PollInterval
	if place > 1 {
		interval *= queuePollIntervals
	}
	return waitResult(fmt.Sprintf("its turn, place %d", place), interval)
}

// leaveQueue gives up the place of the host, which a step takes again while the host waits. It stays while the installer cannot be asked, because no step runs
// then. Without it: Ironic is restarted, and every host that has waited for hours begins to wait anew.
func (p *planner) leaveQueue() {
	if !p.isInstallerSilent() {
		p.d.Record.Queue = nil
	}
}

// postponeDeadline gives an attempt its whole time again while the installer has not begun it, because it works on as many hosts as it may, and while the
// installer is a service that cannot be asked. Without it: somebody else uses Ironic too, it refuses for an hour, or it is down for an hour, and the attempts
// on all its hosts fail by their deadlines.
func (p *planner) postponeDeadline() {
	w := p.d.Record.Wanted
	status := p.attemptStatus(w)
	isRefused := status != nil && status.IsRefusedByLimit
	if !w.IsOpen() || !isRefused && !p.isInstallerSilent() {
		return
	}
	limit := p.timeLimit(*w)
	if w.Deadline.Sub(p.Now) < limit/2 {
		w.Deadline = microTime(p.Now.Add(limit))
	}
}

// isInstallerSilent reports whether the installer is a service that does not say what became of the attempt, which is no fault of the host.
func (p planner) isInstallerSilent() bool {
	return p.Problem != nil && slices.Contains([]string{v1alpha1.ReasonInstallerUnreachable, v1alpha1.ReasonInstallerBusy, v1alpha1.ReasonInstallerUnauthorized}, p.Problem.Reason)
}

// BeginsLimitedAttempt returns the operation of the attempt that the Decision begins, if its installer limits on how many hosts it does that.
func (d Decision) BeginsLimitedAttempt(before *v1alpha1.WantedAttempt) (hardware.Operation, bool) {
	w := d.Record.Wanted
	if !w.IsOpen() || before != nil && before.Number == w.Number || !queue.IsLimited(w) {
		return "", false
	}
	return hardware.Operation(w.Operation), true
}

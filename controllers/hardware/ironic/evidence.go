package ironic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// outcomeDone is the outcome of an attempt that has left evidence of its work. Without it: Ironic has no free worker, and gives the node the state cleaning and right after it the
// one from before; an operator provides the node and manages it again; both change the provision state as a cleaning does, and disks that nobody has erased go to the next tenant.
const outcomeDone hardware.Reason = "Done"

// evidence says whether the work of the attempt has led the node to its state.
type evidence string

// The kinds of evidence.
const (
	evidenceUnread evidence = "" // it is in what only a read of the single node tells
	// evidenceToConfirm is a cleaning that was seen from its beginning to its end, unless it was aborted in between: what is wrong with that only a read tells.
	evidenceToConfirm evidence = "to be confirmed"
	evidencePresent   evidence = "present"
	evidenceAbsent    evidence = "absent"
)

// noWorkerError is what Ironic says of a node that it gave the state from before, because it had no free worker for what was requested. noWorkerFault is in its refusal.
const (
	noWorkerError = "no free conductor worker"
	noWorkerFault = "lack of free conductor workers"
)

// isRefused reports whether Ironic has refused, for want of a worker, what was last requested of the node. It rests as if nothing had been requested.
func isRefused(n node) bool {
	return isAtRest(n.state) && strings.Contains(strings.ToLower(n.lastError), noWorkerError)
}

// hasFailed reports whether an outcome is stored with which the attempt ended before its work was done.
func (r record) hasFailed() bool { return r.outcome != "" && r.outcome != outcomeDone }

// isAborted reports whether somebody has ended a wait of the node for an agent. The status cannot tell who: nextAction stores it, which knows the deadline.
func isAborted(n node) bool {
	return (n.state == nodes.CleanFail || n.state == nodes.InspectFail) && reasonOf(n) == hardware.ReasonCancelled
}

// isUndecided reports whether the state of the node, at rest, does not tell what became of the work: it may have been done, refused, or ended by somebody.
func isUndecided(n node) bool {
	if n.record.outcome == outcomeDone || n.isProven {
		return false
	}
	switch n.state {
	case nodes.Active, nodes.Available:
		return n.record.work == workInstall
	case nodes.Manageable:
		return n.record.work != workInstall
	case nodes.DeployFail, nodes.InspectFail:
		return isRefused(n) || isAborted(n) || n.lastError == "" && n.reservation == ""
	case nodes.CleanFail, nodes.Error:
		return isRefused(n) || isAborted(n)
	default:
		return false
	}
}

// isAtGoal reports whether the node is where the work of the attempt leads to, and nothing is stored of its success.
func isAtGoal(n node) bool {
	return n.isBegun() && isUndecided(n) && (n.state == nodes.Active || n.state == nodes.Manageable)
}

// prove reads the node, and decides again by the traces of its work. A config drive is stored only by the worker that deploys a node, and what prepares an
// installation takes the one before away. It is there as long as the node is deployed, so that a process that starts again finds it. The traces of a cleaning and of an
// inspection are weaker: they are asked for only where this process was not there to see the work.
func (i *Installer) prove(ctx context.Context, c call, n node, install *installation) error {
	fresh, err := i.read(ctx, c.host, n.uuid)
	if err != nil {
		return err
	}
	if fresh.state != n.state || fresh.record != n.record {
		i.note(c.host, fresh, false)
		return nil
	}
	isSeen := i.seen.evidenceOf(n) == evidenceToConfirm && fresh.lastError == ""
	if c.evidence = evidenceAbsent; (isSeen || fresh.hasTraces()) && !fresh.canHaveLostError() {
		c.evidence = evidencePresent
	}
	return i.perform(ctx, c, fresh, nextAction(fresh, c), install)
}

// unseenLimit is how long the work of a node may go on without this process seeing it. Longer ago it is no evidence: the work may have been aborted, and the node led to where
// the work ends.
const unseenLimit = time.Minute

// sightings are what this process has seen of the work of attempts, by the UIDs of the hosts. Ironic lets nobody change the node meanwhile, so that they cannot be stored.
type sightings struct {
	mu     sync.Mutex
	byHost map[string]sighting
}

// sighting is what this process knows of the work of an attempt that it has watched from before its beginning, or seen at its own step. The zero value is that it came too late.
type sighting struct {
	number int64
	// isSeen says that the work is under way or has ended; false: it has not begun, or something else has happened to the node since.
	isSeen bool
	// at is when it was last seen to be under way.
	at time.Time
	// ended is the time of the last change of the node, in its first list after the work; empty: it is under way.
	ended string
}

// requested keeps whether Ironic has accepted the work of the host's attempt, which means that it has a worker for it.
func (s *sightings) requested(c call, isAccepted bool, now time.Time) {
	s.set(c.host.UID, sighting{number: c.number, isSeen: isAccepted, at: now})
}

func (s *sightings) set(uid string, known sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost == nil {
		s.byHost = map[string]sighting{}
	}
	if s.byHost[uid] = known; known == (sighting{}) {
		delete(s.byHost, uid)
	}
}

func (s *sightings) of(uid string) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byHost[uid]
}

// listed takes note of the node as it is in a list.
func (s *sightings) listed(n node, now time.Time) {
	s.set(n.record.host, nextSighting(n, s.of(n.record.host), now))
}

// nextSighting returns what is known of the work of the node, after what was known before.
func nextSighting(n node, before sighting, now time.Time) sighting {
	isKnown := before.number == n.record.number
	switch {
	case isAtWork(n) && isOwnWork(n):
		return sighting{number: n.record.number, isSeen: true, at: now}
	case isKnown && before.isLost(now), !isKnown && n.isBegun():
		return sighting{}
	case !isKnown || !before.isSeen:
		return sighting{number: n.record.number}
	default:
		return before.after(n, now)
	}
}

// isLost reports whether the work was not seen for so long that nobody knows what has become of it.
func (s sighting) isLost(now time.Time) bool {
	return s.isSeen && s.ended == "" && (now.Before(s.at) || now.Sub(s.at) > unseenLimit)
}

// after returns what is known of work that was seen, when the node is listed again.
func (s sighting) after(n node, now time.Time) sighting {
	isEnded := s.ended != ""
	switch {
	case isAtWork(n) && !isEnded:
		s.at = now
		return s
	case s.isDeployed(n):
		return s
	case !isEnded && n.reservation != "" && isAtGoal(n):
		return s // the conductor lets go of it soon
	case !isAtGoal(n) || n.lastError != "" || isEnded && s.ended != n.changed:
		return sighting{number: s.number}
	default:
		s.ended = n.changed
		return s
	}
}

// isDeployed reports whether the node is still as the installation has left it. What was deployed stays, whatever becomes of the power.
func (s sighting) isDeployed(n node) bool {
	return s.ended != "" && s.ended == n.changed && n.record.work == workInstall
}

// isAtWork reports whether Ironic does with the node what the attempt is for, or what an operator has requested of the same kind.
func isAtWork(n node) bool {
	switch n.state {
	case nodes.Deploying, nodes.DeployWait:
		return n.record.work == workInstall
	case nodes.Cleaning, nodes.CleanWait:
		return len(cleanSteps[n.record.work]) > 0
	case nodes.Inspecting, nodes.InspectWait:
		return n.record.work == workInspect
	default:
		return false
	}
}

// isOwnWork reports whether what Ironic does with the node can be nothing else than the work of the attempt. The states cleaning and inspecting alone may be those of a request
// that is about to be refused.
func isOwnWork(n node) bool {
	return n.state == nodes.InspectWait && n.record.work == workInspect ||
		slices.ContainsFunc(cleanSteps[n.record.work], func(step nodes.CleanStep) bool { return step.Step == n.cleanStep })
}

// evidenceOf returns the evidence that the work of the attempt has led the node to its state. Of an installation that was not seen the node itself can tell.
func (s *sightings) evidenceOf(n node) evidence {
	seen := s.of(n.record.host)
	switch {
	case seen.number != n.record.number:
		return evidenceUnread
	case seen.isSeen && seen.ended != "" && seen.ended == n.changed && len(cleanSteps[n.record.work]) > 0:
		return evidenceToConfirm
	case seen.isSeen && seen.ended != "" && seen.ended == n.changed:
		return evidencePresent
	case n.record.work == workInstall:
		return evidenceUnread
	default:
		return evidenceAbsent
	}
}

// storeAfter is how long after a deployment its outcome is stored. A hundred nodes that are deployed at the same time keep Ironic busy for minutes, and what proves a
// deployment stays on its node.
const storeAfter = 5 * time.Minute

// withProof returns the node, and whether its installation is proven by what was seen.
func (s *sightings) withProof(n node) node {
	n.isProven = false // a node that was noted may say so, and isAtGoal asks for it
	n.isProven = n.record.work == workInstall && isAtGoal(n) && s.evidenceOf(n) == evidencePresent
	return n
}

// mustBeStored reports whether it is time to store the outcome of an installation that is proven by what was seen.
func (s *sightings) mustBeStored(n node, now time.Time) bool {
	return n.isProven && now.Sub(s.of(n.record.host).at) >= storeAfter
}

// asFull returns the failure of a request with the reason that Ironic works on as many nodes as it may, which passes.
func asFull(err error) error {
	var failed *hardware.Error
	if !errors.As(err, &failed) {
		return err
	}
	full := *failed
	full.Reason = hardware.ReasonInstallerFull
	return &full
}

package ironic

import (
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

const (
	// tearDownTime is how long after the last word of its agent a cleaning may end: the server is powered off then.
	tearDownTime = 2 * time.Minute
	// sameMoment is how far the times of one change of a node may be apart: Ironic takes each of them by itself.
	sameMoment = time.Second
)

// traces are what work leaves on a node. Only a read of the single node tells them.
type traces struct {
	// hasDrive says that the worker of a deployment has stored its config drive.
	hasDrive bool
	// cleanedFrom is when a conductor last asked an agent for its clean steps, which it does at the beginning of each cleaning, spokenAt when an agent last said a word.
	cleanedFrom, spokenAt time.Time
	// poweredAt is when Ironic was last asked for another power state. That clears the error of a node, except in a state of failure.
	poweredAt time.Time
	// inspectedAt is when an inspection last ended, also one that was refused.
	inspectedAt time.Time
}

func newTraces(n nodes.Node) traces {
	// Ironic shows six asterisks for the drive, or to somebody who may see secrets the drive itself, as a text or as its documents.
	drive := n.InstanceInfo["configdrive"]
	read := traces{hasDrive: drive != nil && drive != ""}
	read.cleanedFrom, read.spokenAt = internalTime(n, "agent_cached_clean_steps_refreshed"), internalTime(n, "agent_last_heartbeat")
	read.poweredAt = internalTime(n, "last_power_state_change")
	if n.InspectionFinishedAt != nil {
		read.inspectedAt = *n.InspectionFinishedAt
	}
	return read
}

// internalTime returns a time of the conductor's own notes on the node; zero: there is none. They are in UTC without saying so.
func internalTime(n nodes.Node, key string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05"} { // both take fractions of a second
		if at, err := time.Parse(layout, text(n.DriverInternalInfo[key])); err == nil {
			return at
		}
	}
	return time.Time{}
}

// canHaveLostError reports whether the power was asked for since the node's last change, so that an error that it had then is gone. A cleaning powers the server off
// before it ends, and says so of itself. Without it: somebody aborts an erase, manages the node and powers it on, all between two lists. The node rests where an
// erase leads to, without an error, and disks that nobody has erased go to the next tenant.
func (n node) canHaveLostError() bool {
	changed, err := time.Parse(time.RFC3339Nano, n.changed)
	return len(cleanSteps[n.record.work]) > 0 && (err != nil || n.traces.poweredAt.After(changed.Add(sameMoment)))
}

// hasTraces reports whether the node has the traces of the work of its attempt, from its request to the node's last change.
func (n node) hasTraces() bool {
	if n.record.work == workInstall {
		return n.traces.hasDrive
	}
	from, err := time.Parse(time.RFC3339Nano, n.record.from)
	changed, errChanged := time.Parse(time.RFC3339Nano, n.changed)
	switch {
	case err != nil || errChanged != nil || n.lastError != "":
		return false
	case n.record.work == workInspect:
		return changed.Sub(n.traces.inspectedAt).Abs() <= sameMoment
	default:
		return n.traces.cleanedFrom.After(from) && n.traces.spokenAt.After(from) && changed.Sub(n.traces.spokenAt) <= tearDownTime
	}
}

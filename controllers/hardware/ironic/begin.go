package ironic

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// withAttempt returns the node as it is when the attempt of the call is stored.
func (n node) withAttempt(c call) node {
	n.record.host, n.record.number, n.record.work = c.host.UID, c.number, c.work
	n.record.from, n.record.outcome, n.record.enrolled = "", "", ""
	if n.state == nodes.Enroll {
		n.record.enrolled = n.changed
	}
	return n
}

// begin stores the number and the work of a new attempt, and the credentials of the BMC where this package has created the node. Where the work can be prepared at
// once, one change of the node does both: each takes Ironic a tenth of a second of a core.
func (i *Installer) begin(ctx context.Context, c call, n node, install *installation) error {
	if next := nextAction(n.withAttempt(c), c); next.kind == actionPrepare {
		return i.prepare(ctx, c, n, next.target, install)
	}
	operations, secrets, err := i.attemptOperations(ctx, c, n, "")
	if err != nil {
		return err
	}
	begun, err := i.patch(ctx, c.host, n, "begin attempt", operations, secrets...)
	if err != nil {
		return err
	}
	i.sent.note(c.host.UID, driverOf(i.options, c.host))
	return i.perform(ctx, c, begun, nextAction(begun, c), install)
}

// attemptOperations returns what stores the attempt of the call, of whose work a change since the time from is the beginning, and the secrets in it.
func (i *Installer) attemptOperations(ctx context.Context, c call, n node, from string) (operations nodes.UpdateOpts, secrets []string, err error) {
	_, minor, err := i.client.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	operations = nodes.UpdateOpts{
		set("/extra/"+extraHost, c.host.UID), set("/extra/"+extraAttempt, c.number), set("/extra/"+extraWork, string(c.work)),
		set("/extra/"+extraEnrolled, n.withAttempt(c).record.enrolled), set("/extra/"+extraFrom, from), set("/extra/"+extraOutcome, ""),
	}
	driver := driverOf(i.options, c.host)
	if n.record.isCreated {
		operations = append(operations, driver.operations()...)
	}
	operations = append(operations, taking(n, c.host)...)
	if minor >= minorChildren && (n.parent == "" || n.parent == n.uuid) {
		operations = append(operations, set("/driver_info/"+ownPower, true))
	}
	return operations, driver.secrets(), nil
}

// prepare stores what the work needs and the time from which a change means that it has begun, with the attempt where that is a new one, and requests the work. The
// node is read right before. Without it: the list is some seconds old, the node has changed since, the stored time is too early, and the work counts as done before
// it was requested.
func (i *Installer) prepare(ctx context.Context, c call, n node, target nodes.TargetProvisionState, install *installation) error {
	if err := install.readDocuments(ctx, c.host); err != nil {
		return err
	}
	if isPrepared(n, c) {
		return i.requestState(ctx, c, n, target, install) // it is stored, and the request was refused or lost
	}
	fresh, err := i.read(ctx, c.host, n.uuid)
	if err != nil {
		return err
	}
	if !canBePrepared(n, fresh) {
		i.note(c.host, fresh, false)
		return nil
	}
	patched, err := i.storeWork(ctx, c, fresh, install)
	if err != nil {
		return err
	}
	if patched.changed != fresh.changed {
		_, err := i.patch(ctx, c.host, patched, "prepare work", nodes.UpdateOpts{set("/extra/"+extraFrom, "")})
		return err
	}
	return i.requestState(ctx, c, patched, target, install)
}

// storeWork stores what the work needs, with the attempt where that is a new one.
func (i *Installer) storeWork(ctx context.Context, c call, n node, install *installation) (node, error) {
	operations, secrets, err := i.workOperations(ctx, c, n, install)
	if err != nil {
		return node{}, err
	}
	stored, err := i.patch(ctx, c.host, n, "prepare work", operations, secrets...)
	if err == nil && n.record.number < c.number {
		i.sent.note(c.host.UID, driverOf(i.options, c.host))
	}
	return stored, err
}

// canBePrepared reports whether the node, as it is now, is as it was when its work was decided.
func canBePrepared(n, fresh node) bool {
	return fresh.state == n.state && fresh.record == n.record && fresh.instanceUUID == n.instanceUUID && !fresh.maintenance
}

// isPrepared reports whether the node has what the work of the call needs, and the work was not done: it was not requested, or Ironic has refused it. A node that was made
// available has what was stored before, as long as it is reserved: an undeployment takes both away.
func isPrepared(n node, c call) bool {
	isProvided := c.work == workInstall && n.state == nodes.Available && n.instanceUUID != ""
	return n.record.number == c.number && n.record.from != "" && (n.record.from == n.changed || isRefused(n) || isProvided)
}

// workOperations returns what stores the time from which a change of the node is the beginning of the work, what the work needs, and the attempt where that is a new
// one, and the secrets in it.
func (i *Installer) workOperations(ctx context.Context, c call, fresh node, install *installation) (operations nodes.UpdateOpts, secrets []string, err error) {
	if fresh.record.number < c.number {
		if operations, secrets, err = i.attemptOperations(ctx, c, fresh, fresh.changed); err != nil {
			return nil, nil, err
		}
	} else {
		operations = append(taking(fresh, c.host), set("/extra/"+extraFrom, fresh.changed))
	}
	if install != nil {
		operations = append(operations, set("/instance_info", install.instance), set("/extra/"+extraLive, install.isLive))
	}
	return operations, secrets, nil
}

package ironicloop

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Deployment is what a node is deployed with. It holds secrets: never log it.
type Deployment struct {
	// InstanceInfo is the node's instance_info, and ConfigDrive the documents of its config drive.
	InstanceInfo, ConfigDrive map[string]any
}

// Deploy leads nodes that are manageable to active and powers them on, which the deploy interface fake leaves to its user. It returns when a list has shown all of
// them so.
func (l *Loop) Deploy(ctx context.Context, deployments map[string]Deployment) error {
	uuids := map[string]bool{}
	for uuid := range deployments {
		uuids[uuid] = true
	}
	return l.run(ctx, uuids, func(n Node) next {
		switch nodes.ProvisionState(n.State) {
		case nodes.Active:
			return l.power(n, nodes.PowerOn)
		case nodes.Manageable:
			return l.change(n, nodes.ProvisionStateOpts{Target: nodes.TargetProvide})
		case nodes.Available:
			return next{request: func(ctx context.Context) error { return l.deploy(ctx, n.UUID, deployments[n.UUID]) }}
		}
		return waitOrFail(n)
	})
}

func (l *Loop) deploy(ctx context.Context, uuid string, d Deployment) error {
	info := nodes.UpdateOpts{nodes.UpdateOperation{Op: nodes.AddOp, Path: "/instance_info", Value: d.InstanceInfo}}
	if _, err := nodes.Update(ctx, l.service, uuid, info).Extract(); err != nil {
		return err
	}
	return nodes.ChangeProvisionState(ctx, l.service, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetActive, ConfigDrive: d.ConfigDrive}).ExtractErr()
}

// Release leads nodes from any state that Deploy leaves them in back to manageable and powered off.
func (l *Loop) Release(ctx context.Context, uuids map[string]bool) error {
	return l.run(ctx, uuids, func(n Node) next {
		switch nodes.ProvisionState(n.State) {
		case nodes.Active, nodes.DeployFail, nodes.Error:
			return l.change(n, nodes.ProvisionStateOpts{Target: nodes.TargetDeleted})
		case nodes.Available:
			return l.change(n, nodes.ProvisionStateOpts{Target: nodes.TargetManage})
		case nodes.Manageable:
			return l.power(n, nodes.PowerOff)
		}
		return waitOrFail(n)
	})
}

// power returns the request that a node needs whose power is to be switched.
func (l *Loop) power(n Node, target nodes.TargetPowerState) next {
	switch {
	case n.TargetPower != "":
		return next{}
	case n.Power == string(target):
		return next{isDone: true}
	}
	return next{request: func(ctx context.Context) error {
		return nodes.ChangePowerState(ctx, l.service, n.UUID, nodes.PowerStateOpts{Target: target}).ExtractErr()
	}}
}

// change returns the request for another provision state.
func (l *Loop) change(n Node, options nodes.ProvisionStateOpts) next {
	return next{request: func(ctx context.Context) error {
		return nodes.ChangeProvisionState(ctx, l.service, n.UUID, options).ExtractErr()
	}}
}

// waitOrFail waits for a node that Ironic works on, and fails for one in a state that nobody leads it out of.
func waitOrFail(n Node) next {
	switch nodes.ProvisionState(n.State) {
	case nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.Error, nodes.Enroll:
		return next{err: fmt.Errorf("node %s went to the state %s: %s", n.UUID, n.State, n.Error)}
	}
	return next{}
}

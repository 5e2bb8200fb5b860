package scenario

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/test/rack"
)

// outageServers returns servers with H100s, all for whole GPUs.
func outageServers(o Options) ([]rack.ServerSpec, error) {
	h100, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		return nil, err
	}
	specs := make([]rack.ServerSpec, o.servers())
	for i := range specs {
		specs[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%02d", i+1), Profile: h100}
	}
	return specs, nil
}

// rackOf names the rack of a server: the first one stands in another than the rest.
func rackOf(i int) string {
	if i == 0 {
		return "r1"
	}
	return "r2"
}

// darkenRack cuts all servers but the first from the network, and asserts that their Machines count as broken.
func (d *demo) darkenRack(ctx context.Context) error {
	dark := d.env.Rack.Servers()[1:]
	d.screen.Step("the switch of rack r2 with %d servers fails: no kubelet and no BMC is heard; what they run goes on", len(dark))
	for _, server := range dark {
		server.SetFaults(rack.Faults{Dark: true})
	}
	overdue := func(s observation.Observation) (n int) {
		for _, server := range dark {
			if m := s.MachineOn(server.Name()); m != nil && reasonOf(m) == v1alpha1.ReasonValidationTimedOut {
				n++
			}
		}
		return n
	}
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) { return overdue(s) == len(dark), nil })
	n := overdue(d.observed)
	d.assert(n == len(dark), d.describeMachines(), "%d of %d Machines behind the switch are past their deadline", n, len(dark))
	return err
}

// reasonOf returns the reason of the condition Ready.
func reasonOf(m *v1alpha1.Machine) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// describeMachines says of each Machine that is not Ready why not.
func (d *demo) describeMachines() string {
	var all []string
	for i := range d.observed.Machines {
		if m := &d.observed.Machines[i]; !observation.IsReady(m) {
			all = append(all, observation.UnmetChecks(m))
		}
	}
	return joinLines(all)
}

// holdRollout rolls a new image out meanwhile, and asserts that none of the Machines behind the switch is touched.
func (d *demo) holdRollout(ctx context.Context) error {
	nodeType := d.fleet.firstPool().Spec.NodeTypeRef.Name
	d.screen.Step("NodeType %s gets image %s meanwhile", nodeType, d.images[1])
	r, err := d.setImage(ctx, nodeType, d.images[1])
	if err != nil || r == nil {
		return err
	}
	d.rollout = r.Name
	said := ""
	err = d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		if now := s.Rollout(d.rollout); now != nil {
			if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionFaultsAlone); c != nil {
				said = c.Message
			}
		}
		return said != "", nil
	})
	if said != "" {
		d.screen.Note("%s", said)
	}
	d.assert(said != "", "Rollout "+d.rollout+" says nothing", "the Rollout says what they have in common, and how to go on in spite of it")
	touched := ""
	for _, server := range d.env.Rack.Servers()[1:] {
		if m := d.observed.MachineOn(server.Name()); m == nil || m.Status.Phase != v1alpha1.MachineValidating || !m.Spec.Asked().IsZero() || server.Power() != "On" {
			touched += server.Name() + " "
		}
	}
	d.assert(touched == "", touched, "no Machine behind the switch is drained, and every server runs on")
	return err
}

// lightRack mends the switch, and asserts that the Machines serve again by themselves and the Rollout ends.
func (d *demo) lightRack(ctx context.Context) error {
	d.screen.Step("the switch works again")
	for _, server := range d.env.Rack.Servers()[1:] {
		server.SetFaults(rack.Faults{})
	}
	ended := func(s observation.Observation) bool {
		r := s.Rollout(d.rollout)
		return r != nil && r.Status.Phase == v1alpha1.RolloutDone
	}
	err := d.waitUntil(ctx, func(s observation.Observation) (bool, error) { return ended(s), nil })
	detail := ""
	if r := d.observed.Rollout(d.rollout); r != nil && !ended(d.observed) {
		detail = fmt.Sprintf("Rollout %s is %s: %s\n%s", r.Name, r.Status.Phase, r.Status.StoppedBy, d.describeMachines())
	}
	d.assert(ended(d.observed), detail, "the Machines served again by themselves, and the Rollout went on within its budget to its end")
	return err
}

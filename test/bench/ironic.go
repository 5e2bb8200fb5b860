package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/test/bench/ironicloop"
	"github.com/ingot-dev/ingot/test/fleet"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
)

// ironicName is the name of Ironic's process in the tables.
const ironicName = "Ironic"

// comparisonProcesses are the processes in the order of the tables.
var comparisonProcesses = []string{ironicName, manager, management, tenant, benchmark}

// comparison deploys the nodes of an Ironic by Ingot and by a bare loop, in turn.
//
// Both have the same nodes, so that the lists are of one length: the manager is stopped while the bare loop runs, and started again before its own turn.
// Ironic has a processor of its own, see separateIronic. Both begin when all nodes are manageable and off and no process is busy, go through the same proxy, and end when Ironic has the last node active, by its
// own time. The bare loop gives each node the instance_info and the config drive that Ingot has given it in the same round, and powers it on as Ingot does: the
// deploy interface fake leaves it off.
type comparison struct {
	*fleetRun
	ironic *ironicserver.Process
	proxy  *ironicProxy
	// direct is for what is not measured: it does not go through the proxy.
	direct *ironicloop.Loop
	// registration are the calls from the manager's first start until every host is available.
	registration []ironicCall
	rounds       []ironicRound
	// isSeparate: Ironic had a processor of its own.
	isSeparate bool
}

// ironicRound is one deployment of all nodes by each side.
type ironicRound struct{ ours, bare ironicDeployment }

// ironicDeployment is one deployment of all nodes.
type ironicDeployment struct {
	// ordered is when the Machines were ordered, and for the bare loop when it began.
	ordered time.Time
	// until is when the side itself had seen that all nodes are active.
	until time.Time
	// active is when each node became active, by Ironic.
	active []time.Time
	calls  []ironicCall
	// cpu is what the processes have taken until the last node was active, and for the bare loop until the last one was powered on too.
	cpu map[string]time.Duration
}

// end returns when the last node became active.
func (d ironicDeployment) end() time.Time {
	return slices.MaxFunc(append([]time.Time{d.ordered}, d.active...), time.Time.Compare)
}

// stop stops the processes, each before those that it depends on.
func (c *comparison) stop() error {
	err := errors.Join(c.Env.Manager.Stop(), c.proxy.stop())
	if c.ironic != nil {
		c.ironic.Stop()
	}
	return errors.Join(err, c.Fleet.Stop())
}

// run performs the rounds.
func (c *comparison) run(ctx context.Context) error {
	if err := c.setUpIronic(ctx); err != nil {
		return err
	}
	if err := c.register(ctx); err != nil {
		return err
	}
	for n := range c.options.rounds {
		ours, err := c.deployByIngot(ctx)
		if err != nil {
			return fmt.Errorf("round %d, Ingot: %w", n+1, err)
		}
		bare, err := c.deployByLoop(ctx)
		if err != nil {
			return fmt.Errorf("round %d, bare loop: %w", n+1, err)
		}
		c.Log("round %d: all active %.1f s after the order, and %.1f s by the bare loop", n+1, ours.end().Sub(ours.ordered).Seconds(), bare.end().Sub(bare.ordered).Seconds())
		c.rounds = append(c.rounds, ironicRound{ours, bare})
	}
	return nil
}

// startManagerOnNodes starts the manager and waits until it has listed the nodes and every host is available.
func (c *comparison) startManagerOnNodes(ctx context.Context) error {
	c.Log("the manager starts and reads the hosts")
	lists := c.proxy.lists()
	if err := c.StartManager(ctx); err != nil {
		return err
	}
	if err := fleet.WaitFor(ctx, c.options.timeout, "the manager lists the nodes", func() (bool, error) { return c.proxy.lists() > lists, nil }); err != nil {
		return err
	}
	return c.AwaitHosts(ctx, metal3.StateAvailable)
}

// register has the manager make the nodes, and resets them. The power of fake-hardware is unknown until somebody switches it.
func (c *comparison) register(ctx context.Context) error {
	if err := c.startManagerOnNodes(ctx); err != nil {
		return err
	}
	c.registration = c.proxy.takeCalls()
	return c.resetNodes(ctx)
}

// resetNodes stops the manager and leads the nodes back to the state in which a deployment begins.
func (c *comparison) resetNodes(ctx context.Context) error {
	if err := c.Env.Manager.Stop(); err != nil {
		return err
	}
	all, err := c.direct.List(ctx)
	if err != nil {
		return err
	}
	uuids := map[string]bool{}
	for _, n := range all {
		uuids[n.UUID] = true
	}
	return c.direct.Release(ctx, uuids)
}

// deployByIngot starts the manager, has a Machine for each node, and then takes all back.
func (c *comparison) deployByIngot(ctx context.Context) (ironicDeployment, error) {
	var d ironicDeployment
	if err := c.startManagerOnNodes(ctx); err != nil {
		return d, err
	}
	if err := c.awaitFreeHosts(ctx); err != nil {
		return d, err
	}
	if err := c.prepareRound(ctx, managerSign); err != nil {
		return d, err
	}
	c.proxy.takeCalls()
	before, err := c.takeSample()
	if err != nil {
		return d, err
	}
	d.ordered = time.Now()
	if err := c.scale(ctx, c.options.machines); err != nil {
		return d, err
	}
	if err := c.AwaitAll(ctx, 100*time.Millisecond, func() (int, error) { return c.proxy.count("active"), nil }, "nodes are active"); err != nil {
		return d, errors.Join(err, c.NotReadyError(ctx))
	}
	if err := c.conclude(ctx, &d, before); err != nil {
		return d, err
	}
	if err := c.AwaitHosts(ctx, metal3.StateProvisioned); err != nil {
		return d, err
	}
	d.until, d.calls = time.Now(), c.proxy.takeCalls()
	return d, c.takeMachinesBack(ctx)
}

// takeMachinesBack deletes the Machines, waits until their hosts are available again, and resets the nodes. Ingot leaves a node active whose disks it does not
// erase, and the deploy interface fake has no step that erases them.
func (c *comparison) takeMachinesBack(ctx context.Context) error {
	c.Log("the Machines are deleted, and their hosts return")
	if err := c.scale(ctx, 0); err != nil {
		return err
	}
	if err := c.AwaitHosts(ctx, metal3.StateAvailable); err != nil {
		return err
	}
	err := fleet.WaitFor(ctx, c.options.timeout, "all Machines are gone", func() (bool, error) {
		var list v1alpha1.MachineList
		err := c.Env.ManagementClient.List(ctx, &list)
		return len(list.Items) == 0, errors.Join(err, fleet.Pause(ctx, time.Second))
	})
	if err != nil {
		return err
	}
	return c.resetNodes(ctx)
}

// deployByLoop has the nodes deployed by the bare loop, and then takes all back.
func (c *comparison) deployByLoop(ctx context.Context) (ironicDeployment, error) {
	var d ironicDeployment
	loop, err := ironicloop.New(c.proxy.url, host.DefaultWorkers, ironic.DefaultListAge, ironicPageSize)
	if err != nil {
		return d, err
	}
	deployments := c.proxy.lastDeployments()
	if len(deployments) != c.options.machines {
		return d, fmt.Errorf("expected the instance_info of %d nodes, Ingot has given %d", c.options.machines, len(deployments))
	}
	if err := c.prepareRound(ctx, ""); err != nil {
		return d, err
	}
	c.Log("the bare loop deploys the nodes")
	c.proxy.takeCalls()
	before, err := c.takeSample()
	if err != nil {
		return d, err
	}
	limited, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	d.ordered = time.Now()
	if err := loop.Deploy(limited, deployments); err != nil {
		return d, err
	}
	if err := c.conclude(ctx, &d, before); err != nil {
		return d, err
	}
	d.until, d.calls = time.Now(), c.proxy.takeCalls()
	return d, c.resetNodes(limited)
}

// prepareRound waits until no process is busy and notes the processes, and returns an error unless all nodes are as a deployment begins.
func (c *comparison) prepareRound(ctx context.Context, managerSign string) error {
	signs := map[string]string{ironicName: ironicSign, management: managementSign, tenant: tenantSign}
	if managerSign != "" {
		signs[manager] = managerSign
	}
	var err error
	if c.pids, err = waitForProcesses(ctx, func() (map[string]int, error) { return findChildren(signs) }); err != nil {
		return err
	}
	if c.isSeparate, err = separateIronic(c.pids); err != nil {
		return err
	}
	if err := c.awaitQuiet(ctx); err != nil {
		return err
	}
	all, err := c.direct.List(ctx)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.State != "manageable" || n.Power != "power off" {
			return fmt.Errorf("node %s: expected manageable and power off before a deployment, seen %s and %s", n.UUID, n.State, n.Power)
		}
	}
	if len(all) != c.options.machines {
		return fmt.Errorf("expected %d nodes of Ironic, seen %d", c.options.machines, len(all))
	}
	return nil
}

// Processes are quiet when they take less than quietShare of one core for quietPeriod. After quietLimit a round begins all the same.
const (
	quietShare  = 0.3
	quietPeriod = 3 * time.Second
	quietLimit  = 2 * time.Minute
)

// awaitQuiet waits until the processes do nothing that is left over from before.
func (c *comparison) awaitQuiet(ctx context.Context) error {
	for begin := time.Now(); ; {
		before, err := c.takeSample()
		if err := errors.Join(err, fleet.Pause(ctx, quietPeriod)); err != nil {
			return err
		}
		after, err := c.takeSample()
		if err != nil {
			return err
		}
		total := time.Duration(0)
		for _, took := range cpuBetween(before, after) {
			total += took
		}
		if total.Seconds() < quietShare*after.at.Sub(before.at).Seconds() {
			return nil
		}
		if time.Since(begin) > quietLimit {
			c.Log("the processes are still busy after %s: %v", quietLimit, cpuBetween(before, after))
			return nil
		}
	}
}

// cpuBetween returns what the processes have taken between two samples.
func cpuBetween(before, after sample) map[string]time.Duration {
	out := map[string]time.Duration{}
	for name, u := range after.usage {
		out[name] = u.CPU - before.usage[name].CPU
	}
	return out
}

// conclude notes what the deployment has taken, and when Ironic had each node active.
func (c *comparison) conclude(ctx context.Context, d *ironicDeployment, before sample) error {
	after, err := c.takeSample()
	if err != nil {
		return err
	}
	d.cpu = cpuBetween(before, after)
	all, err := c.direct.List(ctx)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.State != "active" {
			return fmt.Errorf("node %s: expected active, seen %s: %s", n.UUID, n.State, n.Error)
		}
		d.active = append(d.active, n.Changed)
	}
	return nil
}

// awaitFreeHosts waits until every host is known to be off. The nodes were reset while no manager ran, and a host without work is looked at once in the steady
// interval: until then no Machine may have it, and the round would measure that interval.
func (c *comparison) awaitFreeHosts(ctx context.Context) error {
	return c.AwaitAll(ctx, time.Second, func() (int, error) {
		var list v1alpha1.HostRecordList
		if err := c.Env.ManagementClient.List(ctx, &list); err != nil {
			return 0, err
		}
		n := 0
		for _, r := range list.Items {
			if r.Status.Power != nil && r.Status.Power.State == string(hardware.PowerOff) {
				n++
			}
		}
		return n, nil
	}, "hosts are free")
}

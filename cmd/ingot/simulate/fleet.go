package simulate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/rollout/simulation"
)

// fleet is the set of Machines and limits that the rollout is simulated with.
type fleet struct {
	nodeType string
	policy   rollout.Policy
	limits   map[types.NamespacedName]rollout.Pool
	shares   []share
}

// share is the number of Machines of a NodePool. Its zero name stands for Machines without one.
type share struct {
	pool types.NamespacedName
	size int
}

func (o objects) newFleet(opts options) (fleet, error) {
	n, err := o.findNodeType(opts)
	if err != nil {
		return fleet{}, err
	}
	f := fleet{nodeType: n.Name, policy: rollout.NewPolicy(n.Spec.Rollout), limits: rollout.NewPools(n.Name, o.pools)}
	for i := range o.pools {
		p := &o.pools[i]
		if p.Spec.NodeTypeRef.Name != n.Name {
			continue
		}
		key := types.NamespacedName{Namespace: cmp.Or(p.Namespace, "default"), Name: p.Name}
		if p.Spec.Rollout != nil && !isValidAmount(p.Spec.Rollout.MaxUnavailable) {
			return fleet{}, fmt.Errorf("NodePool %s: spec.rollout.maxUnavailable: expected a number of at least 1, or a percentage from 1%% to 100%%, seen %s", key, p.Spec.Rollout.MaxUnavailable)
		}
		size := 0
		if p.Spec.Replicas != nil {
			size = int(*p.Spec.Replicas)
		}
		f.shares = append(f.shares, share{key, size})
		f.limits[key] = f.limits[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
	}
	return f, f.distribute(opts.machines)
}

// distribute divides a number of Machines among the pools in proportion to their replicas; 0 means the replicas themselves.
func (f *fleet) distribute(machines int) error {
	slices.SortFunc(f.shares, func(a, b share) int { return cmp.Compare(a.pool.String(), b.pool.String()) })
	total := 0
	for _, s := range f.shares {
		total += s.size
	}
	switch {
	case machines == 0 && total == 0:
		return fmt.Errorf("expected NodePools of NodeType %s with replicas, seen none: say how many Machines with --machines", f.nodeType)
	case machines == 0 && total > maxMachines:
		return fmt.Errorf("the NodePools of NodeType %s have %d replicas: say how many of at most %d to simulate with --machines", f.nodeType, total, maxMachines)
	case machines == 0:
		return nil
	case len(f.shares) == 0:
		f.shares = []share{{size: machines}}
		return nil
	}
	// Each pool gets its part of the Machines that are left, so that rounding loses none.
	for i := range f.shares {
		weight := f.shares[i].size
		if total == 0 {
			f.shares[i].size = machines / (len(f.shares) - i)
		} else {
			f.shares[i].size = (machines*weight + total/2) / total
			total -= weight
		}
		machines -= f.shares[i].size
		if total == 0 && weight > 0 {
			break
		}
	}
	return nil
}

func (f fleet) size() int {
	n := 0
	for _, s := range f.shares {
		n += s.size
	}
	return n
}

// startTime is midnight, so that the time of day is the time that has passed.
var startTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// newSimulation returns a simulation of the fleet whose NodeType asks for a new revision.
func (f fleet) newSimulation(opts options) *simulation.Simulation {
	machines := f.machines()
	drawn := rand.New(rand.NewPCG(opts.seed, 0)).Perm(len(machines))
	broken, withoutHost := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for i, at := range drawn[:opts.broken+opts.withoutHost] {
		if i < opts.broken {
			broken[machines[at].name] = true
		} else {
			withoutHost[machines[at].name] = true
		}
	}
	behaviors := randomBehaviors(opts)
	sim := simulation.New(simulation.Config{
		Start: startTime, Stable: f.nodeType + "-old", Policy: f.policy, Pools: f.limits,
		Behavior: func(machine types.NamespacedName, revision string) simulation.Behavior {
			behavior := behaviors(machine, revision)
			if broken[machine] {
				behavior.FailureReason, behavior.WaitingFor = brokenBefore.FailureReason, brokenBefore.WaitingFor
			}
			return behavior
		},
	})
	for _, m := range machines {
		if withoutHost[m.name] {
			sim.AddMachineWithoutHost(m.pool, m.name)
			continue
		}
		sim.AddMachine(m.pool, m.name.Namespace, m.name.Name)
		if broken[m.name] {
			sim.Break(m.name, brokenBefore.FailureReason, brokenBefore.WaitingFor)
		}
	}
	sim.SetTarget(f.nodeType + "-new")
	return sim
}

// brokenBefore is how a Machine of --broken fails, before the rollout and in it.
var brokenBefore = simulation.Behavior{FailureReason: v1alpha1.ReasonProvisioningTimedOut, WaitingFor: "simulated: its disk has failed"}

// member is one Machine of the fleet.
type member struct{ pool, name types.NamespacedName }

// machines lists the Machines of the fleet.
func (f fleet) machines() []member {
	var all []member
	for _, s := range f.shares {
		for i := range s.size {
			name := types.NamespacedName{Namespace: cmp.Or(s.pool.Namespace, "default"), Name: fmt.Sprintf("%s-%d", cmp.Or(s.pool.Name, f.nodeType), i+1)}
			all = append(all, member{s.pool, name})
		}
	}
	return all
}

// failures are the ways in which a simulated roll fails.
var failures = []simulation.Behavior{
	{FailureReason: v1alpha1.ReasonProvisioningTimedOut, WaitingFor: "simulated: the image is not written"},
	{FailureReason: v1alpha1.ReasonJoinTimedOut, WaitingFor: "simulated: the Node does not register"},
	{FailureReason: v1alpha1.ReasonValidationTimedOut, WaitingFor: "simulated: a resource is missing"},
}

// randomBehaviors returns a function that draws the behavior of a Machine. It depends on the seed, the Machine and the revision
// alone, so that the order of the rolls changes no behavior.
func randomBehaviors(opts options) func(types.NamespacedName, string) simulation.Behavior {
	return func(machine types.NamespacedName, revision string) simulation.Behavior {
		h := fnv.New64a()
		fmt.Fprint(h, machine, revision)
		rng := rand.New(rand.NewPCG(opts.seed, h.Sum64()))
		drain, install := time.Duration(1+rng.IntN(10))*time.Minute, time.Duration(12+rng.IntN(9))*time.Minute
		var c simulation.Behavior
		if rng.Float64() < opts.failRate {
			c = failures[rng.IntN(len(failures))]
			install += 15 * time.Minute // until the deadline of the step that fails
		}
		c.Drain, c.Install = drain, install
		return c
	}
}

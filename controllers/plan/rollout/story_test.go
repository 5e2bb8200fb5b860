package rollout_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/rollout/simulation"
)

var update = flag.Bool("update", false, "write the stories anew")

var (
	training = types.NamespacedName{Namespace: "research", Name: "training"}
	serving  = types.NamespacedName{Namespace: "inference", Name: "serving"}
	begin    = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
)

func named(name string) types.NamespacedName {
	namespace, rest, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: rest}
}

// story is one golden file.
type story struct {
	file, about string
	// policy is the NodeType's; nil: canary of one baked for 10 minutes, 2 unavailable, a failure budget of 1.
	policy *rollout.Policy
	// pool is the limit of the pool serving; 0: none, and the pools allow 2 as well.
	pool int
	// behaviors are by Machine and revision; a Machine without one drains for 2 minutes and installs for 13.
	behaviors map[string]simulation.Behavior
	// devices are the budgets of tenants' classes.
	devices  map[string]int
	schedule func(*simulation.Simulation)
	ends     v1alpha1.RolloutPhase
}

var checkFailed = simulation.Behavior{Drain: 2 * time.Minute, Install: 28 * time.Minute, FailureReason: v1alpha1.ReasonValidationTimedOut, WaitingFor: "nvidia.com/gpu: 7 of 8"}

var diskFailed = simulation.Behavior{Drain: 2 * time.Minute, Install: 20 * time.Minute, FailureReason: v1alpha1.ReasonProvisioningTimedOut, WaitingFor: "DiskError: /dev/nvme0n1"}

var stories = []story{
	{
		file: "happy-path", about: "Five Machines in two pools move to a new revision.",
		schedule: func(*simulation.Simulation) {}, ends: v1alpha1.RolloutDone,
	},
	{
		file: "canary-fails-and-undo", about: "The new revision is bad. The canary shows it, nobody else is touched, and the NodeType is set back.",
		behaviors: map[string]simulation.Behavior{"*/v2": checkFailed},
		schedule:  func(sim *simulation.Simulation) { sim.Schedule(40*time.Minute, func() { sim.SetTarget("v1") }) },
		ends:      v1alpha1.RolloutDone,
	},
	{
		file: "failure-budget", about: "Two Machines fail after the canary has passed, one more than the budget. A person looks, and lets the rollout go on.",
		behaviors: map[string]simulation.Behavior{"research/training-2/v2": checkFailed, "research/training-3/v2": checkFailed},
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(2*time.Hour, func() { sim.SetPaused(true) })
			sim.Schedule(2*time.Hour+5*time.Minute, func() { sim.SetPaused(false) })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "pool-tightens", about: "The NodeType allows three Machines at once; the pool serving only one of its two.",
		policy: &rollout.Policy{MaxUnavailable: intstr.FromInt32(3), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1}, pool: 1,
		schedule: func(*simulation.Simulation) {}, ends: v1alpha1.RolloutDone,
	},
	{
		file: "pause-and-resume", about: "Somebody pauses the rollout: who is on its way arrives, nobody else starts.",
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(30*time.Minute, func() { sim.SetPaused(true) })
			sim.Schedule(2*time.Hour, func() { sim.SetPaused(false) })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "changed-in-the-middle", about: "The NodeType changes again while Machines are on their way to the revision before.",
		schedule: func(sim *simulation.Simulation) { sim.Schedule(28*time.Minute, func() { sim.SetTarget("v3") }) },
		ends:     v1alpha1.RolloutDone,
	},
	{
		file: "manager-restart", about: "The manager is killed twice just before it starts a Machine. The status names that Machine, so the next manager starts it.",
		schedule: func(sim *simulation.Simulation) {
			sim.KillManager()
			sim.Schedule(20*time.Minute, func() { sim.KillManager() })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "broken-before", about: "A disk has failed before the rollout begins. The canary is a Machine that is Ready; after it the broken one goes first, and that it fails again stops nothing.",
		behaviors: map[string]simulation.Behavior{"inference/serving-1/v2": diskFailed},
		schedule: func(sim *simulation.Simulation) {
			sim.Break(named("inference/serving-1"), v1alpha1.ReasonProvisioningTimedOut, "DiskError: /dev/nvme0n1")
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "broken-before-and-undo", about: "A disk has failed before, and the new revision is bad. The failed disk does not hold up the undo either.",
		behaviors: map[string]simulation.Behavior{"inference/serving-1/v2": diskFailed, "inference/serving-1/v1": diskFailed, "research/training-1/v2": checkFailed, "research/training-2/v2": checkFailed},
		schedule: func(sim *simulation.Simulation) {
			sim.Break(named("inference/serving-1"), v1alpha1.ReasonProvisioningTimedOut, "DiskError: /dev/nvme0n1")
			sim.Schedule(3*time.Hour, func() { sim.SetTarget("v1") })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "one-place-and-undo", about: "One Machine at a time. A disk fails, the new revision is bad, and the NodeType is set back: who works goes back although the failed disk stays.",
		policy:    &rollout.Policy{MaxUnavailable: intstr.FromInt32(1), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		behaviors: map[string]simulation.Behavior{"research/training-1/v1": diskFailed, "research/training-1/v2": diskFailed},
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(50*time.Minute, func() {
				sim.Break(named("research/training-1"), v1alpha1.ReasonProvisioningTimedOut, "DiskError: /dev/nvme0n1")
			})
			sim.Schedule(3*time.Hour, func() { sim.SetTarget("v1") })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "one-place-and-broken", about: "One Machine at a time, and a disk has failed before the rollout begins. The canary waits for room, and the Rollout says who takes it. The failed Machine is deleted after three hours.",
		policy: &rollout.Policy{MaxUnavailable: intstr.FromInt32(1), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		schedule: func(sim *simulation.Simulation) {
			sim.Break(named("research/training-1"), v1alpha1.ReasonProvisioningTimedOut, "DiskError: /dev/nvme0n1")
			sim.Schedule(3*time.Hour, func() {
				sim.ShowMessage()
				sim.DeleteMachine(named("research/training-1"))
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "mended-twice", about: "One Machine at a time. The new revision is bad, the next one is bad too, and the third is good. Each goes on from the canary that the one before has broken.",
		policy:    &rollout.Policy{MaxUnavailable: intstr.FromInt32(1), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		behaviors: map[string]simulation.Behavior{"*/v2": checkFailed, "*/v3": checkFailed},
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(time.Hour, func() { sim.SetTarget("v3") })
			sim.Schedule(2*time.Hour, func() {
				sim.ShowMessage()
				sim.SetTarget("v4")
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "mended-after-bake", about: "One Machine at a time. The canary is Ready with the new revision and breaks while it bakes. The mended revision goes on from it.",
		policy: &rollout.Policy{MaxUnavailable: intstr.FromInt32(1), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(20*time.Minute, func() {
				sim.Break(named("inference/serving-1"), v1alpha1.ReasonValidationTimedOut, "nvidia.com/gpu: 7 of 8")
			})
			sim.Schedule(time.Hour, func() { sim.SetTarget("v3") })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "canary-deleted", about: "The canary is deleted while it is installed, and so are the others: only a Machine without a host is left. The revision is not proven, so it does not become the stable one; the Machine gets its host and is the canary.",
		policy: &rollout.Policy{MaxUnavailable: intstr.FromInt32(1), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		schedule: func(sim *simulation.Simulation) {
			sim.AddMachineWithoutHost(training, named("research/training-4"))
			sim.Schedule(5*time.Minute, func() {
				for _, name := range []string{"inference/serving-1", "inference/serving-2", "research/training-1", "research/training-2", "research/training-3"} {
					sim.DeleteMachine(named(name))
				}
			})
			sim.Schedule(time.Hour, func() {
				sim.ShowMessage()
				sim.GiveHost(named("research/training-4"))
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "scaled-to-zero", about: "The pools are scaled to 0 while the canary is installed. Nothing is proven, so v1 stays the stable revision, and the Rollout says what it waits for. The NodeType is set back, which ends it.",
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(5*time.Minute, func() {
				for _, name := range []string{"inference/serving-1", "inference/serving-2", "research/training-1", "research/training-2", "research/training-3"} {
					sim.DeleteMachine(named(name))
				}
			})
			sim.Schedule(time.Hour, func() {
				sim.ShowMessage()
				sim.SetTarget("v1")
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "all-broken", about: "The revision that the Machines have is bad: all are broken, and the NodeType is mended. No Ready Machine can be the canary, so a broken one is; another follows it where it fails.",
		behaviors: map[string]simulation.Behavior{"inference/serving-1/v2": diskFailed},
		schedule: func(sim *simulation.Simulation) {
			for _, name := range []string{"inference/serving-1", "inference/serving-2", "research/training-1", "research/training-2", "research/training-3"} {
				sim.Break(named(name), v1alpha1.ReasonValidationTimedOut, "nvidia.com/gpu: 0 of 8")
			}
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "without-hosts", about: "Half of the Machines have no host yet. They are not counted, and take the new revision once the canary has baked; one gets its host before that, another one after it.",
		policy: &rollout.Policy{MaxUnavailable: intstr.FromString("20%"), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1},
		schedule: func(sim *simulation.Simulation) {
			for i := range 5 {
				sim.AddMachineWithoutHost(training, named(fmt.Sprintf("research/training-%d", i+4)))
			}
			sim.Schedule(5*time.Minute, func() { sim.GiveHost(named("research/training-4")) })
			sim.Schedule(40*time.Minute, func() { sim.GiveHost(named("research/training-5")) })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "network-fails", about: "The network between a tenant and its nodes fails for five minutes. Its Machines are not Ready, and not broken: nothing is started until they are back.",
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(24*time.Minute, func() {
				for i := range 3 {
					sim.LoseReady(named(fmt.Sprintf("research/training-%d", i+1)), "the node does not answer", 5*time.Minute)
				}
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "scale-up-and-down", about: "During the roll the pool training grows by one, which is installed with the stable revision and then rolled, and serving shrinks by one.",
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(20*time.Minute, func() { sim.AddNewMachine(training, "training-4") })
			sim.Schedule(30*time.Minute, func() { sim.DeleteMachine(named("inference/serving-2")) })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "bake-begins-anew", about: "The canary loses Ready while it bakes. Its time counts from when it is Ready again.",
		schedule: func(sim *simulation.Simulation) {
			sim.Schedule(20*time.Minute, func() { sim.LoseReady(named("inference/serving-1"), "the node rebooted", 7*time.Minute) })
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "tenants-devices", about: "A tenant may lose 4 devices at once. The canary is a Machine on which it holds none; two Machines with 3 devices each go one after the other although two may be unavailable; one with 8 waits until the tenant frees them.",
		devices: map[string]int{"legal-ai-h200": 4},
		schedule: func(sim *simulation.Simulation) {
			sim.HoldDevices(named("inference/serving-1"), "legal-ai-h200", 8)
			sim.HoldDevices(named("research/training-1"), "legal-ai-h200", 3)
			sim.HoldDevices(named("research/training-2"), "legal-ai-h200", 3)
			sim.HoldDevices(named("research/training-3"), "lab-h200", 8)
			sim.Schedule(27*time.Minute, func() { sim.ShowMessage() })
			sim.Schedule(4*time.Hour, func() {
				sim.ShowMessage()
				sim.HoldDevices(named("inference/serving-1"), "legal-ai-h200", 0)
			})
		},
		ends: v1alpha1.RolloutDone,
	},
	{
		file: "drain-times-out", about: "A PodDisruptionBudget lets nobody leave the canary, which stops the rollout. It is set back, and the Machine keeps its pods.",
		behaviors: map[string]simulation.Behavior{"*/v2": {Drain: 30 * time.Minute, FailureReason: v1alpha1.ReasonDrainTimedOut, WaitingFor: "1 pod to leave: default/db-0"}},
		schedule:  func(sim *simulation.Simulation) { sim.Schedule(time.Hour, func() { sim.SetTarget("v1") }) },
		ends:      v1alpha1.RolloutDone,
	},
}

func (s story) simulation() *simulation.Simulation {
	policy := rollout.Policy{MaxUnavailable: intstr.FromInt32(2), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1}
	if s.policy != nil {
		policy = *s.policy
	}
	two, limit := intstr.FromInt32(2), intstr.FromInt32(2)
	if s.pool > 0 {
		limit = intstr.FromInt32(int32(s.pool))
	}
	sim := simulation.New(simulation.Config{
		Start: begin, Stable: "v1", Policy: policy,
		Pools: map[types.NamespacedName]rollout.Pool{training: {MaxUnavailable: &two}, serving: {MaxUnavailable: &limit}}, MaxUnavailable: s.devices,
		Behavior: func(machine types.NamespacedName, revision string) simulation.Behavior {
			for _, name := range []string{machine.String() + "/" + revision, "*/" + revision} {
				if c, found := s.behaviors[name]; found {
					return c
				}
			}
			return simulation.Behavior{Drain: 2 * time.Minute, Install: 13 * time.Minute}
		},
	})
	for i := range 3 {
		sim.AddMachine(training, training.Namespace, fmt.Sprintf("training-%d", i+1))
	}
	for i := range 2 {
		sim.AddMachine(serving, serving.Namespace, fmt.Sprintf("serving-%d", i+1))
	}
	s.schedule(sim)
	sim.SetTarget("v2")
	return sim
}

func TestTheStoriesAreAsWritten(t *testing.T) {
	for _, s := range stories {
		t.Run(s.file, func(t *testing.T) {
			sim := s.simulation()
			if err := sim.Run(24 * time.Hour); err != nil {
				t.Fatalf("the story does not end:\n%s", simulation.FormatLines(begin, sim.Lines()))
			}
			out := sim.Outcome()
			if out.Phase != s.ends {
				t.Errorf("it ends %s, not %s", out.Phase, s.ends)
			}
			text := fmt.Sprintf("%s\n\n%s\nIn the end: %s after %s, at most %d unavailable at once.\nThe Rollout says: %s.\n", s.about, simulation.FormatLines(begin, sim.Lines()), out.Phase, simulation.FormatDuration(out.Elapsed), out.MaxUnavailable, sim.Message())
			file := filepath.Join("testdata", s.file+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: write it with -update and read it", err)
			}
			if text != string(want) {
				t.Errorf("%s is stale: write it with -update and read it. It would be\n%s", file, text)
			}
		})
	}
}

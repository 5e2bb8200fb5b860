package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// onNode is a Machine in the shared cluster.
func onNode(m Machine) Machine {
	m.Cluster, m.Node = sharedClass.Cluster, "node-"+m.Name
	return m
}

// sharedFacts is a Rollout whose canary has baked, of Machines on whose nodes so many devices are held, of at most limit. All Machines may be unavailable.
func sharedFacts(limit int, status v1alpha1.RolloutStatus, held map[string]int, machines ...Machine) Facts {
	f := factsOf(status)
	f.Policy.MaxUnavailable = intstr.FromString("100%")
	f.Tenants = Tenants{Held: map[types.NamespacedName][]Held{}, Budgets: map[Class]DeviceBudget{sharedClass: {Limit: limit, Entitlement: "shared/legal"}}}
	for _, m := range machines {
		f.Machines = append(f.Machines, onNode(m))
		if n := held[m.Name]; n > 0 {
			f.Tenants.Held[m.key()] = []Held{{DeviceClass: sharedClass.Name, Devices: n, Claims: 1}}
		}
	}
	return f
}

func inUse(machine string, devices int32) v1alpha1.DevicesInUse {
	return v1alpha1.DevicesInUse{Machine: "research/" + machine, DeviceClass: sharedClass.Name, Devices: devices, Claims: 1}
}

func using(status v1alpha1.RolloutStatus, use ...v1alpha1.DevicesInUse) v1alpha1.RolloutStatus {
	status.InUse = use
	return status
}

func TestWhoWaitsForATenantIsSaid(t *testing.T) {
	one, two, drained := serving("a", "old"), serving("b", "old"), underway("a")
	drained.Installed, drained.Phase = rendered("old"), v1alpha1.MachineDraining
	for _, c := range []struct {
		about, message, reason string
		facts                  Facts
	}{
		{
			"more on one node than may be unavailable", "0 of 1 Machine moved, 0 on their way; 1 wait for devices that are in use: class legal-gpu: 8 devices are held on node-a and at most 4 may be unavailable: " +
				"the tenant frees claims there, or raise maxUnavailable of the class in Entitlement shared/legal", v1alpha1.ReasonDevicesHeld,
			sharedFacts(4, rolling(), map[string]int{"a": 8}, one),
		},
		{
			"some are unavailable already", "0 of 2 Machines moved, 1 on their way; 1 wait for devices that are in use: class legal-gpu: 1 device is held on node-b, 4 are unavailable until other Machines are Ready, " +
				"and at most 4 may be: wait for those or mend them, or raise maxUnavailable of the class in Entitlement shared/legal", v1alpha1.ReasonDevicesHeld,
			sharedFacts(4, using(rolling("research/a"), inUse("a", 4)), map[string]int{"b": 1}, drained, two),
		},
		{"nobody does", "0 of 2 Machines moved, 1 on their way", v1alpha1.ReasonTenantsHaveRoom, sharedFacts(4, rolling(), map[string]int{"b": 4}, one, two)},
	} {
		d := Plan(c.facts)
		if text := message(d); text != c.message {
			t.Errorf("%s: %s\nwant %s", c.about, text, c.message)
		}
		is := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionTenantsHaveRoom)
		if is == nil || is.Reason != c.reason || (is.Status == metav1.ConditionTrue) != (c.reason == v1alpha1.ReasonTenantsHaveRoom) || c.reason == v1alpha1.ReasonDevicesHeld && d.RequeueAfter != claimsInterval {
			t.Errorf("%s: %+v, again after %s", c.about, is, d.RequeueAfter)
		}
	}
}

func TestTheNodeThatAPersonMustFreeIsNamedBeforeOneThatWaits(t *testing.T) {
	d := Plan(sharedFacts(4, using(rolling("research/c"), inUse("c", 4)), map[string]int{"a": 1, "b": 8}, serving("a", "old"), serving("b", "old"), underway("c")))
	if text := message(d); !strings.Contains(text, "2 wait for devices that are in use: class legal-gpu: 8 devices are held on node-b") || strings.Contains(text, "node-a") {
		t.Error(text)
	}
}

func TestAMachineOnWhichNothingOfTheClassIsHeldIsFreeToGo(t *testing.T) {
	f := sharedFacts(0, rolling(), map[string]int{"a": 1}, serving("a", "old"), serving("b", "old"), serving("c", "old"))
	f.Tenants.Held[f.Machines[1].key()] = []Held{{DeviceClass: "other-gpu", Devices: 8, Claims: 1}}
	var started []string
	for range 8 {
		d := Plan(f)
		f.Rollout.Status = d.Status
		for _, key := range d.Start {
			started = append(started, key.Name)
			for i := range f.Machines {
				if f.Machines[i].key() == key {
					f.Machines[i].Labeled, f.Machines[i].Desired = true, rendered("new")
				}
			}
		}
	}
	if !slices.Equal(started, []string{"b", "c"}) {
		t.Errorf("%v are started", started)
	}
}

// TestABrokenMachineWhosePodsRunIsCountedBeforeItIsStarted: to move it costs no budget of Machines, and takes devices away.
func TestABrokenMachineWhosePodsRunIsCountedBeforeItIsStarted(t *testing.T) {
	f := sharedFacts(4, rolling(), map[string]int{"a": 4, "b": 4}, broken("a"), broken("b"))
	d := Plan(f)
	if len(d.Start) > 0 || !slices.Equal(d.Status.InUse, []v1alpha1.DevicesInUse{inUse("a", 4)}) || !slices.Equal(d.Status.BrokenBefore, []string{"research/a"}) {
		t.Fatalf("starts %v, in use %v, broken before %v", d.Start, d.Status.InUse, d.Status.BrokenBefore)
	}
	f.Rollout.Status = d.Status
	if d = Plan(f); len(d.Start) != 1 || d.Start[0].Name != "a" || len(d.Status.InUse) != 1 || !strings.Contains(message(d), "node-b") {
		t.Errorf("starts %v, in use %v: %s", d.Start, d.Status.InUse, message(d))
	}
}

func TestDevicesThatAreTakenAfterTheMachineWasChosenAreCountedBeforeItIsStarted(t *testing.T) {
	f := sharedFacts(4, using(rolling("research/a"), inUse("a", 1)), map[string]int{"a": 3}, serving("a", "old"))
	d := Plan(f)
	if len(d.Start) > 0 || !slices.Equal(d.Status.InUse, []v1alpha1.DevicesInUse{inUse("a", 3)}) {
		t.Fatalf("starts %v, in use %v", d.Start, d.Status.InUse)
	}
	f.Rollout.Status = d.Status
	if d = Plan(f); len(d.Start) != 1 {
		t.Errorf("it is not started: %s", message(d))
	}
	// Now more than may be unavailable: it waits, and another one goes.
	f = sharedFacts(4, using(rolling("research/a"), inUse("a", 3)), map[string]int{"a": 5}, serving("a", "old"), serving("b", "old"))
	if d = Plan(f); len(d.Start) > 0 || !slices.Contains(d.Status.InProgress, "research/b") || !strings.Contains(message(d), "5 devices are held on node-a") {
		t.Errorf("starts %v, in progress %v: %s", d.Start, d.Status.InProgress, message(d))
	}
}

func TestTheCanaryIsOneThatNoTenantHoldsBack(t *testing.T) {
	f := sharedFacts(4, v1alpha1.RolloutStatus{}, map[string]int{"a": 8}, serving("a", "old"), serving("b", "old"))
	if d := Plan(f); !slices.Equal(d.Status.Canary, []string{"research/b"}) {
		t.Errorf("canary %v", d.Status.Canary)
	}
	f.Rollout.Status = v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}}
	if d := Plan(f); !slices.Equal(d.Status.Canary, []string{"research/b"}) {
		t.Errorf("the canary that a tenant holds back is not replaced: %v", d.Status.Canary)
	}
}

func TestTheCountsStayInASupersededRolloutAndGoToTheNextOne(t *testing.T) {
	drained := underway("a")
	drained.Installed, drained.Phase = rendered("old"), v1alpha1.MachineDraining
	f := sharedFacts(4, using(rolling("research/a"), inUse("a", 4)), nil, drained)
	f.Rollout.Superseded = true
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutSuperseded || len(d.Status.InUse) != 1 {
		t.Fatalf("%s, in use %v", d.Status.Phase, d.Status.InUse)
	}
	f = sharedFacts(4, v1alpha1.RolloutStatus{}, map[string]int{"b": 1}, drained, serving("b", "newer"))
	f.Machines[0].Labeled, f.Rollout.ToStable = false, true
	f.Previous = NewPreviousRollout(&v1alpha1.Rollout{Status: d.Status})
	if d = Plan(f); d.Status.Phase != v1alpha1.RolloutPending || !slices.Equal(d.Status.InUse, []v1alpha1.DevicesInUse{inUse("a", 4)}) {
		t.Fatalf("%s, in use %v", d.Status.Phase, d.Status.InUse)
	}
	f.Machines[0].Labeled, f.Rollout.Status = true, d.Status
	if d = Plan(f); slices.Contains(d.Status.InProgress, "research/b") || !strings.Contains(message(d), "4 are unavailable until other Machines are Ready") {
		t.Errorf("in progress %v: %s", d.Status.InProgress, message(d))
	}
}

func TestOfTwoRolloutsThatHaveChosenAtTheSameTimeOneGoesFirst(t *testing.T) {
	f := sharedFacts(4, using(rolling("research/a"), inUse("a", 3)), map[string]int{"a": 3}, serving("a", "old"))
	for about, c := range map[string]struct {
		taken  Taken
		starts int
	}{
		"the other one lets this one go": {Taken{Devices: 3, Yielding: 3}, 1}, "this one lets the other one go": {Taken{Devices: 3}, 0},
		"the other one has started some": {Taken{Devices: 5, Yielding: 3}, 0},
	} {
		f.Tenants.Elsewhere = map[Class]Taken{sharedClass: c.taken}
		if d := Plan(f); len(d.Start) != c.starts {
			t.Errorf("%s: %v are started", about, d.Start)
		}
	}
	f.Rollout.Status = rolling()
	f.Tenants.Elsewhere = map[Class]Taken{sharedClass: {Devices: 3, Yielding: 3}}
	if d := Plan(f); len(d.Status.InProgress) > 0 {
		t.Error("a Machine is chosen although another Rollout has chosen one before")
	}
}

func TestOtherRolloutsCountUntilTheirMachinesAreBackOrTheirSuccessorHasBegun(t *testing.T) {
	machine := func(name string) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}, Status: v1alpha1.MachineStatus{
			Revision: "v1", Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		}}
	}
	started := machine("started")
	started.Spec.Revision = "v2"
	machines := map[types.NamespacedName]*v1alpha1.Machine{}
	for _, m := range []*v1alpha1.Machine{machine("waits"), started} {
		machines[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = m
	}
	of := func(nodeType, name string, phase v1alpha1.RolloutPhase, use ...v1alpha1.DevicesInUse) v1alpha1.Rollout {
		return v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RolloutSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}},
			Status: v1alpha1.RolloutStatus{Phase: phase, InUse: use}}
	}
	both := []v1alpha1.DevicesInUse{inUse("waits", 1), inUse("started", 2), inUse("deleted", 4)}
	for about, c := range map[string]struct {
		rollouts []v1alpha1.Rollout
		want     Taken
	}{
		"of the same NodeType":            {[]v1alpha1.Rollout{of("m", "m-v2-1", v1alpha1.RolloutRolling, both...)}, Taken{}},
		"its name is higher":              {[]v1alpha1.Rollout{of("z", "z-v2-1", v1alpha1.RolloutRolling, both...)}, Taken{Devices: 3, Yielding: 1}},
		"its name is lower":               {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutRolling, both...)}, Taken{Devices: 3}},
		"paused":                          {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutPaused, both...)}, Taken{Devices: 3}},
		"done":                            {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutDone, both...)}, Taken{}},
		"superseded without a successor":  {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutSuperseded, both...)}, Taken{Devices: 3}},
		"superseded, and the next begins": {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutSuperseded, both...), of("a", "a-v1-2", v1alpha1.RolloutPending, both[0])}, Taken{Devices: 3}},
		"superseded, and the next rolls":  {[]v1alpha1.Rollout{of("a", "a-v2-1", v1alpha1.RolloutSuperseded, both...), of("a", "a-v1-2", v1alpha1.RolloutRolling, both[0])}, Taken{Devices: 1}},
	} {
		got := NewElsewhere("m-v2-1", "m", c.rollouts, machines, func(*v1alpha1.Machine) string { return sharedClass.Cluster })
		want := map[Class]Taken{}
		if c.want != (Taken{}) {
			want[sharedClass] = c.want
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", about, got, want)
		}
	}
}

func TestNoMoreIsInUseThanTheStatusHolds(t *testing.T) {
	f := sharedFacts(1_000_000, rolling("research/a"), nil, serving("a", "old"), serving("b", "old"))
	classes := func(n int) (held []Held) {
		for i := range n {
			held = append(held, Held{DeviceClass: fmt.Sprintf("class-%04d", i), Devices: 1, Claims: 1})
		}
		return held
	}
	f.Machines[0].Labeled, f.Machines[0].Desired = true, rendered("new")
	f.Tenants.Held[f.Machines[0].key()], f.Tenants.Held[f.Machines[1].key()] = classes(maxInUse+1), classes(1)
	if d := Plan(f); len(d.Status.InUse) != maxInUse || len(d.Status.InProgress) != 1 {
		t.Errorf("%d in use, in progress %v", len(d.Status.InUse), d.Status.InProgress)
	}
	f.Tenants.Held[f.Machines[0].key()] = classes(maxInUseChosen - 1)
	if d := Plan(f); len(d.Status.InUse) != maxInUseChosen || len(d.Status.InProgress) != 2 {
		t.Errorf("%d in use, in progress %v", len(d.Status.InUse), d.Status.InProgress)
	}
}

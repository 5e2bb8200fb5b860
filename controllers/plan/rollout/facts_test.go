package rollout

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func notReady(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
}

func TestAFailureIsWhatDoesNotMendItself(t *testing.T) {
	past, future := metav1.NewMicroTime(noon.Add(-time.Second)), metav1.NewMicroTime(noon.Add(time.Minute))
	for _, c := range []struct {
		about  string
		status v1alpha1.MachineStatus
		want   string
	}{
		{"new", v1alpha1.MachineStatus{}, ""},
		{"at work", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &future, Conditions: notReady(v1alpha1.ReasonProvisioning)}, ""},
		{"a check fails and may still pass", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &future, Conditions: notReady(v1alpha1.ReasonChecksFailed)}, ""},
		{"a check fails past the deadline", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &past, Conditions: notReady(v1alpha1.ReasonChecksFailed)}, v1alpha1.ReasonChecksFailed},
		{"the drain is over", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &past, Conditions: notReady(v1alpha1.ReasonDrainTimedOut)}, v1alpha1.ReasonDrainTimedOut},
		{"the image is not what was asked for", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &future, Conditions: notReady(string(hardware.ReasonDigestMismatch))}, "DigestMismatch"},
		{"the image server is away and the host tries again", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &future, Conditions: notReady(string(hardware.ReasonImageUnreachable))}, ""},
		{"the image server stays away", v1alpha1.MachineStatus{ObservedGeneration: 2, Deadline: &past, Conditions: notReady(string(hardware.ReasonImageUnreachable))}, "ImageUnreachable"},
		{"the status speaks of an earlier spec", v1alpha1.MachineStatus{ObservedGeneration: 1, Deadline: &past, Conditions: notReady(v1alpha1.ReasonChecksFailed)}, ""},
		{"Ready", v1alpha1.MachineStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}}, ""},
	} {
		m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: c.status}
		if got := failureReason(&m, watched.Clock{Now: noon}); got != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}

func TestTheseReasonsAreFailuresBeforeTheDeadline(t *testing.T) {
	for _, reason := range []string{
		"HostLost", "NodeConflict", "DrainTimedOut", "ProvisioningTimedOut", "JoinTimedOut", "ValidationTimedOut", "PowerOnIgnored", "PowerOffIgnored", "NoBootRequest",
		"AgentMissing", "AgentSilent", "BootLoop", "DigestMismatch", "ImageInvalid", "NoRootDevice", "DiskError", "DeadlineExceeded", "HardwareDiffers", "RootDiskDiffers",
	} {
		if got := failureReason(&v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: notReady(reason)}}, watched.Clock{Now: noon}); got != reason {
			t.Errorf("%s: %q", reason, got)
		}
	}
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHostLost}}
	if got := failureReason(&v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: ready}}, watched.Clock{Now: noon}); got != "" {
		t.Errorf("Ready with the reason of a failure: %q", got)
	}
	if got := failureReason(&v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: notReady(v1alpha1.ReasonChecksFailed)}}, watched.Clock{Now: noon}); got != "" {
		t.Errorf("a phase without a deadline: %q", got)
	}
}

func TestPoolsAndThePreviousRolloutAreThoseOfTheNodeType(t *testing.T) {
	two := intstr.FromInt32(2)
	pool := func(name, nodeType string, policy *v1alpha1.NodePoolRollout) v1alpha1.NodePool {
		return v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}, Spec: v1alpha1.NodePoolSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, Rollout: policy}}
	}
	got := NewPools("h100", []v1alpha1.NodePool{pool("other", "a100", nil), pool("plain", "h100", nil), pool("strict", "h100", &v1alpha1.NodePoolRollout{MaxUnavailable: &two})})
	want := map[types.NamespacedName]Pool{{Namespace: "research", Name: "plain"}: {}, {Namespace: "research", Name: "strict"}: {MaxUnavailable: &two}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pools %v, want %v", got, want)
	}
	if NewPreviousRollout(nil) != nil {
		t.Error("there is a Rollout before the first one")
	}
	for phase, settled := range map[v1alpha1.RolloutPhase]bool{v1alpha1.RolloutDone: true, v1alpha1.RolloutSuperseded: true, v1alpha1.RolloutStopped: false} {
		r := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "b-1"}, Status: v1alpha1.RolloutStatus{Phase: phase, InProgress: []string{"research/a"}, HandedOver: []string{"research/b"}, BrokenBefore: []string{"research/c"}}}
		if got, want := NewPreviousRollout(r), (&PreviousRollout{Name: "b-1", Settled: settled, InProgress: []string{"research/a", "research/b"}, BrokenBefore: []string{"research/c"}, Done: phase == v1alpha1.RolloutDone}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", phase, got, want)
		}
	}
}

func TestWhatIsNotSaidOfARolloutHasItsDefault(t *testing.T) {
	if got, want := NewPolicy(nil), (Policy{MaxUnavailable: intstr.FromString("10%"), Canary: 1, Bake: 10 * time.Minute, FailureBudget: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	three, zero := intstr.FromInt32(3), int32(0)
	p := NewPolicy(&v1alpha1.RolloutPolicy{MaxUnavailable: &three, FailureBudget: &zero, Canary: &v1alpha1.CanarySpec{Machines: 2, Bake: &metav1.Duration{Duration: time.Hour}}})
	if want := (Policy{MaxUnavailable: three, Canary: 2, Bake: time.Hour}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	if got, want := NewPolicy(&v1alpha1.RolloutPolicy{}), NewPolicy(nil); got != want {
		t.Errorf("an empty policy: %+v, want %+v", got, want)
	}
	if got := NewPolicy(&v1alpha1.RolloutPolicy{Canary: &v1alpha1.CanarySpec{}}); got.Canary != 1 || got.Bake != 10*time.Minute {
		t.Errorf("an empty canary: %+v", got)
	}
}

func TestABudgetIsRoundedDownAndNeverNothing(t *testing.T) {
	percent, wrong := intstr.FromString("34%"), intstr.FromString("many")
	for _, c := range []struct {
		pool Pool
		size int
		want int
	}{{Pool{}, 9, 1}, {Pool{}, 29, 2}, {Pool{}, 0, 1}, {Pool{&percent}, 5, 1}, {Pool{&percent}, 6, 2}, {Pool{&wrong}, 100, 1}} {
		if got := c.pool.limit(c.size); got != c.want {
			t.Errorf("%v of %d: %d, want %d", c.pool.MaxUnavailable, c.size, got, c.want)
		}
	}
}

func TestAMachineBelongsToThePoolThatMadeIt(t *testing.T) {
	owned := true
	since := metav1.NewTime(noon)
	m := v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "research", Name: "training-1", Labels: map[string]string{v1alpha1.LabelRollout: "r-1", v1alpha1.LabelNodePool: "other"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodePool", Name: "training", Controller: &owned}},
		},
		Spec: v1alpha1.MachineSpec{Revision: "b"},
		Status: v1alpha1.MachineStatus{
			Revision: "a", Phase: v1alpha1.MachineReady, HostRef: &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-1"},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: since}},
		},
	}
	want := Machine{
		Namespace: "research", Name: "training-1", Pool: types.NamespacedName{Namespace: "research", Name: "training"}, Labeled: true,
		Desired: rendered("b"), Installed: rendered("a"), Phase: v1alpha1.MachineReady, Ready: true, ReadySince: noon, Claimed: true,
	}
	if got := NewMachine("r-1", rendered("c/1"), &m, watched.Clock{Now: noon}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.Labels, m.OwnerReferences = map[string]string{v1alpha1.LabelRollout: "r-0", v1alpha1.LabelNodePool: "training"}, nil
	if got := NewMachine("r-1", rendered("c/1"), &m, watched.Clock{Now: noon}); got.Labeled || got.Pool.Name != "" {
		t.Errorf("made by hand, marked by another: %+v", got)
	}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "Fleet", Name: "training", Controller: &owned}}
	m.DeletionTimestamp, m.Status.HostRef, m.Status.Conditions = &since, nil, notReady(v1alpha1.ReasonHostLost)
	m.Status.WaitingFor = "a host"
	got := NewMachine("r-1", rendered("c/1"), &m, watched.Clock{Now: noon})
	if !got.Deleting || got.Claimed || got.Ready || !got.ReadySince.IsZero() || got.Pool.Name != "" || got.FailureReason != v1alpha1.ReasonHostLost || got.WaitingFor != "a host" {
		t.Errorf("made by something else, being deleted: %+v", got)
	}
	m.Status.Conditions = nil
	if got := NewMachine("r-1", rendered("c/1"), &m, watched.Clock{Now: noon}); got.Ready || got.FailureReason != "" {
		t.Errorf("without conditions: %+v", got)
	}
}

func TestARevisionAskedForAloneLeavesTheRenderingToTheNodeType(t *testing.T) {
	for _, c := range []struct{ asked, installed, want string }{
		{"", "a/1", ""},
		{"a", "a/1", "a/1"},
		{"b", "a/1", "b/2"},
		{"b/1", "a/1", "b/1"},
		{"c", "a/1", "c"},
	} {
		asked, installed := rendered(c.asked), rendered(c.installed)
		m := v1alpha1.Machine{
			Spec:   v1alpha1.MachineSpec{Revision: asked.Revision, Rendering: asked.Rendering},
			Status: v1alpha1.MachineStatus{Revision: installed.Revision, Rendering: installed.Rendering},
		}
		if got := DesiredRevision(&m, rendered("b/2")); got != rendered(c.want) {
			t.Errorf("asked for %q with %q installed: %v, want %q", c.asked, c.installed, got, c.want)
		}
	}
}

func TestAMachineHasServedWhereItsNodeMayBeAtWork(t *testing.T) {
	const pending, provisioning, joining, validating, ready, draining = v1alpha1.MachinePending, v1alpha1.MachineProvisioning, v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining
	for _, c := range []struct {
		phases    []v1alpha1.MachinePhase
		validated string
		want      bool
	}{
		{nil, "", false},
		{[]v1alpha1.MachinePhase{pending}, "", false},
		{[]v1alpha1.MachinePhase{provisioning, joining, validating}, "", false},
		{[]v1alpha1.MachinePhase{provisioning, joining, validating}, v1alpha1.ReasonChecksFailed, false},
		{[]v1alpha1.MachinePhase{provisioning, joining, validating}, v1alpha1.ReasonObserveOnly, true},
		{[]v1alpha1.MachinePhase{provisioning, joining, validating}, v1alpha1.ReasonGateMissed, true},
		{[]v1alpha1.MachinePhase{provisioning, joining, validating}, v1alpha1.ReasonGateRemovedByOthers, true},
		{[]v1alpha1.MachinePhase{validating, draining, provisioning}, v1alpha1.ReasonObserveOnly, false}, // the condition is of the installation before
		{[]v1alpha1.MachinePhase{provisioning, joining, validating, ready}, "", true},
		{[]v1alpha1.MachinePhase{validating, ready, validating, ready, validating}, "", true}, // the list keeps the last ones alone
		{[]v1alpha1.MachinePhase{ready, draining}, "", true},
		{[]v1alpha1.MachinePhase{ready, draining, provisioning, joining, validating}, "", false},
		{[]v1alpha1.MachinePhase{joining}, "", true}, // taken over after a restore
		{[]v1alpha1.MachinePhase{joining, validating}, "", true},
	} {
		m := &v1alpha1.Machine{}
		for _, phase := range c.phases {
			m.Status.Phase = phase
			m.Status.Timeline = append(m.Status.Timeline, v1alpha1.PhaseEntry{Phase: phase})
		}
		if c.validated != "" {
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionValidated, Status: metav1.ConditionFalse, Reason: c.validated}}
		}
		if got := HasServed(m); got != c.want {
			t.Errorf("%v, %s: %t", c.phases, c.validated, got)
		}
	}
}

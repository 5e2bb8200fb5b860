package lifecycle

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// inTimeline gives the Machine the phases that it has entered, and no Node that was seen.
func inTimeline(f *Facts, phases ...v1alpha1.MachinePhase) {
	f.Machine.Status.NodeRef, f.Machine.Status.Timeline = nil, nil
	for _, p := range append(phases, v1alpha1.MachineReleasing) {
		f.Machine.Status.Timeline = append(f.Machine.Status.Timeline, v1alpha1.PhaseEntry{Phase: p, At: metav1.NewMicroTime(f.Now.Add(-time.Hour))})
	}
}

func TestAReleaseLeavesTheNameOfANodeThatMayRemain(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts)
		want   bool
	}{
		{"the tenant answers, and there is no Node", func(*Facts) {}, false},
		{"the tenant is gone, and the Node was seen", unreachable, true},
		{"the tenant is gone, and nobody has seen a Node of the server that booted", func(f *Facts) {
			unreachable(f)
			inTimeline(f, v1alpha1.MachineProvisioning, v1alpha1.MachineJoining)
		}, true},
		{"the tenant is gone, and the image was never on the disk", func(f *Facts) {
			unreachable(f)
			inTimeline(f, v1alpha1.MachineJoining, v1alpha1.MachineReady, v1alpha1.MachineDraining, v1alpha1.MachineProvisioning)
		}, false},
		{"the HostRecord said so before the erase, and the tenant is still gone", func(f *Facts) {
			unreachable(f)
			inTimeline(f, v1alpha1.MachineProvisioning)
			f.Host.Record.Spec.NodeRemains = &v1alpha1.RemainingNode{Name: "m0"}
		}, true},
		{"the HostRecord said so, and the tenant has removed it since", func(f *Facts) {
			f.Host.Record.Spec.NodeRemains = &v1alpha1.RemainingNode{Name: "m0"}
		}, false},
		{"the tenant keeps the Node by a finalizer", func(f *Facts) { f.Node = ownNode(f); f.Node.Undeletable = "it has the finalizers x" }, true},
	} {
		f := factsIn(t, v1alpha1.MachineReleasing)
		erased(&f)
		late(&f)
		f.Token, f.Secret = nil, Secret{}
		earlier := v1alpha1.ReleasedNode{Tenant: "team/other", Name: "old", MachineUID: "old"}
		f.Host.Record.Spec.RemainingNodes = []v1alpha1.ReleasedNode{earlier}
		c.change(&f)
		d := Plan(f)
		if d.Action == nil || d.Action.Kind != ClearHostRecord {
			t.Errorf("%s: the action is %+v", c.name, d.Action)
			continue
		}
		nodes := d.Action.Record.RemainingNodes
		if len(nodes) == 0 || nodes[0] != earlier {
			t.Errorf("%s: the Node of an earlier Machine is forgotten: %+v", c.name, nodes)
		}
		if got := len(nodes) == 2 && nodes[1].Name == f.Machine.Name && nodes[1].MachineUID == f.Machine.UID; got != c.want {
			t.Errorf("%s: %+v", c.name, nodes)
		}
	}
}

func TestAReleaseDoesNotWaitForeverForANodeThatTheTenantKeeps(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		f := factsIn(t, v1alpha1.MachineReleasing)
		off(&f)
		f.Node, f.Token = ownNode(&f), nil
		f.Node.Undeletable, f.Node.Unschedulable = "it has the finalizers x", true
		if isLate {
			late(&f)
		}
		d := Plan(f)
		if isRecorded := d.Action != nil && d.Action.Kind == WriteHostRecord && d.Action.Record.NodeRemains != nil; isRecorded != isLate {
			t.Errorf("after the drain time-out %v: the action is %+v", isLate, d.Action)
		}
		if d.Requeue && !isLate || !isLate && d.RequeueAfter < time.Second {
			t.Errorf("it is planned again at once: a hot loop")
		}
	}
}

func TestATokenThatTheTenantKeepsHoldsNoReleaseAndMakesNoHotLoop(t *testing.T) {
	for phase, want := range map[v1alpha1.MachinePhase]ActionKind{
		v1alpha1.MachineReleasing: Cordon, v1alpha1.MachineDraining: "", v1alpha1.MachineValidating: ScrubSecret,
	} {
		f := factsIn(t, phase)
		f.Node = ownNode(&f)
		f.Token = &Token{ID: "abcdef", Expires: f.Now.Add(time.Hour), Undeletable: "it is being deleted and keeps the finalizers x"}
		f.Secret = Secret{Found: true, Attempt: f.Machine.Status.Attempt, TokenID: f.Token.ID}
		d := Plan(f)
		kind := ActionKind("")
		if d.Action != nil {
			kind = d.Action.Kind
		}
		if kind == DeleteToken || want != "" && kind != want {
			t.Errorf("%s: the action is %s, expected %q", phase, kind, want)
		}
		if d.Action == nil && (d.Requeue || d.RequeueAfter < time.Second) {
			t.Errorf("%s: it is planned again at once: a hot loop", phase)
		}
	}
	for _, isLate := range []bool{false, true} {
		f := factsIn(t, v1alpha1.MachineReleasing)
		f.Host, f.Node, f.Machine.Status.HostRef = nil, Node{}, nil
		f.Token = &Token{ID: "abcdef", Undeletable: "it is being deleted and keeps the finalizers x"}
		if isLate {
			late(&f)
		}
		if d := Plan(f); (d.Status.NodeRemainsReportedAt != nil) != isLate {
			t.Errorf("after the drain time-out %v: %+v", isLate, d)
		}
	}
}

func TestANodeOfAnEarlierAttemptThatTheTenantKeepsMakesNoHotLoop(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineJoining)
	f.Machine.Status.Attempt = 2
	f.Host.Installation = scope{Facts: f}.installation(v1alpha1.InstallationComplete)
	f.Node = Node{Found: true, UID: "node-uid", ProviderID: v1alpha1.ProviderIDPrefix + string(f.Machine.UID) + "/1", Undeletable: "it is kept"}
	if d := Plan(f); d.Action != nil && d.Action.Kind == DeleteNode || d.Requeue || d.RequeueAfter < time.Second {
		t.Errorf("%+v, again %v after %s", d.Action, d.Requeue, d.RequeueAfter)
	}
}

func TestTheListOfRemainingNodesIsLimited(t *testing.T) {
	var nodes []v1alpha1.ReleasedNode
	for i := range 3 * v1alpha1.MaxRemainingNodes {
		nodes = v1alpha1.WithRemainingNode(nodes, v1alpha1.ReleasedNode{MachineUID: types.UID(rune('a' + i))})
	}
	if len(nodes) != v1alpha1.MaxRemainingNodes {
		t.Errorf("%d Nodes", len(nodes))
	}
	if again := v1alpha1.WithRemainingNode(nodes, nodes[3]); len(again) != len(nodes) {
		t.Errorf("a Node is named twice")
	}
}

func TestANodeThatRemainedIsForgottenWhenItsTenantIsGoneForLong(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := Remaining{Clock: watched.Clock{Now: now}, Entry: v1alpha1.ReleasedNode{MachineUID: "m", Since: metav1.NewMicroTime(now.Add(-forgetTime + time.Second))}}
	if got := PlanRemaining(r); got != KeepRemaining {
		t.Errorf("before: %s", got)
	}
	r.Now = now.Add(time.Second)
	if got := PlanRemaining(r); got != ForgetRemaining {
		t.Errorf("after: %s", got)
	}
	if r.Tenant.Found = true; PlanRemaining(r) != KeepRemaining {
		t.Error("a TenantCluster that does not answer is no reason to forget")
	}
}

func TestAWrongBootAddressOrImageHoldsAClaimARollAndAnInstallation(t *testing.T) {
	for reason, change := range map[string]func(*Facts){
		v1alpha1.ReasonBootAddressWrong: func(f *Facts) { f.Provider.BootProblem = "something else answers" },
		v1alpha1.ReasonImageSizeDiffers: func(f *Facts) {
			f.Revision.ImageReason, f.Revision.ImageProblem = v1alpha1.ReasonImageSizeDiffers, "replaced"
			f.NextRevision.ImageReason, f.NextRevision.ImageProblem = f.Revision.ImageReason, f.Revision.ImageProblem
		},
	} {
		pending := factsIn(t, v1alpha1.MachinePending)
		change(&pending)
		d := Plan(pending)
		if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClaimed); d.Status.Phase != v1alpha1.MachinePending || c == nil || c.Reason != reason {
			t.Errorf("%s: a claim goes on: %s, %+v", reason, d.Status.Phase, c)
		}
		ready := factsIn(t, v1alpha1.MachineReady)
		ready.NextRevision = revisionOf("rev-2")
		change(&ready)
		d = Plan(ready)
		if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionUpToDate); d.Status.Phase != v1alpha1.MachineReady || c == nil || c.Reason != reason {
			t.Errorf("%s: a roll begins: %s, %+v", reason, d.Status.Phase, c)
		}
	}
}

func TestAReleaseSaysThatItsEraseWaitsForTheBootAddress(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineProvisioning)
	f, _, _ := w.facts(w.machines[0])
	f.Host.Error, f.Host.ErrorReason, f.Host.State = "provisioning error", v1alpha1.ReasonBootAddressWrong, metal3.StateDeprovisioning
	r := scope{Facts: f, guards: realGuards()}.waitForErase()
	if r.report.reason != v1alpha1.ReasonBootAddressWrong || !strings.Contains(r.report.message, "its erase waits") || r.requeueAfter <= 0 {
		t.Errorf("%+v", r)
	}
}

func TestAHostWithoutARecordNamesTheNodeThatRemains(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineReleasing)
	off(&f)
	erased(&f)
	f.Host.Record, f.Provider.HasRecords, f.Secret = nil, false, Secret{}
	f.Host.PoweredOn, f.Host.InstalledURL = false, ""
	unreachable(&f)
	late(&f)
	d := Plan(f)
	if d.Action == nil || d.Action.Kind != ReturnHost || d.Action.RemainingNode == nil {
		t.Fatalf("%+v", d.Action)
	}
	if n := d.Action.RemainingNode; n.Name != f.Machine.Name || n.MachineUID != f.Machine.UID || n.UID != f.Machine.Status.NodeRef.UID || n.Tenant != f.Machine.Namespace+"/"+f.Machine.Spec.TenantClusterRef.Name {
		t.Errorf("%+v", n)
	}
	f.Tenant.Reachable = true
	if d = Plan(f); d.Action == nil || d.Action.Kind != ReturnHost || d.Action.RemainingNode != nil {
		t.Errorf("the Node is gone: %+v", d.Action)
	}
}

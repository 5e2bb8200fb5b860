package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// runAndRecord runs a world without faults and with one Machine, and returns its phases and its actions in their order.
func runAndRecord(w *world) []string {
	var recorded []string
	m := w.machines[0]
	for range 80 {
		for range 2 {
			f, _, _ := w.facts(m)
			d := plan(f, w.guards)
			if d.Status.Phase != f.Machine.Status.Phase {
				recorded = append(recorded, string(d.Status.Phase))
			}
			if d.Action != nil {
				recorded = append(recorded, "  "+string(d.Action.Kind))
			}
			w.reconcile(m)
			w.sync()
		}
		w.judge(m)
		w.reconcileHost(w.hosts[0])
		w.sync()
		w.runServer(w.hosts[0])
		w.now = w.now.Add(10 * time.Second)
	}
	return slices.Compact(recorded)
}

func expectRun(t *testing.T, w *world, want string) {
	t.Helper()
	if got := strings.Join(runAndRecord(w), "\n"); got != strings.Trim(want, "\n") {
		t.Errorf("the phases and actions are\n%s\nexpected\n%s", got, strings.Trim(want, "\n"))
	}
	if len(w.broken) > 0 {
		t.Error(w.broken)
	}
}

// readyWorld returns a world whose Machine is Ready and whose Node has the given number of pods.
func readyWorld(t *testing.T, pods int) *world {
	w := worldInPhase(t, v1alpha1.MachineReady)
	runAndRecord(w)
	w.tenant.nodes["m0"].pods = pods
	return w
}

func TestARollDrainsPowersOffAndReinstallsInThisOrder(t *testing.T) {
	w := readyWorld(t, 2)
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	expectRun(t, w, `
Draining
  Cordon
  Evict
  PowerOff
  DeleteNode
Provisioning
  WriteHostRecord
  RequestInstall
  CreateToken
  WriteClaimSecret
Joining
Validating
Ready
  DeleteToken
  ScrubSecret
  SyncNodeMetadata
  RecordInstallation`)
	if s := w.machines[0].live.Status; s.Attempt != 2 || s.Revision != "rev-2" || s.HostRef.Name != "host-0" {
		t.Errorf("attempt %d, revision %s, host %v", s.Attempt, s.Revision, s.HostRef)
	}
}

func TestAMachineCanBeRolledInEveryPhaseOfAnInstallation(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineProvisioning, v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady} {
		t.Run(string(phase), func(t *testing.T) {
			w := worldInPhase(t, phase)
			w.setRevision(w.machines[0], "rev-2")
			w.sync()
			recorded := runAndRecord(w)
			if recorded[0] != "Draining" {
				t.Errorf("first of all: %s", recorded[0])
			}
			token := slices.Index(recorded, "  DeleteToken")
			if hasToken := phase == v1alpha1.MachineJoining || phase == v1alpha1.MachineValidating; hasToken && token > slices.Index(recorded, "  PowerOff") {
				t.Error("the token of the first attempt outlives its machine")
			}
			s := w.machines[0].live.Status
			if s.Phase != v1alpha1.MachineReady || s.Attempt != 2 || w.hosts[0].hw.disk.revision != "rev-2" || len(w.broken) > 0 || len(w.tenant.tokens) > 0 {
				t.Errorf("%s with attempt %d of %s; tokens %v, broken %v\n%s", s.Phase, s.Attempt, w.hosts[0].hw.disk.revision, w.tenant.tokens, w.broken, strings.Join(recorded, "\n"))
			}
		})
	}
}

func TestARollThatIsCancelledInTimeUncordonsTheNode(t *testing.T) {
	w := readyWorld(t, 1)
	w.tenant.nodes["m0"].kept = true
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	readyAfter(w, 3)
	w.setRevision(w.machines[0], "rev-1")
	w.sync()
	expectRun(t, w, `
  Uncordon
Validating
Ready`)
	if n := w.tenant.nodes["m0"]; n.cordoned || n.pods != 1 || w.machines[0].live.Status.Attempt != 1 {
		t.Errorf("cordoned %v, %d pods, attempt %d", n.cordoned, n.pods, w.machines[0].live.Status.Attempt)
	}
}

// The request to cordon is slow, and arrives when the roll is cancelled and the Machine has left Draining.
func TestACordonThatArrivesAfterItsRollWasCancelledIsRemoved(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineValidating, v1alpha1.MachineReady} {
		t.Run(string(phase), func(t *testing.T) {
			w := worldInPhase(t, phase)
			n := w.tenant.nodes["m0"]
			n.cordoned, n.ours = true, true
			for range 10 {
				w.reconcile(w.machines[0])
				w.sync()
			}
			if got := w.machines[0].live.Status.Phase; n.cordoned || n.ours || got != phase {
				t.Errorf("cordoned %t, by Ingot %t, phase %s: the node takes no pod", n.cordoned, n.ours, got)
			}
		})
	}
}

func TestACancelledRollEndsOnlyAfterItsCordonIsRemoved(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineDraining)
	w.setRevision(w.machines[0], "rev-1")
	w.sync()
	n := w.tenant.nodes["m0"]
	n.cordoned, n.ours = true, true
	f, _, _ := w.facts(w.machines[0])
	if d := Plan(f); d.Status.Phase != v1alpha1.MachineDraining || d.Action == nil || d.Action.Kind != Uncordon || d.Action.NodeUID != n.uid {
		t.Errorf("with the cordon: phase %s, action %+v", d.Status.Phase, d.Action)
	}
	n.cordoned, n.ours = false, false
	f, _, _ = w.facts(w.machines[0])
	if d := Plan(f); d.Status.Phase != v1alpha1.MachineValidating {
		t.Errorf("without the cordon: phase %s", d.Status.Phase)
	}
}

func TestACordonOfAnAdministratorStays(t *testing.T) {
	w := readyWorld(t, 1)
	w.tenant.nodes["m0"].kept, w.tenant.nodes["m0"].cordoned = true, true
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	readyAfter(w, 3)
	w.setRevision(w.machines[0], "rev-1")
	w.sync()
	expectRun(t, w, `
Validating
Ready`)
	if !w.tenant.nodes["m0"].cordoned {
		t.Error("the cordon of a person was lifted")
	}
}

func TestANodeThatAnAdministratorCordonedIsDrained(t *testing.T) {
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineDraining, v1alpha1.MachineReleasing} {
		w := readyWorld(t, 1)
		w.tenant.nodes["m0"].cordoned = true
		if w.setRevision(w.machines[0], "rev-2"); phase == v1alpha1.MachineReleasing {
			w.delete(w.machines[0])
		}
		w.sync()
		if recorded := runAndRecord(w); recorded[0] != string(phase) || recorded[1] != "  Evict" || len(w.broken) > 0 {
			t.Errorf("%s; broken %v", recorded, w.broken)
		}
	}
}

func TestARollThatIsCancelledTooLateInstallsTheSameRevisionAgain(t *testing.T) {
	w := readyWorld(t, 0)
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	m := w.machines[0]
	for range 10 {
		if m.live.Status.PowerOffRequestedAt != nil {
			break
		}
		w.reconcile(m)
		w.sync()
	}
	if !w.hosts[0].live.online {
		t.Fatal("the power-off was asked for before the status said so")
	}
	w.setRevision(m, "rev-1")
	w.sync()
	runAndRecord(w)
	if s := m.live.Status; s.Phase != v1alpha1.MachineReady || s.Attempt != 2 || s.Revision != "rev-1" || w.hosts[0].hw.disk.attempt != 2 || s.PowerOffRequestedAt != nil || len(w.broken) > 0 {
		t.Errorf("%s with attempt %d of %s, power-off requested at %v, broken %v", s.Phase, s.Attempt, s.Revision, s.PowerOffRequestedAt, w.broken)
	}
}

func TestPodsThatCannotBeEvictedAreReportedAndNeverDeleted(t *testing.T) {
	w := readyWorld(t, 1)
	w.tenant.nodes["m0"].kept = true
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	if reason, message := readyAfter(w, 10); reason != v1alpha1.ReasonEvicting || strings.Contains(message, "PodDisruptionBudget") {
		t.Errorf("in time: %s: %s", reason, message)
	}
	reason, message := readyAfter(w, 60)
	for _, part := range []string{"1 pod to leave", "PodDisruptionBudget team/budget", "ingot rollout undo h100", "should have ended by"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q: %s", part, message)
		}
	}
	if reason != v1alpha1.ReasonDrainTimedOut || w.tenant.nodes["m0"].pods != 1 || !w.hosts[0].live.online {
		t.Errorf("%s, host online %v", reason, w.hosts[0].live.online)
	}
	w.tenant.nodes["m0"].kept = false
	if reason, _ := readyAfter(w, 20); reason != v1alpha1.ReasonReady || w.machines[0].live.Status.Attempt != 2 {
		t.Errorf("the roll does not go on: %s", reason)
	}
}

func TestNoNodeIsDrainedForARevisionThatCannotBeInstalled(t *testing.T) {
	for _, c := range []struct {
		name, reason, says string
		spoil              func(*Facts)
	}{
		{"a revision that does not exist", v1alpha1.ReasonWaitingForNodeType, "it does not exist", func(f *Facts) { f.NextRevision = revisionOf("rev-gone") }},
		{"a kubelet that is too new", v1alpha1.ReasonVersionSkew, "newer than", func(f *Facts) { f.NextRevision = revisionOf("rev-new") }},
		{"GPUs by DRA in a tenant without it", v1alpha1.ReasonDRANotServed, "resource.k8s.io/v1", func(f *Facts) { f.NextRevision = revisionOf("rev-dra") }},
		{"settings of kubelet that the join cannot apply", v1alpha1.ReasonKubeletUnsupported, "spec.kubelet", func(f *Facts) { f.NextRevision.JoinProblem = "spec.kubelet" }},
		{"a join that is refused", v1alpha1.ReasonWaitingForTenant, "JoinUnsupported: spec.join", func(f *Facts) { f.Tenant.JoinProblem = "spec.join" }},
		{"a tenant that does not answer", v1alpha1.ReasonWaitingForTenant, "no answer", func(f *Facts) { f.Tenant.Reachable = false }},
		{"a host that a person keeps back", v1alpha1.ReasonHostPaused, "remove its annotation", func(f *Facts) { f.Host.Paused = true }},
		{"a host whose BMC is in error", "BMCUnreachable", "its BMC does not answer", func(f *Facts) {
			f.Host.Error, f.Host.ErrorReason = "power management error", "BMCUnreachable"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := readyWorld(t, 0)
			w.setRevision(w.machines[0], "rev-2")
			w.sync()
			f, _, _ := w.facts(w.machines[0])
			c.spoil(&f)
			d := Plan(f)
			u := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionUpToDate)
			if d.Status.Phase != v1alpha1.MachineReady || d.Action != nil || u.Status != metav1.ConditionFalse || u.Reason != c.reason ||
				!strings.Contains(u.Message, f.NextRevision.Name) || !strings.Contains(u.Message, c.says) || d.RequeueAfter == 0 {
				t.Errorf("phase %s, action %v, UpToDate %+v, again in %s", d.Status.Phase, d.Action, u, d.RequeueAfter)
			}
		})
	}
	w := readyWorld(t, 0)
	w.setRevision(w.machines[0], "rev-dra")
	w.sync()
	f, _, _ := w.facts(w.machines[0])
	if f.Tenant.ServesDRA = true; Plan(f).Status.Phase != v1alpha1.MachineDraining {
		t.Error("where the tenant serves DRA the roll does not begin")
	}
}

func TestADrainStopsWhileItsRevisionCannotBeInstalledOrItsTenantDoesNotAnswer(t *testing.T) {
	w := readyWorld(t, 1)
	w.setRevision(w.machines[0], "rev-2")
	w.sync()
	for w.machines[0].live.Status.Phase != v1alpha1.MachineDraining {
		w.reconcile(w.machines[0])
		w.sync()
	}
	f, _, _ := w.facts(w.machines[0])
	for _, c := range []struct {
		reason string
		spoil  func(*Facts)
	}{
		{v1alpha1.ReasonWaitingForNodeType, func(f *Facts) { f.NextRevision = revisionOf("rev-gone") }},
		{v1alpha1.ReasonWaitingForTenant, func(f *Facts) { f.Tenant.Reachable, f.Node = false, Node{} }},
		{v1alpha1.ReasonWaitingForTenant, func(f *Facts) { // after the power-off, and long after
			f.Tenant.Reachable, f.Node, f.Host.Online, f.Now = false, Node{}, false, f.Now.Add(24*time.Hour)
			f.Host.Record.Status.Power = &v1alpha1.HostPower{State: "Off", ObservedGeneration: f.Host.Generation}
			begun := metav1.NewMicroTime(w.now)
			f.Machine.Status.PowerOffRequestedAt = &begun
		}},
	} {
		g := f
		host := *f.Host
		g.Host = &host
		c.spoil(&g)
		d := Plan(g)
		if ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); d.Status.Phase != v1alpha1.MachineDraining || d.Action != nil || ready.Reason != c.reason {
			t.Errorf("phase %s, action %v, Ready %s: %s", d.Status.Phase, d.Action, ready.Reason, ready.Message)
		}
	}
}

func TestAHostWithoutARecordIsDeprovisionedBeforeItTakesTheNextImage(t *testing.T) {
	w := readyWorld(t, 0)
	w.setRevision(w.machines[0], "rev-3") // of the same image
	w.sync()
	w.reconcile(w.machines[0])
	w.sync()
	f, _, _ := w.facts(w.machines[0])
	f.Provider.HasRecords, f.Host.Record, f.Node, f.Secret = false, nil, Node{}, Secret{}
	f.Host.Online, f.Host.PoweredOn, f.Host.PowerOffRequested, f.Host.PowerOffOfRunning = false, false, true, true
	begun := metav1.NewMicroTime(w.now)
	f.Machine.Status.PowerOffRequestedAt = &begun
	for _, c := range []struct {
		state  metal3.ProvisioningState
		image  string
		action ActionKind
		phase  v1alpha1.MachinePhase
	}{
		{metal3.StateProvisioned, imageA.URL, Deprovision, v1alpha1.MachineDraining},
		{metal3.StateDeprovisioning, "", "", v1alpha1.MachineDraining},
		{metal3.StateAvailable, "", "", v1alpha1.MachineProvisioning},
	} {
		host := *f.Host
		host.State, host.ImageURL, host.InstalledURL = c.state, c.image, c.image
		f.Host = &host
		d := Plan(f)
		action := ActionKind("")
		if d.Action != nil {
			action = d.Action.Kind
		}
		if d.Status.Phase != c.phase || action != c.action {
			t.Errorf("a host that is %s with image %q: %s, %s", c.state, c.image, d.Status.Phase, action)
		}
	}
}

func TestTheNodeOfAnEarlierAttemptIsDeletedBeforeTheNextOneJoins(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineJoining)
	f, _, _ := w.facts(w.machines[0])
	f.Node = Node{Found: true, UID: "old", ProviderID: v1alpha1.ProviderID(f.Machine.UID, f.Machine.Status.Attempt-1)}
	if d := Plan(f); d.Action == nil || d.Action.Kind != DeleteNode || d.Action.NodeUID != "old" {
		t.Errorf("action %v", d.Action)
	}
	f.Node.ProviderID = "ingot://another/1"
	if d := Plan(f); d.Action != nil || !strings.Contains(d.Status.WaitingFor, "another/1") {
		t.Errorf("action %v, waits for %s", d.Action, d.Status.WaitingFor)
	}
}

func TestAMachineThatIsRolledOftenStillHasEvents(t *testing.T) {
	w := readyWorld(t, 0)
	for i := range 6 {
		w.setRevision(w.machines[0], fmt.Sprint("rev-", 2-i%2))
		w.sync()
		runAndRecord(w)
	}
	w.setRevision(w.machines[0], "rev-3")
	w.sync()
	f, _, _ := w.facts(w.machines[0])
	if d := Plan(f); len(f.Machine.Status.Timeline) < 20 || len(d.Events) != 1 || !strings.Contains(d.Events[0].Message, "rev-3") {
		t.Errorf("%d phases, events %v", len(f.Machine.Status.Timeline), d.Events)
	}
}

func TestANodeWhoseVerdictChangesAgainAndAgainCausesNoMoreEvents(t *testing.T) {
	w := readyWorld(t, 0)
	f, _, _ := w.facts(w.machines[0])
	lastEvent := 0
	for i := range 30 {
		f.Now = f.Now.Add(time.Minute)
		verdict := *f.Machine.Status.Verdict
		verdict.Admitted = i%2 == 1
		verdict.Result = map[bool]v1alpha1.CheckResult{true: v1alpha1.CheckPass, false: v1alpha1.CheckFail}[verdict.Admitted]
		f.Machine.Status.Verdict = &verdict
		d := Plan(f)
		if len(d.Events) > 0 {
			lastEvent = phasesSinceInstallation(d.Status.Timeline)
		}
		f.Machine.Status = d.Status
	}
	if lastEvent != maxPhasesWithEvents {
		t.Errorf("the last event is that of phase %d since the installation, want %d", lastEvent, maxPhasesWithEvents)
	}
	p := &planner{scope: scope{Facts: f}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
	p.d.Status.Phase, p.reason, p.message = v1alpha1.MachineReleasing, v1alpha1.ReasonEraseFailed, "the disk does not answer"
	p.finishStatus(f.Machine.Status)
	if len(p.d.Events) != 1 {
		t.Errorf("an erase that fails causes an event all the same: %v", p.d.Events)
	}
}

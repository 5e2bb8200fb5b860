package lifecycle

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

func TestTheStatusReportsHalvesOfTheImageAndNoSteps(t *testing.T) {
	wanted := &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", MachineUID: "m", MachineAttempt: 1}
	attempt := &v1alpha1.HostAttempt{Number: 4, State: "Running", TotalBytes: 100}
	f := Facts{Clock: watched.Clock{Now: time.Unix(1000, 0)}, Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1}},
		Host: &Host{Record: &HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: wanted, Attempt: attempt}}}}
	for i, c := range []struct {
		step   string
		done   int64
		writes bool
	}{
		{"PoweringOff", 0, true}, {"PoweringOn", 0, false}, {"Booting", 0, false}, {"Loading", 0, false}, {"Registered", 0, false},
		{"Writing", 10, true}, {"Writing", 49, false}, {"Writing", 50, true}, {"Writing", 99, false}, {"Verifying", 100, false}, {"Finishing", 100, false},
		{"Loading", 0, true}, {"Writing", 5, true},
	} {
		attempt.Step, attempt.DoneBytes = c.step, c.done
		p := &planner{scope: scope{Facts: f, guards: realGuards()}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
		p.applyResult(p.waitForInstallation())
		if changed := !equality.Semantic.DeepEqual(f.Machine.Status, p.d.Status); changed != c.writes {
			t.Errorf("report %d, %s at %d: %+v, expected a write: %t", i, c.step, c.done, p.d.Status, c.writes)
		}
		f.Machine.Status = p.d.Status
	}
	late := metav1.NewMicroTime(f.Now)
	f.Machine.Status.Deadline, attempt.Step = &late, "Booting"
	if r := (scope{Facts: f, guards: realGuards()}).waitForInstallation(); !strings.Contains(r.report.message, "attempt 4 is at Booting") {
		t.Errorf("a late Machine does not name the step: %s", r.report.message)
	}
}

func TestAStepThatTakesLongIsReportedWithItsDeadlineAndThatOfTheAttempt(t *testing.T) {
	began := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	at, stepDeadline := metav1.NewMicroTime(began), metav1.NewMicroTime(began.Add(20*time.Minute))
	wanted := &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", MachineUID: "m", MachineAttempt: 1, Deadline: metav1.NewMicroTime(began.Add(45 * time.Minute))}
	attempt := &v1alpha1.HostAttempt{Number: 4, State: "Running", Step: "Booting", StepAt: &at, StepDeadline: &stepDeadline}
	f := Facts{Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1}},
		Host: &Host{Name: "server-1", Record: &HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: wanted, Attempt: attempt}}}}
	message := func(after time.Duration) (string, time.Duration) {
		f.Now = began.Add(after)
		r := (scope{Facts: f, guards: realGuards()}).waitForInstallation()
		return r.report.message, r.requeueAfter
	}
	quick, again := message(10 * time.Second)
	if strings.Contains(quick, "Booting") || again != stepDelay-10*time.Second {
		t.Errorf("a quick step costs a write: %s, again after %s", quick, again)
	}
	slow, _ := message(stepDelay)
	if !strings.HasSuffix(slow, ": attempt 4 is at Booting since 11:00:00Z; this step ends by 11:20:00Z; the attempt ends by 11:45:00Z") {
		t.Errorf("message %q", slow)
	}
	if later, _ := message(10 * time.Minute); later != slow {
		t.Errorf("the message changes with the time: %q", later)
	}
	attempt.Step = "Registered"
	if later, _ := message(10 * time.Minute); later != quick {
		t.Errorf("the deadline of the agent moves with its progress, and is shown: %q", later)
	}
	attempt.Step, wanted.Operation = "Loading", "Erase"
	if step := (scope{Facts: f, guards: realGuards()}).slowStep(); step != ": Loading since 11:00:00Z; this step ends by 11:20:00Z; the attempt ends by 11:45:00Z" {
		t.Errorf("erase%s", step)
	}
	f.Now = began.Add(10 * time.Second)
	if step := (scope{Facts: f, guards: realGuards()}).slowStep(); step != "" {
		t.Errorf("a quick step of an erase costs a write%s", step)
	}
}

func TestAMachineThatJoinsNamesTheBMCOfItsServer(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineJoining)
	f, _, _ := w.facts(w.machines[0])
	f.Node, f.Host.Error, f.Host.ErrorReason = Node{}, "power management error", v1alpha1.ReasonBMCBusy
	c := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Reason != v1alpha1.ReasonBMCBusy || !strings.Contains(c.Message, "its BMC cannot serve requests now") || !strings.Contains(c.Message, "has not registered") {
		t.Errorf("Ready = %+v", c)
	}
}

// narrowGPUs has a host that its agent refused, because its GPUs have 8 of their 16 lanes.
func narrowGPUs(t *testing.T) Facts {
	t.Helper()
	w := worldInPhase(t, v1alpha1.MachineProvisioning)
	f, _, _ := w.facts(w.machines[0])
	f.Host.ImageURL, f.Host.Online = f.Revision.Image.URL, true
	f.NodeType.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
	f.Host.Error, f.Host.ErrorReason = "provisioning error", v1alpha1.ReasonHardwareInsufficient
	f.Host.Record.Spec = (scope{Facts: f, guards: realGuards()}).desiredRecord()
	f.Host.Record.Status.Wanted = &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", Outcome: v1alpha1.AttemptFailed, Hardware: f.NodeType.Hardware.DeepCopy()}
	f.Host.Record.Status.Inventory = &v1alpha1.HostInventory{GPUSource: v1alpha1.SourceAgent, GPUs: []v1alpha1.GPUInventory{{VendorID: "10de", DeviceID: "2330", Count: 8, LinkWidth: 8, MaxLinkWidth: 16}}}
	return f
}

func TestAMachineSaysWhatItsServerLacks(t *testing.T) {
	f := narrowGPUs(t)
	c := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionProvisioned)
	if c == nil || c.Reason != v1alpha1.ReasonHardwareInsufficient || strings.Count(c.Message, "expected that GPU 10de:2330 has its 16 PCIe lanes, seen 8") != 1 ||
		!strings.Contains(c.Message, "spec.hardware") || !strings.Contains(c.Message, "no disk was touched") {
		t.Errorf("%+v", c)
	}
}

func TestAHostThatWaitsLearnsThatLessIsRequired(t *testing.T) {
	f := narrowGPUs(t)
	if d := Plan(f); d.Action != nil && d.Action.Kind == WriteHostRecord {
		t.Errorf("the record is written although nothing has changed: %+v", d.Action.Record)
	}
	f.NodeType.Hardware = nil
	if d := Plan(f); d.Action == nil || d.Action.Kind != WriteHostRecord || d.Action.Record.Hardware != nil {
		t.Errorf("%+v, expected that the record gets the new requirement", d.Action)
	}
	f.NodeType.Found = false
	if d := Plan(f); d.Action != nil && d.Action.Kind == WriteHostRecord {
		t.Error("the record is written for a NodeType that is not there")
	}
}

func TestAnImageThatIsWrittenQuicklyIsNotReported(t *testing.T) {
	began := time.Unix(1000, 0)
	at := metav1.NewMicroTime(began)
	wanted := &v1alpha1.WantedAttempt{Number: 4, Operation: "Install", MachineUID: "m", MachineAttempt: 1}
	attempt := &v1alpha1.HostAttempt{Number: 4, State: "Running", Step: "Writing", StepAt: &at, TotalBytes: 100, DoneBytes: 100}
	for _, c := range []struct {
		after    time.Duration
		progress *v1alpha1.Progress
		reported bool
		requeue  time.Duration
	}{
		{time.Second, nil, false, progressDelay - time.Second},
		{progressDelay, nil, true, 0},
		{time.Second, &v1alpha1.Progress{Step: "Writing", DoneBytes: 10}, true, 0},
	} {
		f := Facts{Clock: watched.Clock{Now: began.Add(c.after)}, Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1, Progress: c.progress}},
			Host: &Host{Record: &HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: wanted, Attempt: attempt}}}}
		r := (scope{Facts: f, guards: realGuards()}).waitForInstallation()
		if reported := r.report.waitingFor == "the image to be written"; reported != c.reported || r.requeueAfter != c.requeue {
			t.Errorf("after %s with progress %v: reported %t, again after %s", c.after, c.progress, reported, r.requeueAfter)
		}
	}
}

func TestABootstrapTokenLastsUntilTheEndOfJoining(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineJoining)
	f, _, _ := w.facts(w.machines[0])
	f.Node = Node{} // it has not registered yet
	if f.Token == nil || f.Token.Expires.Before(f.Machine.Status.Deadline.Time) {
		t.Fatalf("a Machine that is Joining until %s has the token %+v", f.Machine.Status.Deadline, f.Token)
	}
	end := f.tokenEnd()
	for expires, renewed := range map[time.Time]bool{
		end.Add(time.Minute):    false,
		end:                     false,
		end.Add(-time.Second):   true,
		f.Now.Add(-time.Minute): true, // expired: the node may still need it
	} {
		f.Token = &Token{ID: f.Token.ID, Expires: expires}
		d := Plan(f)
		if isRenewed := d.Action != nil && d.Action.Kind == RenewToken && d.Action.TokenID == f.Token.ID && d.Action.Expires.Equal(end); isRenewed != renewed {
			t.Errorf("until %s: action %+v, expected a renewal: %t", expires, d.Action, renewed)
		}
	}
}

// TestAHostsTokenIsMadeForAnAgentThatWaits follows one installation: the token is made when the agent asks for its config drive, is the same
// when the agent boots again, and is another one for the next attempt of the host.
func TestAHostsTokenIsMadeForAnAgentThatWaits(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineProvisioning)
	h, m := w.hosts[0], w.machines[0]
	for range 20 {
		if w.reconcile(m); len(w.tenant.tokens)+len(w.secrets) > 0 {
			t.Fatal("there are a token or documents, and no agent waits")
		}
		w.sync()
		w.reconcileHost(h)
		w.sync()
	}
	if a := h.hw.attempt; a == nil || !h.live.online {
		t.Fatal("the installation was not requested")
	}
	first := waitAndFetch(t, w)
	h.hw.attempt.Step = hardware.StepBooting
	if again := waitAndFetch(t, w); again != first {
		t.Errorf("the second boot has token %s, the first %s", again, first)
	}
	h.hw.attempt.State, h.hw.attempt.Reason = hardware.AttemptFailed, hardware.ReasonDiskError
	for range 4 {
		w.reconcileHost(h)
		w.sync()
		w.reconcile(m)
		w.sync()
		if h.live.record.Wanted.Outcome == v1alpha1.AttemptFailed && len(w.tenant.tokens) > 0 {
			w.reconcile(m)
			break
		}
	}
	if len(w.tenant.tokens) > 0 && w.tenant.tokens[first] != nil && h.live.record.Wanted.Outcome == v1alpha1.AttemptFailed {
		t.Errorf("the token outlived the attempt that failed: %v", w.tenant.tokens)
	}
	h.live.retry = "again"
	h.live.rv++
	for range 10 {
		w.sync()
		w.reconcileHost(h)
	}
	if next := waitAndFetch(t, w); next == first || w.tenant.tokens[first] != nil {
		t.Errorf("after a failure the agent gets token %s again", next)
	}
}

// TestTheTokenOfANodeInstalledBeforeAnUpgradeIsKept plans with a claim Secret that does not say of which installation it is.
func TestTheTokenOfANodeInstalledBeforeAnUpgradeIsKept(t *testing.T) {
	unsaid := func(phase v1alpha1.MachinePhase) Facts {
		f := factsIn(t, phase)
		atStep(&f, "Registered", 0, 0, 0)
		f.Secret.HostAttempt, f.Node = 0, Node{}
		return f
	}
	joining := unsaid(v1alpha1.MachineJoining)
	joining.Machine.Status.Deadline = &metav1.MicroTime{Time: joining.Now.Add(joining.Timeouts.Joining)}
	joining.Host.State = metal3.StateProvisioned
	if d := Plan(joining); d.Action != nil {
		t.Errorf("its node can join no more: %+v", d.Action)
	}
	joining.Token = nil // a manager deleted it while the image was written
	if d := Plan(joining); d.Action == nil || d.Action.Kind != CreateToken || d.Action.TokenID != "token-1" {
		t.Errorf("it does not get the token back that its node has: %+v", d.Action)
	}
	for outcome, isCurrent := range map[v1alpha1.AttemptOutcome]bool{"": false, v1alpha1.AttemptFailed: false, v1alpha1.AttemptSucceeded: true} {
		f := unsaid(v1alpha1.MachineProvisioning)
		f.Host.Record.Status.Wanted.Outcome = outcome
		if got := f.hasClaimSecret(); got != isCurrent {
			t.Errorf("an installation that has %q: the claim Secret is its own: %t", outcome, got)
		}
	}
	if d := Plan(unsaid(v1alpha1.MachineProvisioning)); d.Action == nil || d.Action.Kind != DeleteToken {
		t.Errorf("an agent that waits gets no new token: %+v", d.Action)
	}
}

// TestATokenThatNoDocumentsHaveEndsWithItsAttempt plans after the manager made the token and ended before it wrote the claim Secret.
func TestATokenThatNoDocumentsHaveEndsWithItsAttempt(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineProvisioning)
	atStep(&f, "Registered", 0, 0, 0)
	f.Secret = Secret{}
	f.Host.Record.Status.Wanted.Outcome, f.Host.Record.Status.Attempt.State = v1alpha1.AttemptFailed, string(hardware.AttemptFailed)
	if !f.CanHaveToken() {
		t.Error("nobody looks for the token")
	}
	if d := Plan(f); d.Action == nil || d.Action.Kind != DeleteToken {
		t.Errorf("it is not deleted: %+v", d.Action)
	}
	atStep(&f, "Loading", 0, 0, 0)
	if f.CanHaveToken() {
		t.Error("the tenant's API server is asked before an agent has asked")
	}
}

// waitAndFetch runs the agent until it has its documents, and returns their token.
func waitAndFetch(t *testing.T, w *world) string {
	t.Helper()
	h := w.hosts[0]
	for range 20 {
		w.runServer(h)
		w.sync()
		if h.hw.attempt.Step == hardware.StepWriting {
			return h.hw.work.tokenID
		}
		w.reconcile(w.machines[0])
		w.sync()
	}
	t.Fatalf("the agent gets no documents: %s", w.state())
	return ""
}

func TestAServerThatDoesNotLoadTheInstallerIsNamedOnItsMachine(t *testing.T) {
	for _, finding := range []v1alpha1.HostFindingReason{v1alpha1.FindingBootLoadFailed, v1alpha1.FindingKernelNotRequested, v1alpha1.FindingNoAgentRegistered} {
		for step, says := range map[string]bool{"Loading": true, "Registered": false} {
			f := factsIn(t, v1alpha1.MachineProvisioning)
			f.Host.Record.Spec = scope{Facts: f, guards: realGuards()}.desiredRecord()
			atStep(&f, step, 0, 0, 0)
			f.Host.Record.Status.Attempt.Findings = []v1alpha1.HostFinding{{Reason: v1alpha1.FindingServerDiffers, Message: "MARK"}, {Reason: finding, Message: "MARK", Count: 1}}
			c := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionProvisioned)
			if c == nil || (c.Reason == string(finding)) != says || strings.Contains(c.Message, "MARK") {
				t.Errorf("%s at %s: %+v", finding, step, c)
			}
		}
	}
}

func TestAMachineThatDoesNotJoinSaysWhichUnitsTellWhy(t *testing.T) {
	for method, want := range map[v1alpha1.JoinMethod]string{
		v1alpha1.JoinTLSBootstrap: "journalctl -u kubelet and", v1alpha1.JoinKubeadm: "journalctl -u ingot-kubeadm-join, -u kubelet",
		v1alpha1.JoinVCluster: "journalctl -u ingot-kubeadm-join, -u kubelet", v1alpha1.JoinScript: "journalctl -u ingot-join-script, where the script of the TenantCluster runs",
	} {
		f := factsIn(t, v1alpha1.MachineJoining)
		f.Node, f.Tenant.Join = Node{}, method
		c := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionJoined)
		if c == nil || !strings.Contains(c.Message, want) {
			t.Errorf("%s: %+v", method, c)
		}
	}
}

func TestAMachineThatWaitsForItsTurnShowsItsPlace(t *testing.T) {
	queue := &v1alpha1.HostQueue{Operation: string(hardware.OpInstall), Place: 7}
	record := &HostRecord{Status: v1alpha1.HostRecordStatus{Queue: queue, Wanted: &v1alpha1.WantedAttempt{Number: 1, Operation: "Inspect", Outcome: v1alpha1.AttemptSucceeded}}}
	f := Facts{Clock: watched.Clock{Now: time.Unix(1000, 0)}, Machine: Machine{Name: "a", UID: "m", Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning, Attempt: 1}},
		Host: &Host{Name: "server-1", State: metal3.StateProvisioning, Record: record}}
	late := metav1.NewMicroTime(f.Now.Add(-time.Hour))
	f.Machine.Status.Deadline = &late
	p := &planner{scope: scope{Facts: f, guards: realGuards()}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
	p.applyResult(p.waitForInstallation())
	c := meta.FindStatusCondition(p.d.Status.Conditions, v1alpha1.ConditionProvisioned)
	if c == nil || c.Reason != v1alpha1.ReasonQueued || !strings.Contains(c.Message, "has the place 7 in the queue") || p.d.Status.WaitingFor != "its turn, place 7" {
		t.Errorf("waiting for %q, %+v", p.d.Status.WaitingFor, c)
	}
	queue.Place = 1
	if r := p.waitForInstallation(); r.report.reason != v1alpha1.ReasonQueued || r.report.waitingFor != "its turn, place 1" {
		t.Errorf("it is the next: %+v", r.report)
	}
	queue.Operation = string(hardware.OpErase)
	if r := p.waitForInstallation(); r.report.reason == v1alpha1.ReasonQueued {
		t.Errorf("it waits for an erase: %+v", r.report)
	}
	if step := p.slowStep(); !strings.HasPrefix(step, ": it has the place 1 in the queue") {
		t.Errorf("erase%s", step)
	}
}

func TestAClaimSecretIsLookedForOnceItsInstallationHasBegun(t *testing.T) {
	installing := factsIn(t, v1alpha1.MachineProvisioning)
	installing.Host.Record.Status.Wanted = &v1alpha1.WantedAttempt{
		Operation: string(hardware.OpInstall), MachineUID: installing.Machine.UID, MachineAttempt: installing.Machine.Status.Attempt,
	}
	prepared := factsIn(t, v1alpha1.MachineProvisioning)
	prepared.Host.Record.Status.Wanted = nil
	rolled := factsIn(t, v1alpha1.MachineProvisioning)
	rolled.Host.Record.Status.Wanted, rolled.Machine.Status.Attempt = nil, 2
	served := factsIn(t, v1alpha1.MachineProvisioning)
	served.Host.Record, served.Provider.HasRecords = nil, false
	for name, c := range map[string]struct {
		facts Facts
		want  bool
	}{
		"a host that is prepared for its first installation":     {prepared, false},
		"an installation that has begun":                         {installing, true},
		"a host whose earlier installation may have left one":    {rolled, true},
		"a host of a baremetal-operator, which takes it at once": {served, true},
		"a node that joins":                                      {factsIn(t, v1alpha1.MachineJoining), true},
		"a Machine that is released":                             {factsIn(t, v1alpha1.MachineReleasing), true},
	} {
		if got := c.facts.CanHaveClaimSecret(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

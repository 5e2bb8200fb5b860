package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var update = flag.Bool("update", false, "render lifecycle.md again")

// diagram renders the life as a Mermaid state diagram.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> Pending : created\n")
	for _, e := range edges {
		if e.to == v1alpha1.MachineReleasing {
			continue
		}
		to := string(e.to)
		if e.to == gone {
			to = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s : %s\n", e.from, to, e.when)
	}
	for _, e := range edges {
		if e.to == v1alpha1.MachineReleasing {
			fmt.Fprintf(&b, "    %s --> %s : %s\n", e.from, e.to, e.when)
		}
	}
	return b.String()
}

// stepLists renders what is done in each phase as Markdown.
func stepLists() string {
	var b strings.Builder
	for _, phase := range append(orderedPhases(), gone) {
		title := string(phase)
		if phase == gone {
			title = "Releasing, when no host is this Machine's and its token is gone"
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		writeSteps(&b, "", phases[phase])
	}
	return b.String()
}

func writeSteps(b *strings.Builder, indent string, steps []step) {
	for i, s := range steps {
		if s.run != nil {
			fmt.Fprintf(b, "%s%d. %s\n", indent, i+1, s.goal)
			continue
		}
		fmt.Fprintf(b, "%s%d. while %s:\n", indent, i+1, s.goal)
		writeSteps(b, indent+"   ", s.group)
	}
}

// orderedPhases are all phases, in the order in which the edges have them.
func orderedPhases() []v1alpha1.MachinePhase {
	var phases []v1alpha1.MachinePhase
	for _, e := range edges {
		if !slices.Contains(phases, e.from) {
			phases = append(phases, e.from)
		}
	}
	return phases
}

const document = `# The life of a Machine

Rendered from phases.go; %[1]sgo test ./controllers/plan/lifecycle -update%[1]s renders it again.

%[1]s%[1]s%[1]smermaid
%[2]s%[1]s%[1]s%[1]s

## What is done in each phase

While the condition of none of its edges holds, the steps of a phase run in this order, up to the first that has something to do or to wait
for. Each line says what is true when the step has nothing to do.
%[3]s`

func TestTheCheckedInDocumentIsRenderedFromTheTables(t *testing.T) {
	want := fmt.Sprintf(document, "`", diagram(), stepLists())
	if *update {
		if err := os.WriteFile("lifecycle.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("lifecycle.md is stale: run go test ./controllers/plan/lifecycle -update")
	}
}

func TestEveryPhaseCanBeLeftByDeletion(t *testing.T) {
	for phase := range allPhases() {
		found := phase == v1alpha1.MachineReleasing
		for _, e := range edges {
			found = found || e.from == phase && e.to == v1alpha1.MachineReleasing
		}
		if !found {
			t.Errorf("no edge leads from %s to Releasing", phase)
		}
	}
}

func allPhases() map[v1alpha1.MachinePhase]bool {
	all := map[v1alpha1.MachinePhase]bool{}
	for _, e := range edges {
		all[e.from] = true
	}
	return all
}

// worldInPhase runs a world without faults and with one Machine and one host until the Machine is in the phase.
func worldInPhase(t *testing.T, phase v1alpha1.MachinePhase) *world {
	t.Helper()
	w := newWorld(1, 1, 1, realGuards())
	m := w.machines[0]
	for range 400 {
		if m.live.Status.Phase == phase {
			return w.recordInstallation(m)
		}
		if phase == v1alpha1.MachineDraining && m.live.Status.Phase == v1alpha1.MachineReady && m.live.Spec.Revision == "" {
			w.setRevision(m, "rev-2")
		}
		w.reconcile(m)
		w.sync()
		if m.live.Status.Phase == phase {
			return w.recordInstallation(m)
		}
		w.judge(m)
		w.reconcileHost(w.hosts[0])
		w.sync()
		w.runServer(w.hosts[0])
		w.now = w.now.Add(10 * time.Second)
	}
	t.Fatalf("%s is not reached: %s", phase, w.state())
	return nil
}

// recordInstallation writes what RecordInstallation does, where something is installed.
func (w *world) recordInstallation(m *machine) *world {
	switch m.live.Status.Phase {
	case v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining:
		f, h, _ := w.facts(m)
		h.live.installation = scope{Facts: f}.installation(v1alpha1.InstallationComplete)
		h.cached.installation = h.live.installation
	}
	return w
}

func TestAMachineThatIsDeletedInAnyPhaseIsRemovedWithEverythingItCreated(t *testing.T) {
	for phase := range allPhases() {
		t.Run(string(phase), func(t *testing.T) {
			if phase == v1alpha1.MachineReleasing {
				return // reached by all the others
			}
			w := worldInPhase(t, phase)
			w.delete(w.machines[0])
			w.sync()
			for range 60 {
				w.turn()
			}
			h := w.hosts[0]
			if !w.machines[0].gone || h.live.consumer != "" || !isClean(h.live) || len(w.tenant.nodes) > 0 || len(w.tenant.tokens) > 0 || len(w.secrets) > 0 || len(w.broken) > 0 {
				t.Errorf("something is left: nodes %v, tokens %v, secrets %v, broken %v%s", w.tenant.nodes, w.tenant.tokens, w.secrets, w.broken, w.state())
			}
		})
	}
}

// ready is the condition Ready after the calm world was left alone for a time.
func readyAfter(w *world, turns int) (reason, message string) {
	for range turns {
		w.turn()
	}
	c := meta.FindStatusCondition(w.machines[0].live.Status.Conditions, v1alpha1.ConditionReady)
	return c.Reason, c.Message
}

func TestAfterADeadlineTheReasonNamesTheFailedStepAndTheMachineContinues(t *testing.T) {
	t.Run("a host that does not install", func(t *testing.T) {
		w := worldInPhase(t, v1alpha1.MachineProvisioning)
		w.hosts[0].live.paused = true
		if reason, message := readyAfter(w, 70); reason != v1alpha1.ReasonHostPaused || !strings.Contains(message, "remove its annotation") {
			t.Errorf("%s: %s", reason, message)
		}
		if len(w.tenant.tokens) > 0 && w.tenant.tokens["token-2"] != nil && w.tenant.tokens["token-2"].expires.After(w.now) {
			t.Error("the token outlived the deadline")
		}
		w.hosts[0].live.paused = false
		if reason, message := readyAfter(w, 30); reason != v1alpha1.ReasonReady {
			t.Errorf("does not go on: %s: %s", reason, message)
		}
	})
	t.Run("a node that does not join", func(t *testing.T) {
		w := worldInPhase(t, v1alpha1.MachineJoining)
		w.hosts[0].hw.disk.tokenID, w.hosts[0].hw.credential = "another", false
		delete(w.tenant.nodes, "m0")
		reason, message := readyAfter(w, 25)
		if reason != v1alpha1.ReasonJoinTimedOut || !strings.Contains(message, "kubelet") || !strings.Contains(message, "delete this Machine") {
			t.Errorf("%s: %s", reason, message)
		}
		if len(w.tenant.tokens) > 0 {
			t.Error("the token outlived the deadline")
		}
	})
	t.Run("a node that fails its checks", func(t *testing.T) {
		w := worldInPhase(t, v1alpha1.MachineValidating)
		w.machines[0].live.Status.NodeRef = nil // the judge stays away
		w.now = w.now.Add(16 * time.Minute)
		w.reconcile(w.machines[0])
		if c := meta.FindStatusCondition(w.machines[0].live.Status.Conditions, v1alpha1.ConditionReady); c.Reason != v1alpha1.ReasonValidationTimedOut {
			t.Errorf("%s: %s", c.Reason, c.Message)
		}
	})
}

func TestAnUnreachableTenantDelaysAReleaseByTheDrainTimeoutOnly(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineReady)
	w.tenant.reachable = false
	w.delete(w.machines[0])
	w.sync()
	if reason, message := readyAfter(w, 20); reason != v1alpha1.ReasonEvicting || !strings.Contains(message, "goes on without it") {
		t.Errorf("%s: %s", reason, message)
	}
	f, _, _ := w.facts(w.machines[0])
	f.Tenant.Found = false
	if waits := Plan(f).Status.WaitingFor; waits != "the tenant's API server" {
		t.Errorf("waits for %s", waits)
	}
	if c := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionReady); strings.Contains(c.Message, "delete this Machine") {
		t.Errorf("a Machine that is deleted says: %s", c.Message)
	}
	for range 30 {
		w.turn()
	}
	if !w.machines[0].gone || !w.machines[0].remains || w.hosts[0].live.consumer != "" {
		t.Errorf("not released, or nobody was told that the Node remains%s", w.state())
	}
}

func TestALateReleaseSaysHowToAbandonTheServer(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineReady)
	w.hosts[0].live.paused = true
	w.delete(w.machines[0])
	w.sync()
	if _, message := readyAfter(w, 20); strings.Contains(message, "give the server up") {
		t.Errorf("too soon: %s", message)
	}
	w.now = w.now.Add(2 * time.Hour)
	if reason, message := readyAfter(w, 2); reason != v1alpha1.ReasonHostPaused || !strings.Contains(message, "baremetalhost.metal3.io/detached and delete it, which asks for the verb abandon") {
		t.Errorf("%s: %s", reason, message)
	}
}

func TestAPendingMachineReportsWhatItWaitsFor(t *testing.T) {
	w := newWorld(1, 1, 1, realGuards())
	w.reconcile(w.machines[0])
	w.sync()
	good, _, _ := w.facts(w.machines[0])
	for _, c := range []struct {
		name   string
		spoil  func(*Facts)
		reason string
	}{
		{"no NodeType", func(f *Facts) { f.NodeType.Found = false }, v1alpha1.ReasonWaitingForNodeType},
		{"a NodeType that is not Ready", func(f *Facts) { f.NodeType.Ready = false }, v1alpha1.ReasonWaitingForNodeType},
		{"no revision", func(f *Facts) { f.Revision.Name = "" }, v1alpha1.ReasonWaitingForNodeType},
		{"a revision without image", func(f *Facts) { f.Revision.Problem = "OSImage x does not exist" }, v1alpha1.ReasonWaitingForNodeType},
		{"no provider", func(f *Facts) { f.Provider.Found = false }, v1alpha1.ReasonWaitingForNodeType},
		{"no tenant", func(f *Facts) { f.Tenant.Found = false }, v1alpha1.ReasonWaitingForTenant},
		{"a tenant that is being deleted", func(f *Facts) { f.Tenant.Deleting = true }, v1alpha1.ReasonWaitingForTenant},
		{"a silent tenant", func(f *Facts) { f.Tenant.Reachable = false }, v1alpha1.ReasonWaitingForTenant},
		{"a join that is refused", func(f *Facts) { f.Tenant.JoinProblem = "spec.join" }, v1alpha1.ReasonWaitingForTenant},
		{"a kubelet that is too new", func(f *Facts) { f.Revision.Kubelet = "1.38.0" }, v1alpha1.ReasonVersionSkew},
		{"a join that cannot apply the settings of kubelet", func(f *Facts) { f.Revision.JoinProblem = "spec.kubelet" }, v1alpha1.ReasonKubeletUnsupported},
		{"a tenant without DRA", func(f *Facts) { f.Revision.DRA = true }, v1alpha1.ReasonDRANotServed},
		{"no host", func(f *Facts) { f.Placement = Placement{Reason: v1alpha1.ReasonNoHostAvailable, Message: "none"} }, v1alpha1.ReasonNoHostAvailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.spoil(&f)
			d := Plan(f)
			claimed := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClaimed)
			if d.Status.Phase != v1alpha1.MachinePending || d.Action != nil || claimed == nil || claimed.Reason != c.reason || d.Status.WaitingFor == "" {
				t.Errorf("phase %s, action %v, Claimed %v, waits for %q", d.Status.Phase, d.Action, claimed, d.Status.WaitingFor)
			}
		})
	}
	if d := Plan(good); d.Status.Phase != v1alpha1.MachineClaiming {
		t.Errorf("with everything in place the phase is %s", d.Status.Phase)
	}
}

func TestThePowerOffIsConfirmedByTheRecordAlthoughTheProviderIsDeleted(t *testing.T) {
	w := worldInPhase(t, v1alpha1.MachineReady)
	f, _, _ := w.facts(w.machines[0])
	f.Provider, f.Host.Online, f.Host.PoweredOn = Provider{}, false, false
	f.Host.Record.Status.Power = &v1alpha1.HostPower{State: "Off", ObservedGeneration: f.Host.Generation - 1}
	if f.isPoweredOff() {
		t.Error("a state that was read before the power-off was asked for counts as its confirmation")
	}
	f.Host.Record.Status.Power.ObservedGeneration++
	if !f.isPoweredOff() {
		t.Error("the confirmed power-off does not count")
	}
}

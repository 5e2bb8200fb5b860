package drain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/drain"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// site is a namespace with a Machine that is Ready on host metal/server-04.
type site struct {
	t          *testing.T
	namespace  string
	kubeconfig string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, namespace: server.Namespace(t), kubeconfig: server.KubeconfigFile(t)}
	server.Create(t, s.machine("training", &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-04"}))
	s.report("training", v1alpha1.MachineReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "the node is as promised and admits pods", nil)
	return s
}

func (s *site) machine(name string, host *v1alpha1.NamespacedReference) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}, Status: v1alpha1.MachineStatus{HostRef: host}}
}

func (s *site) get(name string) *v1alpha1.Machine {
	s.t.Helper()
	m := &v1alpha1.Machine{}
	if err := server.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// report writes what the machine controller says of the newest spec.
func (s *site) report(name string, phase v1alpha1.MachinePhase, ready metav1.ConditionStatus, reason, message string, off *v1alpha1.MachinePowerOff) {
	s.t.Helper()
	m := s.get(name)
	m.Status.Phase, m.Status.PowerOff = phase, off
	m.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: message, ObservedGeneration: m.Generation, LastTransitionTime: metav1.Now(),
	}}
	if err := server.Client.Status().Update(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) run(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), drain.Command(), append(args, "--kubeconfig", s.kubeconfig), &out, &err)
	return status, out.String(), err.String()
}

// answer is what a command that ran beside the test came to.
type answer struct {
	status      int
	out, stderr string
}

func (s *site) begin(args ...string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		status, out, stderr := s.run(args...)
		done <- answer{status, out, stderr}
	}()
	return done
}

func (s *site) awaitPowerOff(off bool) {
	s.t.Helper()
	management.Eventually(s.t, "spec.powerOff is set or cleared", func() bool { return s.get("training").Spec.PowerOff == off })
}

func TestDrainWaitsUntilTheServerIsOffAndUndoUntilTheMachineIsReady(t *testing.T) {
	s := newSite(t)
	off := &v1alpha1.MachinePowerOff{RequestedAt: metav1.NowMicro()}
	// Another power-off was undone a moment ago, and the status does not say so yet.
	s.report("training", v1alpha1.MachineDraining, metav1.ConditionFalse, v1alpha1.ReasonPoweredOff, "the power-off before", off)
	drained := s.begin("training", "--power-off", "-n", s.namespace)
	s.awaitPowerOff(true)
	s.report("training", v1alpha1.MachineDraining, metav1.ConditionFalse, v1alpha1.ReasonPoweredOff, "the server of host metal/server-04 is off", off)
	got := <-drained
	if got.status != cli.ExitOK || !strings.HasSuffix(got.out, "the server of host metal/server-04 is off\n") || strings.Contains(got.out, "the power-off before\n") {
		t.Errorf("%+v", got)
	}

	back := s.begin("training", "--undo", "-n", s.namespace)
	s.awaitPowerOff(false)
	s.report("training", v1alpha1.MachineReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "the node is as promised and admits pods", nil)
	if got := <-back; got.status != cli.ExitOK || !strings.HasSuffix(got.out, "Machine "+s.namespace+"/training is Ready: its node takes pods\n") {
		t.Errorf("%+v", got)
	}
	if status, out, stderr := s.run(s.namespace+"/training", "--undo"); status != cli.ExitOK || !strings.Contains(out, "nothing to undo") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

func TestDrainEndsWhenSomebodyElseCallsItOff(t *testing.T) {
	s := newSite(t)
	drained := s.begin("training", "--power-off", "-n", s.namespace)
	s.awaitPowerOff(true)
	if status, out, stderr := s.run("training", "--undo", "--wait=false", "-n", s.namespace, "-o", "json"); status != cli.ExitOK {
		t.Errorf("status %d: %s%s", status, out, stderr)
	} else {
		var result struct{ Result string }
		if err := json.Unmarshal([]byte(out), &result); err != nil || !strings.Contains(result.Result, "ingot why -n "+s.namespace+" training") {
			t.Errorf("%v in %s", err, out)
		}
	}
	if got := <-drained; got.status != cli.ExitFailed || !strings.Contains(got.stderr, "somebody else has changed spec.powerOff") {
		t.Errorf("%+v", got)
	}
}

func TestDrainThatIsNotDoneInTimeSaysWhatItWaitedFor(t *testing.T) {
	s := newSite(t)
	drained := s.begin("training", "--power-off", "--timeout", "3s", "-n", s.namespace)
	s.awaitPowerOff(true)
	s.report("training", v1alpha1.MachineDraining, metav1.ConditionFalse, v1alpha1.ReasonDrainTimedOut, "1 pod to leave: team/a", nil)
	if got := <-drained; got.status != cli.ExitFailed || !strings.Contains(got.stderr, "the manager goes on: Draining  DrainTimedOut: 1 pod to leave: team/a") ||
		!strings.Contains(got.stderr, "do not touch the server before its reason is PoweredOff") || !s.get("training").Spec.PowerOff {
		t.Errorf("%+v", got)
	}
}

func TestDrainRefusesWhatItCannotDo(t *testing.T) {
	s := newSite(t)
	server.Create(t, s.machine("waiting", nil))
	leaving := s.machine("leaving", &v1alpha1.NamespacedReference{Namespace: "metal", Name: "server-05"})
	leaving.Finalizers = []string{v1alpha1.MachineFinalizer}
	server.Create(t, leaving)
	if err := server.Client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"training"}, cli.ExitUsage, "expected either --power-off or --undo"},
		{[]string{"training", "--power-off", "--undo"}, cli.ExitUsage, "expected either --power-off or --undo"},
		{[]string{"training", "--undo", "-o", "yaml"}, cli.ExitUsage, "-o yaml: expected text or json"},
		{[]string{"--undo"}, cli.ExitUsage, "expected 1 argument, seen none"},
		{[]string{"nothing", "--power-off"}, cli.ExitFailed, "there is no Machine nothing"},
		{[]string{"waiting", "--power-off"}, cli.ExitFailed, "there is no server to power off"},
		{[]string{"leaving", "--power-off"}, cli.ExitFailed, "is being deleted"},
	} {
		if status, _, stderr := s.run(append(c.args, "-n", s.namespace)...); status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr)
		}
	}
	if s.get("waiting").Spec.PowerOff {
		t.Error("a refused command has changed the Machine")
	}
	// The administrator of this test can leave no finalizer behind.
	leaving = s.get("leaving")
	leaving.Finalizers = nil
	if err := server.Client.Update(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
}

package rollout_test

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
	"github.com/ingot-dev/ingot/cmd/ingot/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/revision"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// site is a NodeType whose rollout to its second image has stopped.
type site struct {
	t          *testing.T
	name       string
	kubeconfig string
	rollout    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, name: server.Namespace(t), kubeconfig: server.KubeconfigFile(t)}
	meta := metav1.ObjectMeta{Name: s.name}
	image := func(suffix string) *v1alpha1.OSImage {
		digest := "sha256:" + strings.Repeat(suffix, 64)
		return &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + suffix}, Spec: v1alpha1.OSImageSpec{
			URL: "http://127.0.0.1/image.raw", Checksum: digest, Format: v1alpha1.FormatRaw,
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
		}, Status: v1alpha1.OSImageStatus{Checksum: digest}}
	}
	provider := &v1alpha1.NodeProvider{ObjectMeta: meta, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: "metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1"}},
	}}
	nodeType := &v1alpha1.NodeType{ObjectMeta: meta, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: s.name}, OSImageRef: v1alpha1.LocalReference{Name: s.name + "-1"}, UserData: "#cloud-config\n",
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}},
	}}
	first := image("1")
	inputs := revision.Inputs{NodeType: nodeType, Provider: provider, Image: first}
	stable, err := revision.Build(inputs)
	if err != nil {
		t.Fatal(err)
	}
	own, err := revision.OwnDigest(inputs)
	if err != nil {
		t.Fatal(err)
	}
	nodeType.Spec.OSImageRef.Name, nodeType.Spec.UserData = s.name+"-2", "#cloud-config\npackages: [x]\n"
	nodeType.Status = v1alpha1.NodeTypeStatus{StableRevision: s.name + "-one", StableRendering: s.name + "-one-a", TargetRevision: s.name + "-two", TargetRendering: s.name + "-two-a"}
	s.rollout = s.name + "-two-3"
	server.Create(t, first, image("2"), provider, nodeType,
		&v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-one-a"}, Spec: v1alpha1.NodeTypeRenderingSpec{
			RevisionRef: v1alpha1.LocalReference{Name: s.name + "-one"}, Encoding: v1alpha1.RenderingEncoding,
		}},
		&v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-one", Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: stable},
		&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: s.rollout}, Spec: v1alpha1.RolloutSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: s.name}, From: s.name + "-one", To: s.name + "-two",
		}, Status: v1alpha1.RolloutStatus{
			Phase: v1alpha1.RolloutStopped, StoppedBy: "research/training-1: ValidationTimedOut", Targets: v1alpha1.RolloutTargets{Total: 4, Failed: 1},
			History: []v1alpha1.RolloutEntry{{At: metav1.NowMicro(), Message: "the canary failed"}},
		}},
	)
	return s
}

func (s *site) run(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), rollout.Command(), append(args, "--kubeconfig", s.kubeconfig), &out, &err)
	return status, out.String(), err.String()
}

func (s *site) get() *v1alpha1.Rollout {
	s.t.Helper()
	r := &v1alpha1.Rollout{}
	if err := server.Client.Get(s.t.Context(), client.ObjectKey{Name: s.rollout}, r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) setPhase(phase v1alpha1.RolloutPhase) {
	s.t.Helper()
	r := s.get()
	r.Status.Phase = phase
	if err := server.Client.Status().Update(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

func TestStatusTellsWhyARolloutStoppedAndWhatToDo(t *testing.T) {
	s := newSite(t)
	status, out, stderr := s.run("status", s.name)
	for _, want := range []string{"changed by rollout.test at 20", "Stopped, 0 of 4 done, 0 under way, 1 failed", "stopped by research/training-1: ValidationTimedOut", "ingot rollout undo " + s.name, "the canary failed"} {
		if status != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("status %d, %s: %q is missing in\n%s", status, stderr, want, out)
		}
	}
	if _, out, _ := s.run("status"); !strings.Contains(out, "NODETYPE") || !strings.Contains(out, s.rollout) {
		t.Errorf("the list is\n%s", out)
	}
	_, out, _ = s.run("status", s.name, "-o", "json")
	var all []v1alpha1.Rollout
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Name != s.rollout {
		t.Errorf("%v in %s", err, out)
	}
}

func TestPauseAndResume(t *testing.T) {
	s := newSite(t)
	s.setPhase(v1alpha1.RolloutRolling)
	if status, out, stderr := s.run("pause", s.name); status != cli.ExitOK || !s.get().Spec.Paused {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	if status, out, stderr := s.run("resume", s.name); status != cli.ExitOK || s.get().Spec.Paused || !strings.Contains(out, "goes on") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	if _, out, _ := s.run("resume", s.name); !strings.Contains(out, "nothing to resume") {
		t.Errorf("resuming what goes on says %q", out)
	}
	s.setPhase(v1alpha1.RolloutDone)
	if status, _, stderr := s.run("pause", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has no rollout under way: the last one, "+s.rollout+", is Done") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestAStoppedRolloutIsResumedByAPauseThatEnds(t *testing.T) {
	s := newSite(t)
	done := make(chan string, 1)
	go func() {
		_, out, stderr := s.run("resume", s.name)
		done <- out + stderr
	}()
	// What the controller does when it sees the pause.
	management.Eventually(t, "the rollout is paused", func() bool { return s.get().Spec.Paused })
	s.setPhase(v1alpha1.RolloutPaused)
	if said := <-done; !strings.Contains(said, "goes on") || s.get().Spec.Paused {
		t.Errorf("said %q, paused: %v", said, s.get().Spec.Paused)
	}
}

func TestUndoSetsTheNodeTypeBackToItsStableRevision(t *testing.T) {
	s := newSite(t)
	status, out, stderr := s.run("undo", s.name)
	nodeType := &v1alpha1.NodeType{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: s.name}, nodeType); err != nil {
		t.Fatal(err)
	}
	if status != cli.ExitOK || nodeType.Spec.OSImageRef.Name != s.name+"-1" || nodeType.Spec.UserData != "#cloud-config\n" || nodeType.Spec.Rendering != s.name+"-one-a" {
		t.Errorf("status %d: %s%s; image %s", status, out, stderr, nodeType.Spec.OSImageRef.Name)
	}
	nodeType.Status.TargetRevision, nodeType.Status.TargetRendering = nodeType.Status.StableRevision, nodeType.Status.StableRendering
	if err := server.Client.Status().Update(t.Context(), nodeType); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := s.run("undo", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has nothing to undo") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestWrongCommandLines(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"undo"}, cli.ExitUsage, "expected 1 argument, seen none"},
		{[]string{"status", "-o", "yaml"}, cli.ExitUsage, "-o yaml: expected text or json"},
		{[]string{"undo", "nothing"}, cli.ExitFailed, `read NodeType nothing`},
		{[]string{"pause", "nothing"}, cli.ExitFailed, "has had no rollout"},
		{[]string{"halt"}, cli.ExitUsage, "unknown"},
	} {
		if status, _, stderr := s.run(c.args...); status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr)
		}
	}
}

// judged sets what the NodeType's controller says of its rendering.
func (s *site) judged(change func(*v1alpha1.NodeTypeStatus)) {
	s.t.Helper()
	nodeType := s.nodeType()
	nodeType.Status.ObservedGeneration = nodeType.Generation
	change(&nodeType.Status)
	if err := server.Client.Status().Update(s.t.Context(), nodeType); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) nodeType() *v1alpha1.NodeType {
	s.t.Helper()
	nodeType := &v1alpha1.NodeType{}
	if err := server.Client.Get(s.t.Context(), client.ObjectKey{Name: s.name}, nodeType); err != nil {
		s.t.Fatal(err)
	}
	return nodeType
}

func TestRefreshAsksForTheManagersRenderingAndUndoForTheOneBefore(t *testing.T) {
	s := newSite(t)
	one := v1alpha1.RenderedRevision{Revision: s.name + "-one", Rendering: s.name + "-one-a"}
	s.judged(func(n *v1alpha1.NodeTypeStatus) { n.TargetRevision, n.TargetRendering = one.Revision, one.Rendering })
	if status, _, stderr := s.run("refresh", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "is ingot-manager running?") {
		t.Errorf("before anybody judged it: status %d: %s", status, stderr)
	}
	current := metav1.Condition{
		Type: v1alpha1.ConditionRenderingCurrent, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRenderingCurrent, Message: "the same", LastTransitionTime: metav1.Now(),
	}
	s.judged(func(n *v1alpha1.NodeTypeStatus) { n.Conditions = []metav1.Condition{current} })
	if status, _, stderr := s.run("refresh", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has nothing to refresh: the same") {
		t.Errorf("when it is current: status %d: %s", status, stderr)
	}
	s.judged(func(n *v1alpha1.NodeTypeStatus) { n.RefreshedRendering, n.ObservedGeneration = s.name+"-one-b", 0 })
	if status, _, stderr := s.run("refresh", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has not looked at it since") {
		t.Errorf("after a change that nobody has looked at: status %d: %s", status, stderr)
	}
	s.judged(func(*v1alpha1.NodeTypeStatus) {})
	if status, out, stderr := s.run("refresh", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != s.name+"-one-b" || !strings.Contains(out, s.name+"-one-b instead of "+one.Rendering) {
		t.Errorf("status %d: %s%s; spec.rendering %s", status, out, stderr, s.nodeType().Spec.Rendering)
	}

	if status, out, stderr := s.run("undo", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != one.Rendering {
		t.Errorf("before the manager has followed: status %d: %s%s; spec %+v", status, out, stderr, s.nodeType().Spec)
	}
	s.judged(func(n *v1alpha1.NodeTypeStatus) { n.TargetRendering = s.name + "-one-b" })
	if status, out, stderr := s.run("undo", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != one.Rendering || s.nodeType().Spec.OSImageRef.Name != s.name+"-2" {
		t.Errorf("under way: status %d: %s%s; spec %+v", status, out, stderr, s.nodeType().Spec)
	}

	again := s.nodeType()
	again.Spec.Rendering = s.name + "-one-b"
	if err := server.Client.Update(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	// Done: what was refreshed is stable, and the rendering before it is where the Rollout came from.
	s.judged(func(n *v1alpha1.NodeTypeStatus) { n.StableRendering = s.name + "-one-b" })
	if status, _, stderr := s.run("undo", s.name); status != cli.ExitFailed || !strings.Contains(stderr, "has nothing to undo") {
		t.Errorf("without a Rollout that refreshed: status %d: %s", status, stderr)
	}
	server.Create(t, &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-one-4"}, Spec: v1alpha1.RolloutSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: s.name}, From: one.Revision, FromRendering: one.Rendering, To: one.Revision, ToRendering: s.name + "-one-b",
	}, Status: v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutDone}})
	if status, out, stderr := s.run("undo", s.name); status != cli.ExitOK || s.nodeType().Spec.Rendering != one.Rendering {
		t.Errorf("done: status %d: %s%s; spec.rendering %s", status, out, stderr, s.nodeType().Spec.Rendering)
	}
	if _, out, _ := s.run("status", s.name); !strings.Contains(out, "rendering  "+s.name+"-one-b, was "+one.Rendering) {
		t.Errorf("the status is\n%s", out)
	}
}

package nodetype

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/nodeprovider"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// otherwise is a version of Ingot that resolves everything with one kernel argument more.
func otherwise(r spec.Request) (v1alpha1.NodePlan, error) {
	plan, err := presentation.Resolve(r)
	plan.KernelArguments = append(plan.KernelArguments, "iommu=pt")
	return plan, err
}

// stricter is a version of Ingot that refuses everything.
func stricter(spec.Request) (v1alpha1.NodePlan, error) {
	return v1alpha1.NodePlan{}, &spec.Refusal{Reason: v1alpha1.ReasonPresentationInvalid, Rule: "new/rule", Message: "no longer"}
}

// pinned is an observation whose NodeType has a stable rendering.
func pinned() observation {
	seen := possible()
	first := decide(seen, presentation.Resolve)
	revision, made := first.revision.Name, first.rendered.Rendering
	seen.revisions = map[string]*v1alpha1.NodeTypeRevision{revision: first.revision}
	seen.renderings = []v1alpha1.NodeTypeRendering{*made}
	s := &seen.nodeType.Status
	s.StableRevision, s.StableRendering, s.TargetRevision, s.TargetRendering = revision, made.Name, revision, made.Name
	return seen
}

func TestARevisionKeepsItsRenderingWhateverVersionRuns(t *testing.T) {
	seen := pinned()
	has := seen.nodeType.Status.StableRendering
	assessed := decide(seen, otherwise)
	if assessed.problem != nil || assessed.rendered.Rendering.Name != has || assessed.rendered.IsNew || assessed.made == has {
		t.Fatalf("with another version: %+v", assessed)
	}
	if told := strings.Join(assessed.rendered.Differences, "; "); told != "kernelArguments[iommu=pt] would be added" {
		t.Errorf("told %q", told)
	}
	if assessed := decide(seen, stricter); assessed.problem != nil || assessed.rendered.Rendering.Name != has || !strings.Contains(assessed.refusal, "no longer") {
		t.Errorf("with a stricter version: %+v, %+v", assessed.problem, assessed)
	}
	seen.nodeType.Spec.SSHKeys = []string{"ssh-ed25519 AAAA ops"}
	if assessed := decide(seen, stricter); assessed.problem == nil || !strings.Contains(assessed.problem.message, "no longer") || assessed.revision != nil {
		t.Errorf("a new revision with a stricter version: %+v", assessed.problem)
	}
}

func TestARenderingIsWhatTheSpecAsksForIfItCanBe(t *testing.T) {
	seen := pinned()
	has, made := seen.nodeType.Status.StableRendering, decide(seen, otherwise).made
	seen.nodeType.Spec.Rendering = made
	if assessed := decide(seen, otherwise); assessed.rendered.Rendering.Name != made || !assessed.rendered.IsNew || len(assessed.rendered.Differences) > 0 {
		t.Errorf("the refreshed one: %+v", assessed.rendered)
	}
	seen.nodeType.Spec.Rendering = has
	if assessed := decide(seen, otherwise); assessed.rendered.Rendering.Name != has || assessed.rendered.IsNew {
		t.Errorf("set back: %+v", assessed.rendered)
	}
	seen.nodeType.Spec.Rendering = seen.nodeType.Status.StableRevision + "-00000000"
	if assessed := decide(seen, presentation.Resolve); assessed.rendered.Rendering.Name != has || assessed.rendered.UnknownRequest == "" {
		t.Errorf("one that nobody makes: %+v", assessed.rendered)
	}
	seen.nodeType.Spec.Rendering = "another-revision-00000000"
	if assessed := decide(seen, presentation.Resolve); assessed.rendered.Rendering.Name != has || assessed.rendered.UnknownRequest != "" {
		t.Errorf("one of another revision: %+v", assessed.rendered)
	}
}

// TestALostRenderingRollsNobody: an object that was deleted must not become a roll of the fleet.
func TestALostRenderingRollsNobody(t *testing.T) {
	seen := pinned()
	has := seen.nodeType.Status.StableRendering
	seen.renderings = nil
	if assessed := decide(seen, presentation.Resolve); assessed.problem != nil || assessed.rendered.Rendering.Name != has || !assessed.rendered.IsNew {
		t.Errorf("the version that made it makes it again: %+v, %+v", assessed.problem, assessed.rendered)
	}
	if assessed := decide(seen, otherwise); assessed.problem != nil {
		t.Errorf("nobody is judged by it: %+v", assessed.problem)
	}
	seen.machines = []v1alpha1.Machine{*machineOf("h100", "research", seen.nodeType.Status.Stable())}
	assessed := decide(seen, otherwise)
	if assessed.problem == nil || assessed.problem.reason != v1alpha1.ReasonRenderingLost || !strings.Contains(assessed.problem.message, has) || assessed.revision != nil {
		t.Fatalf("another version: %+v", assessed.problem)
	}
	seen.nodeType.Spec.Rendering = assessed.made
	if assessed := decide(seen, otherwise); assessed.problem != nil || assessed.rendered.Rendering.Name == has {
		t.Errorf("the other one was asked for: %+v", assessed.problem)
	}
}

// TestALostTargetRollsNobodyBack: the rendering that a refresh is moving Machines to is deleted under a third version.
func TestALostTargetRollsNobodyBack(t *testing.T) {
	seen := pinned()
	target := seen.nodeType.Status.StableRevision + "-0badc0de"
	moved := machineOf("h100", "research", v1alpha1.RenderedRevision{Revision: seen.nodeType.Status.StableRevision, Rendering: target})
	seen.machines = []v1alpha1.Machine{*machineOf("h100", "research", seen.nodeType.Status.Stable()), *moved}
	seen.nodeType.Status.TargetRendering, seen.nodeType.Spec.Rendering = target, target
	assessed := decide(seen, otherwise)
	if assessed.problem == nil || assessed.problem.reason != v1alpha1.ReasonRenderingLost || !strings.Contains(assessed.problem.message, target) {
		t.Fatalf("%+v", assessed.problem)
	}
	seen.nodeType.Spec.Rendering = seen.nodeType.Status.StableRendering
	if assessed := decide(seen, otherwise); assessed.problem != nil || assessed.rendered.Rendering.Name != seen.nodeType.Status.StableRendering {
		t.Errorf("it is undone: %+v", assessed.problem)
	}
}

func TestAStatusWithoutARenderingIsLeftAlone(t *testing.T) {
	seen := pinned()
	seen.nodeType.Status.StableRendering = ""
	assessed := decide(seen, presentation.Resolve)
	if assessed.problem == nil || assessed.problem.reason != v1alpha1.ReasonOlderShape || assessed.revision != nil {
		t.Errorf("%+v", assessed.problem)
	}
}

func TestARenderingOfANewerVersionIsNotGuessedAt(t *testing.T) {
	seen := pinned()
	seen.renderings[0].Spec.Encoding = v1alpha1.RenderingEncoding + 1
	assessed := decide(seen, presentation.Resolve)
	if assessed.problem == nil || assessed.problem.reason != v1alpha1.ReasonRenderingUnreadable {
		t.Errorf("%+v", assessed.problem)
	}
}

// runWith starts the controllers of NodeTypes and NodeProviders as a version of Ingot with that resolver. The function ends it.
func runWith(t *testing.T, resolve presentation.Resolver) (stop func()) {
	t.Helper()
	return server.Run(t, func(mgr ctrl.Manager) error {
		providers := &nodeprovider.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("nodeprovider"), Clock: clock.RealClock{}, CheckBoot: func(context.Context, v1alpha1.NetbootSpec) error { return nil },
			CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) { return "", nil }}
		nodeTypes := &Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("nodetype"), Clock: clock.RealClock{}, Resolve: resolve}
		return errors.Join(providers.SetupWithManager(mgr), nodeTypes.SetupWithManager(mgr))
	})
}

func renderingCurrent(n *v1alpha1.NodeType) *metav1.Condition {
	return meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionRenderingCurrent)
}

func TestAnotherVersionSaysWhatItWouldDoAndDoesItWhenAsked(t *testing.T) {
	stop := runWith(t, presentation.Resolve)
	namespace := server.Namespace(t)
	create(t, provider("hall-7", namespace), image("debian-7"), nodeType("pinned", "hall-7", "debian-7"))
	first := await(t, "pinned", "it is Ready and current", func(n *v1alpha1.NodeType) bool {
		c := renderingCurrent(n)
		return n.Status.StableRendering != "" && c != nil && c.Status == metav1.ConditionTrue
	}).Status.Stable()
	var kept v1alpha1.NodeTypeRendering
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: first.Rendering}, &kept); err != nil || kept.OwnerReferences[0].Name != first.Revision {
		t.Fatalf("%v, owners %+v", err, kept.OwnerReferences)
	}
	changed := kept.DeepCopy()
	changed.Spec.Plan.KernelArguments = []string{"other"}
	if err := server.Client.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("a changed rendering: %v", err)
	}
	create(t, machineOf("pinned", namespace, first))
	stop()

	runWith(t, otherwise)
	told := await(t, "pinned", "it says what differs", func(n *v1alpha1.NodeType) bool {
		return renderingCurrent(n).Status == metav1.ConditionFalse && n.Status.RefreshedRendering != ""
	})
	if m := renderingCurrent(told).Message; !strings.Contains(m, "kernelArguments[iommu=pt] would be added") || !strings.Contains(m, "ingot rollout refresh pinned") {
		t.Errorf("the message is %q", m)
	}
	if told.Status.Stable() != first || told.Status.Target() != first || !meta.IsStatusConditionTrue(told.Status.Conditions, v1alpha1.ConditionReady) || len(rolloutsOf(t, "pinned")) > 0 {
		t.Errorf("something was moved: %+v", told.Status)
	}
	err := server.Client.Get(t.Context(), client.ObjectKey{Name: told.Status.RefreshedRendering}, &v1alpha1.NodeTypeRendering{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what nobody asked for is kept: %v", err)
	}
	change(t, "pinned", func(s *v1alpha1.NodeTypeSpec) { s.Rendering = told.Status.RefreshedRendering })
	await(t, "pinned", "it has a Rollout to the other rendering", func(n *v1alpha1.NodeType) bool {
		all := rolloutsOf(t, "pinned")
		return len(all) == 1 && all[0].Spec.Source() == first && all[0].Spec.To == first.Revision && all[0].Spec.ToRendering == told.Status.RefreshedRendering &&
			n.Status.Stable() == first && n.Status.RefreshedRendering == "" && renderingCurrent(n).Status == metav1.ConditionTrue
	})
	change(t, "pinned", func(s *v1alpha1.NodeTypeSpec) { s.Rendering = first.Rendering })
	await(t, "pinned", "it is set back, and says again what differs", func(n *v1alpha1.NodeType) bool {
		return n.Status.Target() == first && renderingCurrent(n).Status == metav1.ConditionFalse
	})
}

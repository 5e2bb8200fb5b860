package nodetype

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/management"
)

func TestAProvidersChangeWaitsForTheNodeTypesNext(t *testing.T) {
	seen := possible()
	first := decide(seen, presentation.Resolve)
	stable := first.revision
	s := &seen.nodeType.Status
	s.StableRevision, s.StableRendering, s.TargetRevision, s.TargetRendering = stable.Name, first.rendered.Rendering.Name, stable.Name, first.rendered.Rendering.Name
	seen.renderings = append(seen.renderings, *first.rendered.Rendering)
	seen.revisions = map[string]*v1alpha1.NodeTypeRevision{stable.Name: stable}

	seen.provider.Spec.UserData = "#cloud-config\npackages: [lldpd]\n"
	if assessed := decide(seen, presentation.Resolve); assessed.revision != stable {
		t.Errorf("the provider's change alone makes revision %s", assessed.revision.Name)
	}
	seen.nodeType.Spec.SSHKeys = []string{"ssh-ed25519 AAAA ops"}
	next := decide(seen, presentation.Resolve).revision
	if next.Name == stable.Name || next.Spec.UserData[0] != seen.provider.Spec.UserData {
		t.Fatalf("the NodeType's change makes %s with %q", next.Name, next.Spec.UserData)
	}
	seen.nodeType.Status.TargetRevision, seen.revisions[next.Name] = next.Name, next
	if assessed := decide(seen, presentation.Resolve); assessed.revision != next {
		t.Errorf("the target changed to %s by itself", assessed.revision.Name)
	}
	seen.nodeType.Spec.SSHKeys = nil
	if assessed := decide(seen, presentation.Resolve); assessed.revision != stable {
		t.Errorf("setting the NodeType back gives %s, not the stable revision", assessed.revision.Name)
	}
}

func change(t *testing.T, name string, apply func(*v1alpha1.NodeTypeSpec)) {
	t.Helper()
	var after v1alpha1.NodeType
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, &after); err != nil {
		t.Fatal(err)
	}
	before := after.DeepCopy()
	apply(&after.Spec)
	if err := server.Client.Patch(t.Context(), &after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// machineOf is a Machine that is Ready with a revision and its rendering.
func machineOf(nodeType, namespace string, has v1alpha1.RenderedRevision) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
		Status: v1alpha1.MachineStatus{Revision: has.Revision, Rendering: has.Rendering, Phase: v1alpha1.MachineReady, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: metav1.Now(),
		}}},
	}
}

func rolloutsOf(t *testing.T, nodeType string) []v1alpha1.Rollout {
	t.Helper()
	var list v1alpha1.RolloutList
	if err := server.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var mine []v1alpha1.Rollout
	for i := range list.Items {
		if list.Items[i].Spec.NodeTypeRef.Name == nodeType {
			mine = append(mine, list.Items[i])
		}
	}
	return mine
}

func TestWhileAnObstacleHoldsNeitherRevisionNorRolloutIsMade(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	create(t, provider("hall-4", namespace), image("debian-4"), nodeType("held", "hall-4", "debian-4"))
	first := await(t, "held", "it is Ready", hasReason(v1alpha1.ReasonReady)).Status.Stable()
	before := first.Revision
	create(t, machineOf("held", namespace, first))
	await(t, "held", "the Machine is counted", func(n *v1alpha1.NodeType) bool { return n.Status.Machines.Ready == 1 })

	change(t, "held", func(s *v1alpha1.NodeTypeSpec) { s.OSImageRef.Name = "nowhere" })
	held := await(t, "held", "the image is missed", hasReason(v1alpha1.ReasonOSImageNotFound))
	if held.Status.TargetRevision != before || held.Status.StableRevision != before || len(rolloutsOf(t, "held")) != 0 {
		t.Errorf("stable %s, target %s, %d Rollouts", held.Status.StableRevision, held.Status.TargetRevision, len(rolloutsOf(t, "held")))
	}
	change(t, "held", func(s *v1alpha1.NodeTypeSpec) { s.UserData = "packages: []\n"; s.OSImageRef.Name = "debian-4" })
	held = await(t, "held", "the user data is refused", hasReason(v1alpha1.ReasonUserDataInvalid))
	if held.Status.TargetRevision != before || len(rolloutsOf(t, "held")) != 0 {
		t.Errorf("target %s, %d Rollouts", held.Status.TargetRevision, len(rolloutsOf(t, "held")))
	}
	change(t, "held", func(s *v1alpha1.NodeTypeSpec) { s.UserData = "#cloud-config\npackages: [lldpd]\n" })
	await(t, "held", "the mended user data has a Rollout", func(n *v1alpha1.NodeType) bool {
		all := rolloutsOf(t, "held")
		return len(all) == 1 && all[0].Spec.From == before && all[0].Spec.To == n.Status.TargetRevision && n.Status.StableRevision == before
	})
}

func TestTenRevisionsAndTenSettledRolloutsAreKept(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	create(t, provider("hall-5", namespace), image("debian-5"), nodeType("aged", "hall-5", "debian-5"))
	first := await(t, "aged", "it is Ready", hasReason(v1alpha1.ReasonReady)).Status.Stable()
	machine := machineOf("aged", namespace, first)
	create(t, machine)
	await(t, "aged", "the Machine is counted", func(n *v1alpha1.NodeType) bool { return n.Status.Machines.Ready == 1 })
	previous := first.Revision
	for i := range 14 {
		change(t, "aged", func(s *v1alpha1.NodeTypeSpec) { s.UserData = fmt.Sprintf("#cloud-config\nbootcmd: [\"true %d\"]\n", i) })
		target := await(t, "aged", "there is another target", func(n *v1alpha1.NodeType) bool { return n.Status.TargetRevision != previous }).Status.TargetRevision
		await(t, "aged", "it has a Rollout", func(*v1alpha1.NodeType) bool {
			all := rolloutsOf(t, "aged")
			return slices.ContainsFunc(all, func(r v1alpha1.Rollout) bool { return r.Spec.To == target })
		})
		previous = target
	}
	await(t, "aged", "what is old and unused is removed", func(n *v1alpha1.NodeType) bool {
		settled := supersede(t, "aged", previous)
		// The target, and the stable revision that the Machine has, are in use.
		return revisionsOf(t, n) == 10+2 && settled == 10
	})
	var kept v1alpha1.NodeTypeRevision
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: first.Revision}, &kept); err != nil {
		t.Errorf("the revision that a Machine has: %v", err)
	}
}

// supersede settles every Rollout that does not go to the target, as the controller of Rollouts does, and counts the settled.
func supersede(t *testing.T, nodeType, target string) int {
	t.Helper()
	settled, all := 0, rolloutsOf(t, nodeType)
	for i := range all {
		made := &all[i]
		if made.Status.Phase.IsFinal() {
			settled++
			continue
		}
		before := made.DeepCopy()
		made.Status.Phase = v1alpha1.RolloutSuperseded
		if made.Spec.To == target {
			continue
		}
		if err := server.Client.Status().Patch(t.Context(), made, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	return settled
}

func revisionsOf(t *testing.T, nodeType *v1alpha1.NodeType) int {
	t.Helper()
	var list v1alpha1.NodeTypeRevisionList
	if err := server.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], nodeType) {
			n++
		}
	}
	return n
}

func TestARevisionThatAMachineTheCacheLacksAsksForIsKept(t *testing.T) {
	namespace := server.Namespace(t)
	owner := nodeType("behind", "hall-6", "debian-6")
	create(t, owner)
	seen := observation{nodeType: owner, revisions: map[string]*v1alpha1.NodeTypeRevision{}}
	for i := range 11 {
		made := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("behind-%02d", i)}, Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: owner.Name}, HashVersion: 1,
			Image: v1alpha1.RevisionImage{Name: "debian-6", Checksum: "sha256:" + strings.Repeat("ab", 32), Format: v1alpha1.FormatRaw, UserData: v1alpha1.UserDataCloudInit},
		}}
		create(t, made)
		seen.revisions[made.Name] = made
	}
	r := &Reconciler{Client: server.Client, APIReader: server.Client}
	asking := machineOf(owner.Name, namespace, v1alpha1.RenderedRevision{})
	asking.Spec.Revision = "behind-00"
	create(t, asking)
	exists := func() bool {
		err := server.Client.Get(t.Context(), client.ObjectKey{Name: "behind-00"}, &v1alpha1.NodeTypeRevision{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	decision := revisionrollout.Plan(facts(seen, assessment{}))
	if drop := decision.DeleteRevisions; len(drop) != 1 || drop[0] != "behind-00" {
		t.Fatalf("to be deleted by what the cache shows: %v", drop)
	}
	if _, err := r.act(t.Context(), seen, assessment{}, decision); err != nil || !exists() {
		t.Fatalf("the revision that a Machine asks for is there: %v, %v", exists(), err)
	}
	if err := server.Client.Delete(t.Context(), asking); err != nil {
		t.Fatal(err)
	}
	if _, err := r.act(t.Context(), seen, assessment{}, decision); err != nil || exists() {
		t.Errorf("the revision that nobody asks for is there: %v, %v", exists(), err)
	}
}

func TestADeletedRolloutIsMadeAgain(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	create(t, provider("remade-hall", namespace), image("remade-image"), nodeType("remade", "remade-hall", "remade-image"))
	first := await(t, "remade", "it is Ready", hasReason(v1alpha1.ReasonReady))
	create(t, machineOf("remade", namespace, first.Status.Stable()))
	change(t, "remade", func(spec *v1alpha1.NodeTypeSpec) { spec.UserData = "#cloud-config\npackages: [lldpd]\n" })
	var made v1alpha1.Rollout
	management.Eventually(t, "there is a Rollout", func() bool {
		all := rolloutsOf(t, "remade")
		if len(all) > 0 {
			made = all[0]
		}
		return len(all) == 1
	})
	if err := server.Client.Delete(t.Context(), made.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "there is another one to the same revision", func() bool {
		all := rolloutsOf(t, "remade")
		return len(all) == 1 && all[0].UID != made.UID && all[0].Spec.To == made.Spec.To && all[0].Spec.From == made.Spec.From
	})
}

// TestARolloutOfAKeptNodeTypeIsUndone deletes the NodeType while another revision is rolled out. The finalizer of what is in use keeps it.
func TestARolloutOfAKeptNodeTypeIsUndone(t *testing.T) {
	run(t)
	namespace := server.Namespace(t)
	kept := nodeType("kept", "hall-kept", "debian-kept")
	kept.Finalizers = []string{v1alpha1.InUseFinalizer}
	create(t, provider("hall-kept", namespace), image("debian-kept"), kept)
	first := await(t, "kept", "it is Ready", hasReason(v1alpha1.ReasonReady)).Status.Stable()
	create(t, machineOf("kept", namespace, first))
	await(t, "kept", "the Machine is counted", func(n *v1alpha1.NodeType) bool { return n.Status.Machines.Ready == 1 })
	change(t, "kept", func(s *v1alpha1.NodeTypeSpec) { s.UserData = "#cloud-config\npackages: [lldpd]\n" })
	bad := await(t, "kept", "there is a Rollout", func(*v1alpha1.NodeType) bool { return len(rolloutsOf(t, "kept")) == 1 }).Status.TargetRevision
	if err := server.Client.Delete(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Client.Patch(context.Background(), kept, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Error(err)
		}
	})
	change(t, "kept", func(s *v1alpha1.NodeTypeSpec) { s.UserData = "" })
	await(t, "kept", "a Rollout leads back", func(n *v1alpha1.NodeType) bool {
		// The controller that keeps it says so in Ready, which this one leaves alone.
		return n.DeletionTimestamp != nil && n.Generation == n.Status.ObservedGeneration && readyGeneration(n) < n.Generation && n.Status.TargetRevision == first.Revision && slices.ContainsFunc(rolloutsOf(t, "kept"), func(r v1alpha1.Rollout) bool {
			return r.Spec.From == bad && r.Spec.To == first.Revision
		})
	})
}

// TestNothingIsMadeForTheGarbageCollector deletes, in the foreground, a NodeType that is kept.
func TestNothingIsMadeForTheGarbageCollector(t *testing.T) {
	stop := runWith(t, presentation.Resolve)
	namespace := server.Namespace(t)
	kept := nodeType("collected", "hall-collected", "debian-collected")
	kept.Finalizers = []string{v1alpha1.InUseFinalizer}
	create(t, provider("hall-collected", namespace), image("debian-collected"), kept)
	first := await(t, "collected", "it is Ready", hasReason(v1alpha1.ReasonReady)).Status.Stable()
	create(t, machineOf("collected", namespace, first))
	change(t, "collected", func(s *v1alpha1.NodeTypeSpec) { s.UserData = "#cloud-config\npackages: [lldpd]\n" })
	target := await(t, "collected", "there is a Rollout", func(*v1alpha1.NodeType) bool { return len(rolloutsOf(t, "collected")) == 1 }).Status.TargetRevision
	stop()
	setFinalizers := func(o client.Object, list string) {
		if err := server.Client.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`))); err != nil {
			t.Error(err)
		}
	}
	// The revision that the Machine has is in use too, so the garbage collector is never done.
	used := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: first.Revision}}
	setFinalizers(used, `["`+v1alpha1.InUseFinalizer+`"]`)
	t.Cleanup(func() {
		setFinalizers(used, "null")
		setFinalizers(kept, "null")
	})
	if err := server.Client.Delete(t.Context(), kept, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	revision := &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: target}}
	management.Eventually(t, "the garbage collector has deleted the Rollout and its revision", func() bool {
		return len(rolloutsOf(t, "collected")) == 0 && apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(revision), revision))
	})
	r := &Reconciler{Client: server.Client, APIReader: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}, Resolve: presentation.Resolve}
	for range 4 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(kept)}); err != nil {
			t.Fatal(err)
		}
	}
	if made := rolloutsOf(t, "collected"); len(made) > 0 {
		t.Errorf("Rollout %s is made again, which the garbage collector deletes again", made[0].Name)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(revision), revision); !apierrors.IsNotFound(err) {
		t.Errorf("revision %s is made again: %v", target, err)
	}
}

func readyGeneration(n *v1alpha1.NodeType) int64 {
	return meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady).ObservedGeneration
}

package nodetype

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/management"
)

// TestARestoredNodeTypeHasTheRevisionOfItsMachinesAsStable restores a NodeType in the middle of a Rollout, without status, owner references and the
// Rollout. What the Machine has is known from its host's annotation alone.
func TestARestoredNodeTypeHasTheRevisionOfItsMachinesAsStable(t *testing.T) {
	namespace := server.Namespace(t)
	create(t, provider("hall-r", namespace), image("debian-r"))
	server.Create(t, nodeType("restored", "hall-r", "debian-r"))
	stop := runWith(t, presentation.Resolve)
	stable := await(t, "restored", "it is Ready", hasReason(v1alpha1.ReasonReady)).Status.Stable()
	machine := machineOf("restored", namespace, stable)
	server.Create(t, machine)
	await(t, "restored", "the Machine is counted", func(n *v1alpha1.NodeType) bool { return n.Status.Machines.Ready == 1 })
	change(t, "restored", func(s *v1alpha1.NodeTypeSpec) { s.SSHKeys = []string{"ssh-ed25519 AAAA ops"} })
	before := await(t, "restored", "it has a Rollout", func(*v1alpha1.NodeType) bool { return len(rolloutsOf(t, "restored")) == 1 })
	stop()

	var revisions v1alpha1.NodeTypeRevisionList
	var renderings v1alpha1.NodeTypeRenderingList
	if err := errors.Join(server.Client.List(t.Context(), &revisions), server.Client.List(t.Context(), &renderings)); err != nil {
		t.Fatal(err)
	}
	backup := []client.Object{before}
	for i := range revisions.Items {
		if revisions.Items[i].Spec.NodeTypeRef.Name == "restored" {
			backup = append(backup, &revisions.Items[i])
		}
	}
	for i := range renderings.Items {
		if slices.ContainsFunc(backup, func(o client.Object) bool { return o.GetName() == renderings.Items[i].Spec.RevisionRef.Name }) {
			backup = append(backup, &renderings.Items[i])
		}
	}
	lost := append([]client.Object{&rolloutsOf(t, "restored")[0], machine}, backup...)
	for _, o := range lost {
		if err := client.IgnoreNotFound(server.Client.Delete(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range lost {
		management.Eventually(t, o.GetName()+" is gone", func() bool {
			return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)))
		})
	}
	note := v1alpha1.Installation{
		Machine: v1alpha1.MachineReference{Namespace: namespace, Name: machine.Name, UID: "earlier"}, NodeType: "restored", State: v1alpha1.InstallationComplete,
		Revision: stable.Revision, Rendering: stable.Rendering, Attempt: 1,
	}
	text, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	host := &metal3.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server", Labels: map[string]string{"gpu-model": "h100"}, Annotations: map[string]string{v1alpha1.AnnotationInstallation: string(text)}},
		Spec:       metal3.BareMetalHostSpec{ConsumerRef: &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: namespace, Name: machine.Name, UID: "earlier"}},
	}
	restored := append([]client.Object{host, &v1alpha1.Machine{Spec: machine.Spec, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machine.Name}}}, backup...)
	before.Status = v1alpha1.NodeTypeStatus{}
	for _, o := range backup {
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetOwnerReferences(nil)
		o.SetFinalizers(nil)
		o.SetManagedFields(nil)
	}
	paused := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: lost[0].GetName()}, Spec: lost[0].(*v1alpha1.Rollout).Spec}
	paused.Spec.Paused = true
	server.Create(t, append(restored, paused)...)
	run(t)
	var rollout v1alpha1.Rollout
	after := await(t, "restored", "its Rollout begins again", func(n *v1alpha1.NodeType) bool {
		for _, o := range rolloutsOf(t, "restored") {
			if metav1.IsControlledBy(&o, n) {
				rollout = o
			}
		}
		return rollout.Name != ""
	})
	if after.Status.Stable() != stable || rollout.Spec.From != stable.Revision || rollout.Spec.To == stable.Revision {
		t.Errorf("stable is %v and the Rollout moves from %s to %s; the Machine has %v", after.Status.Stable(), rollout.Spec.From, rollout.Spec.To, stable)
	}
	if !rollout.Spec.Paused || rollout.Spec.Target() != paused.Spec.Target() {
		t.Errorf("the Rollout that was restored was paused; the one in its place: %+v", rollout.Spec)
	}
	for _, o := range backup[1:] {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || metav1.GetControllerOf(o) == nil {
			t.Errorf("%T %s has no owner: %v", o, o.GetName(), err)
		}
	}
}

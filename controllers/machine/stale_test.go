package machine_test

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// behind is a client whose cache stands still where the rig says so.
type behind struct {
	client.Client
	rig *rig
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if old, is := b.rig.frozen.Load(reflect.TypeOf(into)); is && client.ObjectKeyFromObject(old.(client.Object)) == key {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(old.(client.Object).DeepCopyObject()).Elem())
		b.rig.looks.Add(1)
		return nil
	}
	return b.Client.Get(ctx, key, into, options...)
}

// freeze lets the controller's cache show the object as it is given here.
func (r *rig) freeze(o client.Object) { r.frozen.Store(reflect.TypeOf(o), o) }

// looked waits until the controller has acted on what is frozen, several times: a look of one Machine ends before the next begins.
func (r *rig) looked(machine string) {
	r.t.Helper()
	until := r.looks.Load() + 4
	management.Eventually(r.t, "the controller has looked at what its cache shows", func() bool {
		r.poke(machine)
		return r.looks.Load() > until
	})
}

func TestTheNextMachinesDocumentsAreNotOverwrittenOnAnOldViewOfTheHost(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	r.addMachine("first")
	management.Eventually(t, "the installation is asked for", func() bool { h, _ := r.host("server-00"); return h.Spec.Image != nil })
	r.play("server-00")
	h, _ := r.host("server-00")
	r.freeze(h.DeepCopy())
	before := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Machine", Namespace: r.namespace, Name: "second", UID: "second"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	theirs := r.claim()
	theirs.Labels[v1alpha1.LabelMachine] = "second"
	theirs.Data["userData"] = []byte("of another tenant")
	if err := server.Client.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	r.looked("first")
	if now := r.claim(); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the claim Secret of Machine second was written for %q", now.Labels[v1alpha1.LabelMachine])
	}
}

func TestANodeIsNotEmptiedForARollThatWasCalledOff(t *testing.T) {
	r, next := readyRig(t)
	_, _ = r.protectedPod()
	// Another leader has taken the roll back; this one's cache shows the Machine as it was in the middle of it.
	m := r.machine(r.namespace)
	m.Spec.Revision, m.Status.Phase, m.ResourceVersion = next, v1alpha1.MachineDraining, "1"
	r.freeze(m)
	r.looked(r.namespace)
	if n := r.node(r.namespace); n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		t.Errorf("the Node of a Machine that is %s was cordoned", r.machine(r.namespace).Status.Phase)
	}
}

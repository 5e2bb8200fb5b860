package machine_test

import (
	"context"
	"sync/atomic"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// behind is a client whose cache lags.
type behind struct {
	client.Client
	stale func(client.ObjectKey, client.Object) bool
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if b.stale != nil && b.stale(key, into) {
		return nil
	}
	return b.Client.Get(ctx, key, into, options...)
}

func TestTheNextMachinesDocumentsAreNotOverwrittenOnAnOldViewOfTheHost(t *testing.T) {
	r := newRig(t, 1)
	var before atomic.Pointer[metal3api.BareMetalHost]
	var looks atomic.Int32
	r.stale = func(_ client.ObjectKey, into client.Object) bool {
		h, is := into.(*metal3api.BareMetalHost)
		if old := before.Load(); is && old != nil {
			looks.Add(1)
			old.DeepCopyInto(h)
			return true
		}
		return false
	}
	r.start()
	r.addMachine("first")
	management.Eventually(t, "the installation is asked for", func() bool { h, _ := r.host("server-00"); return h.Spec.Image != nil })
	h, _ := r.host("server-00")
	before.Store(h.DeepCopy())
	old := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Machine", Namespace: r.namespace, Name: "second", UID: "second"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	mine := r.claim()
	theirs := mine.DeepCopy()
	theirs.Labels[v1alpha1.LabelMachine] = "second"
	theirs.Data["userData"] = []byte("of another tenant")
	if err := server.Client.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	looks.Store(0)
	management.Eventually(t, "the first Machine has looked at its host as it was", func() bool { r.poke("first"); return looks.Load() > 4 })
	if now := r.claim(); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the claim Secret of Machine %q was written for %q", "second", now.Labels[v1alpha1.LabelMachine])
	}
}

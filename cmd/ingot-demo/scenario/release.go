package scenario

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
)

// release deletes the pinned Machine and waits for its host to be back in the pool.
func (t *story) release(ctx context.Context) error {
	t.s.step("releasing %s: evict, power off, delete the Node, erase, return the host", pinned)
	m := t.last.Machine(pinned)
	if m == nil {
		t.promise(false, "there is no Machine "+pinned, "the pinned Machine is released")
		return nil
	}
	if err := t.w.Fleet.Delete(ctx, m); err != nil {
		return fmt.Errorf("release %s: %w", pinned, err)
	}
	back := false
	err := t.until(ctx, func(s observation.Snapshot) (bool, error) {
		back = s.Machine(pinned) == nil && t.hostIsBack(s)
		return back, nil
	})
	if err != nil {
		return err
	}
	var node corev1.Node
	err = t.w.Nodes.Get(ctx, client.ObjectKey{Name: pinned}, &node)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for the released Node: %w", err)
	}
	gone := apierrors.IsNotFound(err)
	detail := ""
	if !back || !gone {
		detail = fmt.Sprintf("host back: %v; Node gone: %v; %s", back, gone, t.hostErrors())
		if m := t.last.Machine(pinned); m != nil {
			detail += "\n" + observation.Unmet(m)
		}
	}
	t.promise(back && gone, detail, "the released host is powered off, erased and available again, its Node gone")
	return nil
}

// hostIsBack: available, off, without a consumer, with the proof of an erase.
func (t *story) hostIsBack(s observation.Snapshot) bool {
	h := s.Host(t.pinnedHost())
	if h == nil || h.Status.Provisioning.State != metal3.StateAvailable || h.Spec.ConsumerRef != nil || h.Status.PoweredOn {
		return false
	}
	r, ok := s.Records[types.NamespacedName{Namespace: h.Namespace, Name: h.Name}]
	return ok && r.Status.Erased != nil && r.Status.Installed == nil
}

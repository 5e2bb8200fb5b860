package nodetype

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/step"
)

// cacheDelay is the time that the cache gets to receive what was just written.
const cacheDelay = 50 * time.Millisecond

// installed returns what the Machine is installed with: by its status or, after a restore without status, by the annotation of the host that names it.
// Without it: the status of the whole fleet is lost, no Machine seems to have a revision, and the NodeType's present spec becomes the stable
// revision; when the Machines have their hosts again, all of them are rolled to it.
func (obs observation) installed(m *v1alpha1.Machine) v1alpha1.RenderedRevision {
	if m.Status.Revision != "" {
		return m.Status.Installed()
	}
	for i := range obs.hosts {
		host := obs.hosts[i].Host
		if ref := host.Spec.ConsumerRef; !v1alpha1.IsMachineRef(ref) || ref.Namespace != m.Namespace || ref.Name != m.Name {
			continue
		}
		if note, err := v1alpha1.InstallationOf(host); err == nil && note != nil && note.Machine.Namespace == m.Namespace && note.Machine.Name == m.Name {
			return note.Installed()
		}
	}
	return v1alpha1.RenderedRevision{}
}

// takeOver makes the NodeType the owner of its revisions and of settled Rollouts, and the revisions that of their renderings, where they have no
// controller: backup tools drop it. It reports whether it wrote. A Rollout that is not settled is refused by its own controller first, because
// nobody may make one but the NodeType.
func (r *Reconciler) takeOver(ctx context.Context, obs observation) (bool, error) {
	var revisions v1alpha1.NodeTypeRevisionList
	var renderings v1alpha1.NodeTypeRenderingList
	var rollouts v1alpha1.RolloutList
	for _, list := range []client.ObjectList{&revisions, &renderings, &rollouts} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("list what was restored: %w", err)
		}
	}
	var orphans []orphan
	for i := range revisions.Items {
		if revision := &revisions.Items[i]; revision.Spec.NodeTypeRef.Name == obs.nodeType.Name {
			orphans = append(orphans, orphan{obs.nodeType, revision})
			orphans = append(orphans, renderingsOf(revision, renderings.Items)...)
		}
	}
	for i := range rollouts.Items {
		if rollout := &rollouts.Items[i]; rollout.Spec.NodeTypeRef.Name == obs.nodeType.Name && rollout.Status.Phase.IsFinal() {
			orphans = append(orphans, orphan{obs.nodeType, rollout})
		}
	}
	isTaken := false
	for _, o := range orphans {
		if metav1.GetControllerOfNoCopy(o.owned) != nil || o.owned.GetDeletionTimestamp() != nil {
			continue
		}
		isTaken = true
		if err := r.own(ctx, o.owner, o.owned); err != nil {
			return isTaken, err
		}
	}
	return isTaken, nil
}

// wasPaused reports whether the newest Rollout that names the NodeType moves its Machines to the same target and is paused, whoever owns it.
//
// Without it: a Rollout is paused because its canary looks wrong. The management cluster is restored from a backup of objects: the Rollout has no owner and
// no status any more, so its controller refuses it, and the one that is made in its place starts the next Machine.
func (r *Reconciler) wasPaused(ctx context.Context, nodeType string, to v1alpha1.RenderedRevision) (bool, error) {
	var list v1alpha1.RolloutList
	if err := r.APIReader.List(ctx, &list); err != nil {
		return false, fmt.Errorf("list Rollouts: %w", err)
	}
	var newest v1alpha1.Rollout
	for i := range list.Items {
		if o := &list.Items[i]; o.Spec.NodeTypeRef.Name == nodeType && (newest.Name == "" || revisionrollout.IsNewer(o.Name, newest.Name)) {
			newest = *o
		}
	}
	return newest.Spec.Paused && newest.Spec.Target() == to && newest.Status.Phase != v1alpha1.RolloutDone, nil
}

// orphan is an object that may have lost its owner.
type orphan struct{ owner, owned client.Object }

// renderingsOf returns the renderings of the revision.
func renderingsOf(revision *v1alpha1.NodeTypeRevision, all []v1alpha1.NodeTypeRendering) []orphan {
	var out []orphan
	for i := range all {
		if all[i].Spec.RevisionRef.Name == revision.Name {
			out = append(out, orphan{revision, &all[i]})
		}
	}
	return out
}

// own makes owner the controller of owned, which belongs to the cache and is not changed.
func (r *Reconciler) own(ctx context.Context, owner, owned client.Object) error {
	return step.TakeOver(ctx, r.Client, owner, owned.DeepCopyObject().(client.Object))
}

// takenOver returns the outcome of a reconcile that ended with takeOver.
func takenOver(err error) step.Outcome {
	if err != nil {
		return step.Retry(err)
	}
	return step.Wait("the caches to have what was taken over", cacheDelay)
}

package nodetype

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/step"
)

// facts for the plan of which revision follows which.
func facts(seen observation, found finding) revisionrollout.Facts {
	f := revisionrollout.Facts{
		Generation: seen.nodeType.Generation, Stable: seen.nodeType.Status.Stable(), Target: seen.nodeType.Status.Target(),
	}
	if found.revision != nil {
		f.Wanted = v1alpha1.RenderedRevision{Revision: found.revision.Name, Rendering: found.rendered.Rendering.Name}
	}
	for i := range seen.rollouts {
		o := &seen.rollouts[i]
		f.Rollouts = append(f.Rollouts, revisionrollout.Rollout{Name: o.Name, From: o.Spec.Source(), To: o.Spec.Target(), Phase: o.Status.Phase})
	}
	for i := range seen.machines {
		m := &seen.machines[i]
		f.Machines = append(f.Machines, revisionrollout.Machine{Asked: rollout.Wanted(m, f.Target), Installed: m.Status.Installed(), Deleting: m.DeletionTimestamp != nil})
	}
	for _, revision := range seen.revisions {
		f.Revisions = append(f.Revisions, revisionrollout.Revision{Name: revision.Name, Created: revision.CreationTimestamp.Time})
	}
	return f
}

// follow makes one Rollout or removes one object that is no longer kept; the event of that starts the next reconcile.
func (r *Reconciler) follow(ctx context.Context, seen observation, found finding, decision revisionrollout.Decision) ([]step.Event, error) {
	switch {
	case decision.Rollout != nil:
		return r.createRollout(ctx, seen, found)
	case len(decision.DropRollouts) > 0:
		return nil, r.drop(ctx, "Rollout", rolloutNamed(seen, decision.DropRollouts[0]))
	case len(decision.DropRevisions) > 0:
		return nil, r.dropRevision(ctx, seen, found, decision.DropRevisions[0])
	}
	return nil, nil
}

// createRollout decides once more on what the API server itself says: the cache may not show a Rollout that was just
// made, nor Machines that it has moved.
func (r *Reconciler) createRollout(ctx context.Context, seen observation, found finding) ([]step.Event, error) {
	var err error
	if seen.rollouts, err = rollouts(ctx, r.Reader, seen.nodeType); err != nil {
		return nil, err
	}
	if seen.machines, err = machines(ctx, r.Reader, seen.nodeType.Name); err != nil {
		return nil, err
	}
	decided := revisionrollout.Plan(facts(seen, found)).Rollout
	if decided == nil {
		return nil, nil
	}
	made := &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: decided.Name},
		Spec: v1alpha1.RolloutSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: seen.nodeType.Name},
			From:        decided.From.Revision, FromRendering: decided.From.Rendering, To: decided.To.Revision, ToRendering: decided.To.Rendering,
		},
	}
	if err := controllerutil.SetControllerReference(seen.nodeType, made, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Rollout %s: %w", made.Name, err)
	}
	err = r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return nil, r.expectOwn(ctx, seen, "Rollout", made.Name, &v1alpha1.Rollout{})
	}
	if err != nil {
		return nil, fmt.Errorf("create Rollout %s: %w", made.Name, err)
	}
	return []step.Event{happened("RolloutCreated", fmt.Sprintf("Rollout %s moves the Machines from %s", made.Name, between(decided.From, decided.To)))}, nil
}

// between says what a Rollout moves Machines from and to: revisions or, where that stays, renderings.
func between(from, to v1alpha1.RenderedRevision) string {
	if from.Revision == to.Revision {
		return fmt.Sprintf("rendering %s to %s", from.Rendering, to.Rendering)
	}
	return fmt.Sprintf("revision %s to %s", from.Revision, to.Revision)
}

// dropRevision decides once more on the Machines and Rollouts that the API server itself has: one that the cache does not show may
// need the revision, and nothing would make it again.
func (r *Reconciler) dropRevision(ctx context.Context, seen observation, found finding, name string) error {
	var err error
	if seen.rollouts, err = rollouts(ctx, r.Reader, seen.nodeType); err != nil {
		return err
	}
	if seen.machines, err = machines(ctx, r.Reader, seen.nodeType.Name); err != nil {
		return err
	}
	if !slices.Contains(revisionrollout.Plan(facts(seen, found)).DropRevisions, name) {
		return nil
	}
	return r.drop(ctx, "NodeTypeRevision", seen.revisions[name])
}

func rolloutNamed(seen observation, name string) *v1alpha1.Rollout {
	for i := range seen.rollouts {
		if seen.rollouts[i].Name == name {
			return &seen.rollouts[i]
		}
	}
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// drop deletes the very object that was judged.
func (r *Reconciler) drop(ctx context.Context, kind string, object client.Object) error {
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s, which is no longer kept: %w", kind, object.GetName(), err)
	}
	return nil
}

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
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
)

// createRevisionAndRendering creates the revision and the rendering of the assessment if they do not exist.
func (r *Reconciler) createRevisionAndRendering(ctx context.Context, obs observation, assessed assessment) error {
	if assessed.revision == nil {
		return nil
	}
	if obs.revisions[assessed.revision.Name] == nil {
		if err := r.createRevision(ctx, obs, assessed.revision); err != nil {
			return err
		}
	}
	if !assessed.rendered.IsNew {
		return nil
	}
	return r.createRendering(ctx, assessed)
}

// createRendering creates the rendering under its revision. Its name is derived from its content, as the revision's is.
func (r *Reconciler) createRendering(ctx context.Context, assessed assessment) error {
	owner := assessed.revision
	if owner.UID == "" {
		// The revision exists, and the cache does not have it yet.
		owner = &v1alpha1.NodeTypeRevision{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(assessed.revision), owner); err != nil {
			return fmt.Errorf("read NodeTypeRevision %s: %w", assessed.revision.Name, err)
		}
	}
	made := assessed.rendered.Rendering.DeepCopy()
	if err := controllerutil.SetControllerReference(owner, made, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own NodeTypeRendering %s: %w", made.Name, err)
	}
	err := r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		// The garbage collector may be about to delete it with a revision of the same name that was deleted.
		existing := &v1alpha1.NodeTypeRendering{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(made), existing); err != nil {
			return fmt.Errorf("read NodeTypeRendering %s: %w", made.Name, err)
		}
		if !metav1.IsControlledBy(existing, owner) {
			return fmt.Errorf("NodeTypeRendering %s exists and is not owned by NodeTypeRevision %s (uid %s): delete it, or wait until it is collected", made.Name, owner.Name, owner.UID)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create NodeTypeRendering %s: %w", made.Name, err)
	}
	return nil
}

// createRevision creates the revision. Its name is derived from its content, so it cannot be created twice.
func (r *Reconciler) createRevision(ctx context.Context, obs observation, made *v1alpha1.NodeTypeRevision) error {
	if err := controllerutil.SetControllerReference(obs.nodeType, made, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own NodeTypeRevision %s: %w", made.Name, err)
	}
	err := r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return r.verifyOwned(ctx, obs, "NodeTypeRevision", made.Name, &v1alpha1.NodeTypeRevision{})
	}
	if err != nil {
		return fmt.Errorf("create NodeTypeRevision %s: %w", made.Name, err)
	}
	return nil
}

// verifyOwned returns an error unless the existing object is owned by this NodeType. Mostly it is, and the cache only lags
// behind its creation. But a revision or a Rollout of a NodeType that was deleted and created again under the same name is
// deleted with its old owner; the next try creates a new one.
func (r *Reconciler) verifyOwned(ctx context.Context, obs observation, kind, name string, existing client.Object) error {
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	if !metav1.IsControlledBy(existing, obs.nodeType) {
		return fmt.Errorf("%s %s exists and is not owned by NodeType %s (uid %s): delete it, or wait until it is collected", kind, name, obs.nodeType.Name, obs.nodeType.UID)
	}
	return nil
}

// act creates one Rollout, or deletes one object that is no longer needed. Its event starts the next reconcile.
func (r *Reconciler) act(ctx context.Context, obs observation, assessed assessment, decision revisionrollout.Decision) ([]event.Event, error) {
	switch {
	case decision.Rollout != nil:
		return r.createRollout(ctx, obs, assessed)
	case len(decision.DeleteRollouts) > 0:
		return nil, r.deleteObject(ctx, "Rollout", rolloutNamed(obs, decision.DeleteRollouts[0]))
	case len(decision.DeleteRevisions) > 0:
		return nil, r.deleteRevision(ctx, obs, assessed, decision.DeleteRevisions[0])
	}
	return nil, nil
}

// createRollout plans once more on Rollouts and Machines that were read from the API server. The cache may not have a Rollout
// that was just created, and a second one would move the same Machines under a budget of its own.
func (r *Reconciler) createRollout(ctx context.Context, obs observation, assessed assessment) ([]event.Event, error) {
	var err error
	if obs.rollouts, err = rollouts(ctx, r.APIReader, obs.nodeType); err != nil {
		return nil, err
	}
	if obs.machines, err = machines(ctx, r.APIReader, obs.nodeType.Name); err != nil {
		return nil, err
	}
	decided := revisionrollout.Plan(facts(obs, assessed)).Rollout
	if decided == nil {
		return nil, nil
	}
	made := &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: decided.Name},
		Spec: v1alpha1.RolloutSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: obs.nodeType.Name},
			From:        decided.From.Revision, FromRendering: decided.From.Rendering, To: decided.To.Revision, ToRendering: decided.To.Rendering,
		},
	}
	if made.Spec.Paused, err = r.wasPaused(ctx, obs.nodeType.Name, decided.To); err != nil {
		return nil, err
	}
	if err := controllerutil.SetControllerReference(obs.nodeType, made, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("own Rollout %s: %w", made.Name, err)
	}
	err = r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return nil, r.verifyOwned(ctx, obs, "Rollout", made.Name, &v1alpha1.Rollout{})
	}
	if err != nil {
		return nil, fmt.Errorf("create Rollout %s: %w", made.Name, err)
	}
	return []event.Event{event.Normal("RolloutCreated", eventAction, fmt.Sprintf("Rollout %s moves the Machines from %s", made.Name, describeMove(decided.From, decided.To)))}, nil
}

// describeMove returns from what to what a Rollout moves Machines: revisions or, if the revision stays the same, renderings.
func describeMove(from, to v1alpha1.RenderedRevision) string {
	if from.Revision == to.Revision {
		return fmt.Sprintf("rendering %s to %s", from.Rendering, to.Rendering)
	}
	return fmt.Sprintf("revision %s to %s", from.Revision, to.Revision)
}

// deleteRevision plans once more on Machines and Rollouts that were read from the API server. A Machine that the cache does not
// have may need the revision, and nothing could create it again.
func (r *Reconciler) deleteRevision(ctx context.Context, obs observation, assessed assessment, name string) error {
	var err error
	if obs.rollouts, err = rollouts(ctx, r.APIReader, obs.nodeType); err != nil {
		return err
	}
	if obs.machines, err = machines(ctx, r.APIReader, obs.nodeType.Name); err != nil {
		return err
	}
	if !slices.Contains(revisionrollout.Plan(facts(obs, assessed)).DeleteRevisions, name) {
		return nil
	}
	return r.deleteObject(ctx, "NodeTypeRevision", obs.revisions[name])
}

func rolloutNamed(obs observation, name string) *v1alpha1.Rollout {
	for i := range obs.rollouts {
		if obs.rollouts[i].Name == name {
			return &obs.rollouts[i]
		}
	}
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deleteObject deletes the object, with its uid as a precondition.
func (r *Reconciler) deleteObject(ctx context.Context, kind string, object client.Object) error {
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s, which is no longer kept: %w", kind, object.GetName(), err)
	}
	return nil
}

package nodetype

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// claimNamespace writes the provider's name on its host namespace. Of two that try at once, the optimistic lock lets
// one through.
func (r *Reconciler) claimNamespace(ctx context.Context, seen observation) error {
	claimed := seen.namespace.DeepCopy()
	metav1.SetMetaDataAnnotation(&claimed.ObjectMeta, v1alpha1.AnnotationNodeProvider, seen.provider.Name)
	lock := client.MergeFromWithOptions(seen.namespace, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claimed, lock); err != nil {
		return fmt.Errorf("claim namespace %s for NodeProvider %s: %w", claimed.Name, seen.provider.Name, err)
	}
	return nil
}

// createMissing makes the revision and the rendering that were found and are not kept yet.
func (r *Reconciler) createMissing(ctx context.Context, seen observation, found finding) error {
	if found.revision == nil {
		return nil
	}
	if seen.revisions[found.revision.Name] == nil {
		if err := r.createRevision(ctx, seen, found.revision); err != nil {
			return err
		}
	}
	if !found.rendered.New {
		return nil
	}
	return r.createRendering(ctx, found)
}

// createRendering makes the rendering under its revision. Its name follows from its content, as the revision's does.
func (r *Reconciler) createRendering(ctx context.Context, found finding) error {
	owner := found.revision
	if owner.UID == "" {
		// The revision was made before, and the cache does not show it yet.
		owner = &v1alpha1.NodeTypeRevision{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(found.revision), owner); err != nil {
			return fmt.Errorf("read NodeTypeRevision %s: %w", found.revision.Name, err)
		}
	}
	made := found.rendered.Rendering.DeepCopy()
	if err := controllerutil.SetControllerReference(owner, made, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own NodeTypeRendering %s: %w", made.Name, err)
	}
	err := r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		// It may go away with a revision of the same name that was deleted.
		existing := &v1alpha1.NodeTypeRendering{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(made), existing); err != nil {
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

// createRevision makes the revision. Its name follows from its content, so making it twice is impossible.
func (r *Reconciler) createRevision(ctx context.Context, seen observation, made *v1alpha1.NodeTypeRevision) error {
	if err := controllerutil.SetControllerReference(seen.nodeType, made, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own NodeTypeRevision %s: %w", made.Name, err)
	}
	err := r.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return r.expectOwn(ctx, seen, "NodeTypeRevision", made.Name, &v1alpha1.NodeTypeRevision{})
	}
	if err != nil {
		return fmt.Errorf("create NodeTypeRevision %s: %w", made.Name, err)
	}
	return nil
}

// expectOwn: the cache may only lag behind our own creation, but a revision or a Rollout of a NodeType that was deleted
// and made again under the same name goes away with its old owner, and the next try makes a new one.
func (r *Reconciler) expectOwn(ctx context.Context, seen observation, kind, name string, existing client.Object) error {
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	if !metav1.IsControlledBy(existing, seen.nodeType) {
		return fmt.Errorf("%s %s exists and is not owned by NodeType %s (uid %s): delete it, or wait until it is collected", kind, name, seen.nodeType.Name, seen.nodeType.UID)
	}
	return nil
}

package inuse

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inuse"
)

// act adds or removes the finalizer. The event of this write starts the next reconcile, which writes the status.
func (r *Reconciler) act(ctx context.Context, o object, action inuse.Action) error {
	changed := o.DeepCopyObject().(client.Object)
	switch action {
	case inuse.Protect:
		controllerutil.AddFinalizer(changed, v1alpha1.InUseFinalizer)
	case inuse.Release:
		if provider, ok := o.Object.(*v1alpha1.NodeProvider); ok {
			if err := r.returnNamespace(ctx, provider); err != nil {
				return err
			}
		}
		controllerutil.RemoveFinalizer(changed, v1alpha1.InUseFinalizer)
	}
	lock := client.MergeFromWithOptions(o.Object, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, changed, lock)); err != nil {
		return fmt.Errorf("%s %s %s: %w", action, o.ref.Kind, o.ref.Name, err)
	}
	return nil
}

// returnNamespace removes the name of a NodeProvider that goes from its host namespace, so that another one can claim it. A namespace in which
// the manager has no permission any more keeps it.
func (r *Reconciler) returnNamespace(ctx context.Context, provider *v1alpha1.NodeProvider) error {
	var namespace corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: provider.Spec.HostNamespace}, &namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Annotations[v1alpha1.AnnotationNodeProvider] != provider.Name {
		return nil
	}
	free := namespace.DeepCopy()
	delete(free.Annotations, v1alpha1.AnnotationNodeProvider)
	err := r.Client.Patch(ctx, free, client.MergeFromWithOptions(&namespace, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Info("The host namespace of a NodeProvider that goes keeps its annotation, because Ingot may not change it any more",
			"nodeProvider", provider.Name, "namespace", namespace.Name, "annotation", v1alpha1.AnnotationNodeProvider)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("return namespace %s of NodeProvider %s: %w", namespace.Name, provider.Name, err)
	}
	return nil
}

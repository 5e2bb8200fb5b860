package step

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TakeOver makes owner the controller of owned, which a backup tool created again without its owner, with the uid of an earlier one, or without its
// finalizers. It changes owned, so that this must not belong to the cache.
func TakeOver(ctx context.Context, c client.Client, owner, owned client.Object, finalizers ...string) error {
	kind, err := apiutil.GVKForObject(owner, c.Scheme())
	if err != nil {
		return fmt.Errorf("own %s %s: %w", Kind(owned), owned.GetName(), err)
	}
	before := owned.DeepCopyObject().(client.Object)
	owned.SetOwnerReferences(slices.DeleteFunc(owned.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		group, err := schema.ParseGroupVersion(o.APIVersion)
		return err == nil && group.Group == kind.Group && o.Kind == kind.Kind
	}))
	for _, name := range finalizers {
		controllerutil.AddFinalizer(owned, name)
	}
	if err := controllerutil.SetControllerReference(owner, owned, c.Scheme()); err != nil {
		return fmt.Errorf("own %s %s: %w", Kind(owned), owned.GetName(), err)
	}
	if err := c.Patch(ctx, owned, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("take over %s %s: %w", Kind(owned), owned.GetName(), err)
	}
	return nil
}

// Register writes into the annotations of a BareMetalHost or NodePool which object it is, so that one that is created again from a backup is known as
// such. It changes only the metadata of the object, also where the answer of the API server has another status than the caller.
func Register(ctx context.Context, c client.Client, object client.Object) error {
	after := object.DeepCopyObject().(client.Object)
	v1alpha1.Register(after)
	if err := c.Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("register %s %s: %w", Kind(object), object.GetName(), err)
	}
	object.SetAnnotations(after.GetAnnotations())
	object.SetResourceVersion(after.GetResourceVersion())
	return nil
}

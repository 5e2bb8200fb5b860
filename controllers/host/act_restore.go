package host

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// mustTakeOver reports whether the HostRecord came out of a backup with the host, without its owner or its finalizer. Backup tools drop both.
// The record of an earlier host of the same name is not taken over: it may be that of another server.
func mustTakeOver(record *v1alpha1.HostRecord, host *metal3.BareMetalHost) bool {
	if !record.DeletionTimestamp.IsZero() || !host.DeletionTimestamp.IsZero() {
		return false
	}
	if isOwned(record, host) {
		return !slices.Contains(record.Finalizers, v1alpha1.HostFinalizer)
	}
	return v1alpha1.IsRestored(host)
}

// takeOverRecord makes the host the owner of the record. Without it: the garbage collector deletes the record, which alone tells what is on the disks.
func (r *Reconciler) takeOverRecord(ctx context.Context, record *v1alpha1.HostRecord, host *metal3.BareMetalHost) error {
	before := record.DeepCopy()
	record.OwnerReferences = slices.DeleteFunc(record.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "BareMetalHost" })
	controllerutil.AddFinalizer(record, v1alpha1.HostFinalizer)
	if err := controllerutil.SetControllerReference(host, record, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own HostRecord: %w", err)
	}
	if err := r.Client.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("take over HostRecord: %w", err)
	}
	return nil
}

// register writes which object the host is, so that one that is created again from a backup is known as such.
func (r *Reconciler) register(ctx context.Context, host *metal3.BareMetalHost, isDue bool) error {
	if !isDue {
		return nil
	}
	before, status := host.DeepCopy(), host.Status
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, v1alpha1.AnnotationRegisteredAs, v1alpha1.RegisteredAs(host))
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("register the host: %w", err)
	}
	host.Status = status
	return nil
}

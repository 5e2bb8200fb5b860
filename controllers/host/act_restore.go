package host

import (
	"context"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
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
	return step.TakeOver(ctx, r.Client, host, record, v1alpha1.HostFinalizer)
}

// register writes which object the host is, so that one that is created again from a backup is known as such.
func (r *Reconciler) register(ctx context.Context, host *metal3.BareMetalHost, isDue bool) error {
	if !isDue {
		return nil
	}
	return step.Register(ctx, r.Client, host)
}

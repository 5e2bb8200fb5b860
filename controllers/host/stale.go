package host

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// overtaken says whether the record was written for a later generation of the host than the one that was read: another process
// served the host before this one, and has seen more than this one's cache. Its power-off may be what a Node was deleted for.
func overtaken(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
	return record.Status.Power != nil && record.Status.Power.ObservedGeneration > host.Generation
}

// current is the host, read from the API server itself where the record has overtaken it; nil: there is nothing to be served any
// more.
func (r *Reconciler) current(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (*metal3.BareMetalHost, error) {
	if !overtaken(host, record) {
		return host, nil
	}
	now := &metal3.BareMetalHost{}
	if err := r.Direct.Get(ctx, client.ObjectKeyFromObject(host), now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != host.UID || !ours(now) || hostFacts(now).Paused {
		return nil, nil
	}
	return now, nil
}

// confirm is for what switches the power and comes without a write of the record, whose optimistic lock would tell that others
// have gone on: the record must be the one that was read.
func (r *Reconciler) confirm(ctx context.Context, record *v1alpha1.HostRecord, action plan.ActionKind) error {
	switch action {
	case plan.ActionSetPower, plan.ActionCancel:
	default:
		return nil // the installer compares with the attempt that the API server has
	}
	var now v1alpha1.HostRecord
	if err := r.Direct.Get(ctx, client.ObjectKeyFromObject(record), &now); err != nil {
		return fmt.Errorf("read HostRecord: %w", err)
	}
	if now.UID != record.UID || now.ResourceVersion != record.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("hostrecords").GroupResource(), record.Name, errors.New("it was changed since it was read"))
	}
	return nil
}

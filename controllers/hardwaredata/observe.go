package hardwaredata

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&metal3.BareMetalHost{}, builder.WithPredicates(step.OnUpdate(isInspectedOtherwise))).
		Watches(&v1alpha1.NodeProvider{}, handler.EnqueueRequestsFromMapFunc(r.hostsOf), builder.WithPredicates(step.OnUpdate(isServedOtherwise)))
}

// isInspectedOtherwise reports whether the host was inspected again, or may be labelled now and could not be before. Its HardwareData is written before the
// status says that the inspection has ended.
func isInspectedOtherwise(before, after *metal3.BareMetalHost) bool {
	return before.Status.OperationHistory.Inspect != after.Status.OperationHistory.Inspect || (before.Status.HardwareDetails == nil) != (after.Status.HardwareDetails == nil) ||
		canLabel(before) != canLabel(after)
}

// isServedOtherwise reports whether a NodeProvider has other hosts, or another kind.
func isServedOtherwise(before, after *v1alpha1.NodeProvider) bool {
	return (before.Spec.Metal3 == nil) != (after.Spec.Metal3 == nil) || before.Spec.HostNamespace != after.Spec.HostNamespace
}

// hostsOf returns the hosts of a metal3 NodeProvider.
func (r *Reconciler) hostsOf(ctx context.Context, o client.Object) []reconcile.Request {
	provider, isProvider := o.(*v1alpha1.NodeProvider)
	if !isProvider || provider.Spec.Metal3 == nil {
		return nil
	}
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.InNamespace(provider.Spec.HostNamespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the hosts of a NodeProvider", "nodeprovider", provider.Name)
		return nil
	}
	var requests []reconcile.Request
	for i := range hosts.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&hosts.Items[i])})
	}
	return requests
}

// observe returns the host and what was found in it. The latter is nil where the host is not to be labelled, or was not inspected.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*metal3.BareMetalHost, *v1alpha1.HostInventory, error) {
	var providers v1alpha1.NodeProviderList
	if err := r.Client.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list NodeProviders: %w", err)
	}
	isServed := func(p v1alpha1.NodeProvider) bool {
		return p.Spec.Metal3 != nil && p.Spec.HostNamespace == key.Namespace
	}
	if !slices.ContainsFunc(providers.Items, isServed) {
		return nil, nil, nil
	}
	host := &metal3.BareMetalHost{}
	if err := r.Client.Get(ctx, key, host); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if !canLabel(host) || !isInspected(host) {
		return host, nil, nil
	}
	found, err := r.readHardware(ctx, host)
	return host, found, err
}

// isInspected reports whether the host may have been inspected. Before that there is nothing to read.
func isInspected(host *metal3.BareMetalHost) bool {
	switch host.Status.Provisioning.State {
	case metal3.StateNone, metal3.StateRegistering, metal3.StateInspecting:
		return host.Status.HardwareDetails != nil
	}
	return true
}

// readHardware returns what the HardwareData of the host says or, without one, the host's status. It is nil where the host was not inspected.
func (r *Reconciler) readHardware(ctx context.Context, host *metal3.BareMetalHost) (*v1alpha1.HostInventory, error) {
	// The Go type that Ingot is built with may have no field for accelerators.
	data := &unstructured.Unstructured{}
	data.SetGroupVersionKind(metal3.GroupVersion.WithKind("HardwareData"))
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(host), data)
	switch {
	case apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Info("HardwareData not read: apply config/metal3 of this version", "error", err.Error())
	case err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read HardwareData: %w", err)
	}
	found, isFound, nestedErr := unstructured.NestedMap(data.Object, "spec", "hardware")
	if err != nil || nestedErr != nil || !isFound {
		if host.Status.HardwareDetails == nil {
			return nil, nil
		}
		return inventory.OfHardwareData(*host.Status.HardwareDetails, nil), nil
	}
	var details struct {
		metal3.HardwareDetails `json:",inline"`
		Accelerators           []inventory.Accelerator `json:"accelerators,omitempty"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &details); err != nil {
		return nil, fmt.Errorf("read HardwareData of host %s/%s: %w", host.Namespace, host.Name, err)
	}
	return inventory.OfHardwareData(details.HardwareDetails, details.Accelerators), nil
}

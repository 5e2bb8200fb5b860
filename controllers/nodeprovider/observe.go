package nodeprovider

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// observation is everything that one reconcile of a NodeProvider reads. observe sets all of it.
type observation struct {
	// provider is nil where it does not exist, or is being deleted and nothing keeps it. Nothing else is read of one that is being deleted.
	provider *v1alpha1.NodeProvider
	// namespace is the host namespace; nil: it does not exist.
	namespace *corev1.Namespace
	// foreignHost is the name of a host in it that a baremetal-operator serves; empty: there is none.
	foreignHost string
}

// owner returns the name of the NodeProvider that has claimed the namespace.
func (obs observation) owner() string {
	return obs.namespace.Annotations[v1alpha1.AnnotationNodeProvider]
}

func (r *Reconciler) observe(ctx context.Context, name string) (observation, error) {
	provider := &v1alpha1.NodeProvider{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, provider); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	if provider.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(provider, v1alpha1.InUseFinalizer) {
		return observation{}, nil
	}
	obs := observation{provider: provider}
	if provider.DeletionTimestamp != nil {
		return obs, nil
	}
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: provider.Spec.HostNamespace}, namespace); err != nil {
		return obs, client.IgnoreNotFound(err)
	}
	obs.namespace = namespace
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return obs, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	if i := slices.IndexFunc(hosts.Items, func(h metal3.BareMetalHost) bool { return isForeign(&h) }); i >= 0 {
		obs.foreignHost = hosts.Items[i].Name
	}
	return obs, nil
}

// isForeign reports whether a baremetal-operator serves the host.
func isForeign(host client.Object) bool {
	return slices.Contains(host.GetFinalizers(), metal3.BareMetalHostFinalizer)
}

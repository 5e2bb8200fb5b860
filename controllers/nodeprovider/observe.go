package nodeprovider

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	// isLimited says that the manager may not create the HostRecords that the hosts need.
	isLimited bool
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
	if provider.Spec.Metal3 == nil && !isReady(provider) {
		return obs, r.observeRights(ctx, &obs)
	}
	return obs, nil
}

// isReady reports whether the present specification was found to be ready. Its rights are not asked for again: every host that is created starts a reconcile.
func isReady(provider *v1alpha1.NodeProvider) bool {
	return provider.Status.ObservedGeneration == provider.Generation && meta.IsStatusConditionTrue(provider.Status.Conditions, v1alpha1.ConditionReady)
}

// observeRights asks the API server what the manager may do in the host namespace. Where nobody may ask that, or the API server cannot tell, it counts as allowed.
func (r *Reconciler) observeRights(ctx context.Context, obs *observation) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: obs.namespace.Name, Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "hostrecords",
	}}}
	switch err := r.Client.Create(ctx, review); {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("ask whether the manager may create HostRecords in namespace %s: %w", obs.namespace.Name, err)
	}
	obs.isLimited = !review.Status.Allowed && review.Status.EvaluationError == ""
	return nil
}

// isForeign reports whether a baremetal-operator serves the host.
func isForeign(host client.Object) bool {
	return slices.Contains(host.GetFinalizers(), metal3.BareMetalHostFinalizer)
}

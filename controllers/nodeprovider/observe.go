package nodeprovider

import (
	"context"
	"fmt"
	"slices"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// observation is everything that one reconcile of a NodeProvider reads. observe sets all of it.
type observation struct {
	// provider is nil where it does not exist, or is being deleted and nothing keeps it. Of one that is being deleted only the namespace is read beside it.
	provider *v1alpha1.NodeProvider
	// namespace is the host namespace; nil: it does not exist.
	namespace *corev1.Namespace
	// foreignHost is the name of a host in it that a baremetal-operator serves; empty: there is none.
	foreignHost string
	// isLimited says that the manager may not create the HostRecords that the hosts need.
	isLimited bool
}

// owner returns the name of the NodeProvider that has claimed the namespace; empty: none has.
func (obs observation) owner() string {
	if obs.namespace == nil {
		return ""
	}
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
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: provider.Spec.HostNamespace}, namespace); err != nil {
		return obs, client.IgnoreNotFound(err)
	}
	obs.namespace = namespace
	if provider.DeletionTimestamp != nil {
		return obs, nil
	}
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.InNamespace(namespace.Name), client.UnsafeDisableDeepCopy); err != nil {
		return obs, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	if i := slices.IndexFunc(hosts.Items, func(h metal3.BareMetalHost) bool { return isForeign(&h) }); i >= 0 {
		obs.foreignHost = hosts.Items[i].Name
	}
	if provider.Spec.Metal3 == nil {
		return obs, r.observeRights(ctx, &obs)
	}
	return obs, nil
}

// rightsInterval is how often the manager asks what it may do where it may do what is needed.
const rightsInterval = 10 * time.Minute

// observeRights asks the API server what the manager may do in the host namespace. Where nobody may ask that, or the API server cannot tell, it counts as allowed.
func (r *Reconciler) observeRights(ctx context.Context, obs *observation) error {
	now := r.Clock.Now()
	if wasLimited, left := r.rights.get(obs.provider, now, rightsInterval); left > 0 && !wasLimited {
		return nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: obs.namespace.Name, Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "hostrecords",
	}}}
	switch err := r.Client.Create(ctx, review); {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("ask whether the manager may create HostRecords in namespace %s: %w", obs.namespace.Name, err)
	}
	if review.Status.EvaluationError == "" {
		obs.isLimited = !review.Status.Allowed
		r.rights.set(obs.provider, obs.isLimited, now)
	}
	return nil
}

// isForeign reports whether a baremetal-operator serves the host.
func isForeign(host client.Object) bool {
	return slices.Contains(host.GetFinalizers(), metal3.BareMetalHostFinalizer)
}

package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&metal3.BareMetalHost{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1alpha1.HostRecord{}, builder.WithPredicates(recordChanged)).
		Watches(&metal3.BareMetalHost{}, hostindex.EnqueueSameServer(r.Client)).
		Watches(&v1alpha1.HostRecord{}, hostindex.EnqueueSameServer(r.Client)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.hostsOf(client.Object.GetName)),
			builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&v1alpha1.NodeProvider{}, handler.EnqueueRequestsFromMapFunc(r.hostsOf(hostNamespace)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
}

// recordChanged lets through updates of the spec, which the machine controller writes, and the end of an attempt. Its progress is left
// out.
var recordChanged = step.OnUpdate(func(before, after *v1alpha1.HostRecord) bool {
	return before.Generation != after.Generation || attemptEnd(before) != attemptEnd(after)
})

// attemptEnd returns the state of the attempt and whether it is in its last step, in which the agent has reported that it is done.
func attemptEnd(r *v1alpha1.HostRecord) string {
	a := r.Status.Progress()
	if a == nil {
		return ""
	}
	return a.State + "/" + fmt.Sprint(a.Step == string(hardware.StepFinishing))
}

// hostNamespace returns the namespace of a NodeProvider's hosts.
func hostNamespace(o client.Object) string {
	if p, ok := o.(*v1alpha1.NodeProvider); ok {
		return p.Spec.HostNamespace
	}
	return ""
}

// hostsOf maps an object to the hosts of the namespace that the function returns for it.
func (r *Reconciler) hostsOf(namespace func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var hosts metal3.BareMetalHostList
		if err := r.Client.List(ctx, &hosts, client.InNamespace(namespace(o))); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing hosts", "namespace", namespace(o))
			return nil
		}
		requests := make([]reconcile.Request, 0, len(hosts.Items))
		for i := range hosts.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&hosts.Items[i])})
		}
		return requests
	}
}

package host

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host/secretwatch"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&metal3.BareMetalHost{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(&r.lanes).
		WatchesRawSource(r.secretWatch).
		Owns(&v1alpha1.HostRecord{}, builder.WithPredicates(recordChanged)).
		Watches(&metal3.BareMetalHost{}, hostindex.EnqueueSameServer(r.Client)).
		Watches(&v1alpha1.HostRecord{}, hostindex.EnqueueSameServer(r.Client)).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(hostOf), builder.WithPredicates(kubeletLost)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.hostsOf(client.Object.GetName)),
			builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&v1alpha1.NodeProvider{}, handler.EnqueueRequestsFromMapFunc(r.hostsOf(hostNamespace)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, bootAddressCorrected)))
}

// bootAddressCorrected lets through updates after which hosts no longer wait for the boot service.
var bootAddressCorrected = step.OnUpdate(func(before, after *v1alpha1.NodeProvider) bool {
	return before.BootProblem() != "" && after.BootProblem() == ""
})

// recordChanged lets through updates of the spec, which the machine controller writes, the end of an attempt, and what the boot service notices
// in it. Its progress is left out.
var recordChanged = step.OnUpdate(func(before, after *v1alpha1.HostRecord) bool {
	return before.Generation != after.Generation || attemptEnd(before) != attemptEnd(after) || findingCount(before) != findingCount(after)
})

// findingCount returns how many kinds of findings the attempt has.
func findingCount(r *v1alpha1.HostRecord) int {
	if a := r.Status.Progress(); a != nil {
		return len(a.Findings)
	}
	return 0
}

// attemptEnd returns the state of the attempt and whether it is in its last step, in which the agent has reported that it is done.
func attemptEnd(r *v1alpha1.HostRecord) string {
	a := r.Status.Progress()
	if a == nil {
		return ""
	}
	return a.State + "/" + fmt.Sprint(a.Step == string(hardware.StepFinishing))
}

// kubeletLost lets through updates of Machines whose Node has turned Unknown or was deleted. The host is then reconciled at once, which asks
// its BMC for the power. Without it: a server loses its power, and for minutes, until the host is observed again, everybody is told to look at
// a kubelet that cannot run.
var kubeletLost = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !isKubeletSilent(e.ObjectOld) && isKubeletSilent(e.ObjectNew) || hasVerdict(e.ObjectOld) && !hasVerdict(e.ObjectNew)
	},
}

// hasVerdict reports whether the Machine's node was judged. The verdict is removed when the Node is gone.
func hasVerdict(o client.Object) bool {
	m, ok := o.(*v1alpha1.Machine)
	return ok && m.Status.Verdict != nil
}

// isKubeletSilent reports whether the Machine's verdict says that the tenant's API server misses the node's kubelet.
func isKubeletSilent(o client.Object) bool {
	m, ok := o.(*v1alpha1.Machine)
	return ok && m.Status.Verdict != nil && slices.ContainsFunc(m.Status.Verdict.Checks, func(c v1alpha1.Check) bool {
		return c.Name == verdict.CheckReady && c.Observed == string(corev1.ConditionUnknown)
	})
}

// hostOf maps a Machine to the host that it has.
func hostOf(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.Machine)
	if !ok || m.Status.HostRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Status.HostRef.Namespace, Name: m.Status.HostRef.Name}}}
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

// indexCredentials is the index of the BareMetalHosts by the name of the Secret of their BMC.
const indexCredentials = "ingot.credentials"

func credentialsIndex(o client.Object) []string {
	if host, ok := o.(*metal3.BareMetalHost); ok && host.Spec.BMC.CredentialsName != "" {
		return []string{host.Spec.BMC.CredentialsName}
	}
	return nil
}

// hostsNaming maps a Secret to the hosts whose BMC is used with it, and has it read again. When the watch begins, the hosts that have tried that version are left
// out. Without that: a manager that starts asks every BMC twice.
func (r *Reconciler) hostsNaming(ctx context.Context, change secretwatch.Change) []reconcile.Request {
	r.secrets.forget(change.Secret, r.Clock.Now())
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.InNamespace(change.Secret.Namespace), client.MatchingFields{indexCredentials: change.Secret.Name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the hosts of a Secret", "secret", change.Secret)
		return nil
	}
	var requests []reconcile.Request
	for i := range hosts.Items {
		if h := &hosts.Items[i]; !change.IsFirstList || h.Status.TriedCredentials.Version != change.Version {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(h)})
		}
	}
	provider, err := r.provider(ctx, change.Secret.Namespace)
	if err != nil || provider == nil || provider.Spec.Redfish == nil || change.IsFirstList {
		return requests
	}
	if ref := provider.Spec.Redfish.CABundleSecretRef; ref != nil && ref.Name == change.Secret.Name {
		return r.hostsOf(hostNamespace)(ctx, provider)
	}
	return requests
}

// endSecretWatch ends the watch of a namespace that belongs to no NodeProvider any more, or has no hosts.
func (r *Reconciler) endSecretWatch(ctx context.Context, provider *v1alpha1.NodeProvider, namespace string) {
	var hosts metal3.BareMetalHostList
	if provider != nil && (r.Client.List(ctx, &hosts, client.InNamespace(namespace), client.Limit(1)) != nil || len(hosts.Items) > 0) {
		return
	}
	r.secretWatch.End(namespace)
}

package nodequota

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/step"
)

// enqueue adds the NodeQuota of a Machine's namespace.
var enqueue = step.EnqueueAfter(batchDelay, func(_ context.Context, machine client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.GetNamespace(), Name: v1alpha1.NodeQuotaName}}}
})

// isCountedOtherwise reports whether a change of a Machine changes what is decided.
func isCountedOtherwise(before, after *v1alpha1.Machine) bool {
	was, is := quota.MachineOf(before, 0, false), quota.MachineOf(after, 0, false)
	return was.HasHost != is.HasHost || was.MayHaveHost != is.MayHaveHost || was.IsInLine != is.IsInLine
}

// all returns every NodeQuota.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.NodeQuotaList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing NodeQuotas")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

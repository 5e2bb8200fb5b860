package validation

import (
	"context"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

// recentAge is how long what was read of a tenant is good for, beside its watched objects.
const recentAge = 10 * time.Second

// recent remembers for a moment what was read, so that many waiting nodes of a tenant cost one call.
type recent[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]reading[V]
}

type reading[V any] struct {
	at    time.Time
	value V
}

func (r *recent[K, V]) get(key K, now time.Time, read func() V) V {
	r.mu.Lock()
	known, ok := r.known[key]
	r.mu.Unlock()
	if age := now.Sub(known.at); ok && age >= 0 && age < recentAge {
		return known.value
	}
	value := read()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[K]reading[V]{}
	}
	// Nobody says when a tenant is gone: what is too old to be used goes with the next reading.
	maps.DeleteFunc(r.known, func(_ K, old reading[V]) bool { return now.Sub(old.at) >= recentAge })
	r.known[key] = reading[V]{at: now, value: value}
	return value
}

// daemonSets of the tenant. The verdict does not depend on them: where they cannot be listed, hints are left out.
func (r *Reconciler) daemonSets(ctx context.Context, tenant types.NamespacedName, c client.Client) []appsv1.DaemonSet {
	return r.recentSets.get(tenant, r.Clock.Now(), func() []appsv1.DaemonSet {
		var list appsv1.DaemonSetList
		if err := c.List(ctx, &list); err != nil {
			ctrl.LoggerFrom(ctx).Info("The tenant's DaemonSets cannot be listed", "TenantCluster", tenant, "error", err.Error())
		}
		return list.Items
	})
}

// classKey is a DeviceClass of a tenant.
type classKey struct {
	tenant types.NamespacedName
	name   string
}

// deviceClasses reads those that the judgement needs: none once it admitted the node.
func (r *Reconciler) deviceClasses(ctx context.Context, seen observation, in verdict.Input) map[string]verdict.DeviceClass {
	if !verdict.NeedsDeviceClasses(in) {
		return nil
	}
	out := map[string]verdict.DeviceClass{}
	for _, e := range in.Expectation.Slices {
		for _, c := range e.DeviceClasses {
			out[c.Name] = r.recentClasses.get(classKey{seen.key, c.Name}, in.Now, func() verdict.DeviceClass { return readClass(ctx, seen.tenant, c.Name) })
		}
	}
	return out
}

func readClass(ctx context.Context, c client.Client, name string) verdict.DeviceClass {
	var class resourcev1.DeviceClass
	err := c.Get(ctx, client.ObjectKey{Name: name}, &class)
	switch {
	case apierrors.IsNotFound(err):
		return verdict.DeviceClass{Missing: true}
	case err != nil:
		return verdict.DeviceClass{Unread: err.Error()}
	}
	return verdict.DeviceClass{Selectors: verdict.Compile(&class)}
}

package inuse

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inuse"
	"github.com/ingot-dev/ingot/controllers/step"
)

// observation is everything that one reconcile reads. observe sets all of it. The objects belong to the cache and must not be changed.
type observation struct {
	// objects are those that others depend on.
	objects []object
	// users are the users of each of them.
	users inuse.Users
}

// object is one that others depend on.
type object struct {
	client.Object
	ref inuse.Object
}

func (o object) state() inuse.State {
	return inuse.State{Deleting: o.GetDeletionTimestamp() != nil, Finalizer: controllerutil.ContainsFinalizer(o.Object, v1alpha1.InUseFinalizer)}
}

// usageOf returns the fields of the status that this controller writes. A revision and a rendering have no conditions.
func usageOf(o client.Object) (usedBy **v1alpha1.UsedBy, conditions *[]metav1.Condition) {
	switch o := o.(type) {
	case *v1alpha1.NodeType:
		return &o.Status.UsedBy, &o.Status.Conditions
	case *v1alpha1.NodeProvider:
		return &o.Status.UsedBy, &o.Status.Conditions
	case *v1alpha1.OSImage:
		return &o.Status.UsedBy, &o.Status.Conditions
	case *v1alpha1.NodeTypeRevision:
		return &o.Status.UsedBy, nil
	case *v1alpha1.NodeTypeRendering:
		return &o.Status.UsedBy, nil
	}
	return new(*v1alpha1.UsedBy), nil
}

func (r *Reconciler) observe(ctx context.Context, reader client.Reader) (observation, error) {
	var (
		nodeTypes  v1alpha1.NodeTypeList
		providers  v1alpha1.NodeProviderList
		images     v1alpha1.OSImageList
		revisions  v1alpha1.NodeTypeRevisionList
		renderings v1alpha1.NodeTypeRenderingList
		rollouts   v1alpha1.RolloutList
		pools      v1alpha1.NodePoolList
		machines   v1alpha1.MachineList
		hosts      metal3.BareMetalHostList
	)
	for _, list := range []client.ObjectList{&nodeTypes, &providers, &images, &revisions, &renderings, &rollouts, &pools, &machines, &hosts} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return observation{}, fmt.Errorf("list %ss: %w", step.Kind(list), err)
		}
	}
	obs := observation{users: inuse.FindUsers(inuse.Facts{
		NodeTypes: nodeTypes.Items, NodeProviders: providers.Items, Revisions: revisions.Items, Rollouts: rollouts.Items,
		NodePools: pools.Items, Machines: machines.Items, Hosts: hosts.Items,
	})}
	add := func(kind string, o client.Object) {
		obs.objects = append(obs.objects, object{o, inuse.Object{Kind: kind, Name: o.GetName()}})
	}
	for i := range nodeTypes.Items {
		add(inuse.NodeType, &nodeTypes.Items[i])
	}
	for i := range providers.Items {
		add(inuse.NodeProvider, &providers.Items[i])
	}
	for i := range images.Items {
		add(inuse.OSImage, &images.Items[i])
	}
	for i := range revisions.Items {
		add(inuse.Revision, &revisions.Items[i])
	}
	for i := range renderings.Items {
		add(inuse.Rendering, &renderings.Items[i])
	}
	return obs, nil
}

package tenantaccess

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PoolNameField is the field by which ResourceSlices of a pool can be listed from an Access's Cache. Drivers of node-local
// devices name the pool after the Node.
const PoolNameField = "spec.pool.name"

// maxPools bounds the pools that are followed for one node: it has one for each driver, as a rule named after the node.
const maxPools = 16

// SlicesOf lists what concerns a node from the cache: the ResourceSlices that name it, and those of the pools that these are in
// or that are named after the node. None where the tenant serves none. They are the cache's own: do not change them.
func (a *Access) SlicesOf(ctx context.Context, node string) ([]resourcev1.ResourceSlice, error) {
	if !a.SlicesServed {
		return nil, nil
	}
	found, err := a.slicesBy(ctx, NodeNameField, node)
	if err != nil {
		return nil, err
	}
	seen, pools := map[string]bool{}, map[string]bool{node: true}
	for i := range found {
		seen[found[i].Name] = true
		if len(pools) < maxPools {
			pools[found[i].Spec.Pool.Name] = true
		}
	}
	for pool := range pools {
		more, err := a.slicesBy(ctx, PoolNameField, pool)
		if err != nil {
			return nil, err
		}
		for i := range more {
			if !seen[more[i].Name] {
				seen[more[i].Name] = true
				found = append(found, more[i])
			}
		}
	}
	return found, nil
}

func (a *Access) slicesBy(ctx context.Context, field, value string) ([]resourcev1.ResourceSlice, error) {
	var list resourcev1.ResourceSliceList
	if err := a.Cache.List(ctx, &list, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ResourceSlices with %s %q: %w", field, value, err)
	}
	return list.Items, nil
}

func slicePool(object client.Object) []string {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok && slice.Spec.Pool.Name != "" {
		return []string{slice.Spec.Pool.Name}
	}
	return nil
}

// concerns names the nodes whose verdict a slice may change: the one it names, and the one its pool is named after.
func concerns(slice *resourcev1.ResourceSlice) []string {
	pool := slice.Spec.Pool.Name
	if slice.Spec.NodeName == nil || *slice.Spec.NodeName == pool {
		return []string{pool}
	}
	return []string{*slice.Spec.NodeName, pool}
}

// trimDevices drops what no verdict and no selector looks at. Drivers that publish every partition of a GPU say much of it.
func trimDevices(spec *resourcev1.ResourceSliceSpec) {
	spec.SharedCounters = nil
	for i := range spec.Devices {
		d := &spec.Devices[i]
		d.ConsumesCounters, d.NodeAllocatableResources = nil, nil
		d.BindingConditions, d.BindingFailureConditions = nil, nil
	}
}

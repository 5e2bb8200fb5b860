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

// maxPools limits the pools whose slices are read for one node. A node has one pool for each driver, usually named after the node.
const maxPools = 16

// SlicesOf returns the ResourceSlices that concern a node from the cache: those that name it, and those of the same pools and of the
// pool that is named after the node. It returns none if the tenant does not serve ResourceSlices. The objects belong to the cache and
// must not be changed.
func (a *Access) SlicesOf(ctx context.Context, node string) ([]resourcev1.ResourceSlice, error) {
	if !a.SlicesServed {
		return nil, nil
	}
	found, err := a.listSlices(ctx, NodeNameField, node)
	if err != nil {
		return nil, err
	}
	added, pools := map[string]bool{}, map[string]bool{node: true}
	for i := range found {
		added[found[i].Name] = true
		if len(pools) < maxPools {
			pools[found[i].Spec.Pool.Name] = true
		}
	}
	for pool := range pools {
		more, err := a.listSlices(ctx, PoolNameField, pool)
		if err != nil {
			return nil, err
		}
		for i := range more {
			if !added[more[i].Name] {
				added[more[i].Name] = true
				found = append(found, more[i])
			}
		}
	}
	return found, nil
}

func (a *Access) listSlices(ctx context.Context, field, value string) ([]resourcev1.ResourceSlice, error) {
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

// affectedNodes returns the names of the nodes whose verdict a slice may change: the node that it names, and the node that its pool is
// named after.
func affectedNodes(slice *resourcev1.ResourceSlice) []string {
	pool := slice.Spec.Pool.Name
	if slice.Spec.NodeName == nil || *slice.Spec.NodeName == pool {
		return []string{pool}
	}
	return []string{*slice.Spec.NodeName, pool}
}

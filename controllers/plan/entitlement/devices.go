package entitlement

import (
	"context"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/ingot-dev/ingot/api/input"
)

// Found are the devices of the shared cluster that a class selects.
type Found struct {
	// Admitted and Gated are those of nodes with and without admission. A device that is of no node counts as Admitted: no gate keeps it.
	Admitted, Gated int
}

// Find tries the selector of a DeviceClass on the devices that are published. isGated reports whether a node is not admitted. The error says why the
// selector cannot be used.
func Find(selector string, published []resourcev1.ResourceSlice, isGated func(node string) bool) (Found, error) {
	program := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}).CompileCELExpression(selector, cel.Options{})
	if program.Error != nil {
		return Found{}, fmt.Errorf("the selector cannot be compiled: %s", program.Error.Detail)
	}
	if program.MaxCost > resourcev1.CELSelectorExpressionMaxCost {
		return Found{}, fmt.Errorf("the selector may cost %d, and the limit is %d", program.MaxCost, resourcev1.CELSelectorExpressionMaxCost)
	}
	var out Found
	for i := range published {
		slice := &published[i].Spec
		for j := range slice.Devices {
			device := &slice.Devices[j]
			matches, _, err := program.DeviceMatches(context.Background(), cel.Device{
				Driver: slice.Driver, AllowMultipleAllocations: device.AllowMultipleAllocations, Attributes: device.Attributes, Capacity: device.Capacity,
			})
			if err != nil {
				return Found{}, fmt.Errorf("the selector fails on device %s of driver %s: %w", input.Line(device.Name, 64), input.Line(slice.Driver, 64), err)
			}
			if !matches {
				continue
			}
			if node := nodeOf(slice, device); node != "" && isGated(node) {
				out.Gated++
			} else {
				out.Admitted++
			}
		}
	}
	return out, nil
}

// nodeOf returns the node of a device; empty: several nodes can use it.
func nodeOf(slice *resourcev1.ResourceSliceSpec, device *resourcev1.Device) string {
	for _, name := range []*string{device.NodeName, slice.NodeName} {
		if name != nil {
			return *name
		}
	}
	return ""
}

// Usage is what claims have and ask for of a class.
type Usage struct{ Allocated, Pending int }

// Add returns the sum.
func (u Usage) Add(other Usage) Usage {
	return Usage{Allocated: u.Allocated + other.Allocated, Pending: u.Pending + other.Pending}
}

// CountResources returns what the pods of the tenant have of resources and wait for: what Kubernetes counts of the quotas, less that of pods without a node.
func CountResources(quotas []corev1.ResourceList, waiting []Pod) map[string]Usage {
	out := map[string]Usage{}
	for _, used := range quotas {
		for name, quantity := range used {
			if resource, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix); isRequest {
				out[resource] = out[resource].Add(Usage{Allocated: int(min(quantity.Value(), math.MaxInt32))})
			}
		}
	}
	for _, p := range waiting {
		for name, n := range p.Resources {
			if u, isCounted := out[name]; isCounted {
				n := min(int(min(n, math.MaxInt32)), u.Allocated)
				out[name] = Usage{Allocated: u.Allocated - n, Pending: u.Pending + n}
			}
		}
	}
	return out
}

// Count returns the devices that the claims of the tenant have and ask for, by DeviceClass. A claim with allocationMode All, or one with alternatives,
// counts as Kubernetes' quota counts it until it is allocated.
func Count(claims []resourcev1.ResourceClaim) map[string]Usage {
	out := map[string]Usage{}
	for i := range claims {
		claim := &claims[i]
		if claim.Status.Allocation != nil {
			countAllocated(claim, out)
			continue
		}
		for _, r := range claim.Spec.Devices.Requests {
			for class, n := range requested(r) {
				u := out[class]
				u.Pending += n
				out[class] = u
			}
		}
	}
	return out
}

// requested returns how many devices a request may get, by DeviceClass: the largest alternative of each.
func requested(r resourcev1.DeviceRequest) map[string]int {
	out := map[string]int{}
	if r.Exactly != nil {
		out[r.Exactly.DeviceClassName] = devices(r.Exactly.AllocationMode, r.Exactly.Count)
	}
	for _, f := range r.FirstAvailable {
		out[f.DeviceClassName] = max(out[f.DeviceClassName], devices(f.AllocationMode, f.Count))
	}
	return out
}

func devices(mode resourcev1.DeviceAllocationMode, count int64) int {
	if mode == resourcev1.DeviceAllocationModeAll {
		return resourcev1.AllocationResultsMaxSize
	}
	return int(min(count, resourcev1.AllocationResultsMaxSize))
}

// countAllocated adds the devices that a claim has. A result names its request, or the request and the alternative.
func countAllocated(claim *resourcev1.ResourceClaim, into map[string]Usage) {
	classes := map[string]string{}
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil {
			classes[r.Name] = r.Exactly.DeviceClassName
		}
		for _, f := range r.FirstAvailable {
			classes[r.Name+"/"+f.Name] = f.DeviceClassName
		}
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if class, found := classes[result.Request]; found {
			u := into[class]
			u.Allocated++
			into[class] = u
		}
	}
}

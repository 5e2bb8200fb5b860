package entitlement

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Held is how many devices of a class claims hold on a node, and how many claims they are.
type Held struct{ Devices, Claims int }

// HeldOnNodes returns what claims hold, by node and DeviceClass. What several nodes can use is on none of them: it stays when one of them is drained.
func HeldOnNodes(claims []resourcev1.ResourceClaim) map[string]map[string]Held {
	out := map[string]map[string]Held{}
	for i := range claims {
		node := NodeOf(&claims[i])
		if node == "" {
			continue
		}
		if out[node] == nil {
			out[node] = map[string]Held{}
		}
		for class, usage := range Count(claims[i : i+1]) {
			h := out[node][class]
			out[node][class] = Held{Devices: h.Devices + usage.Allocated, Claims: h.Claims + 1}
		}
	}
	return out
}

// Budget is how many devices of a class may be unavailable at once, and the Entitlement that says so, namespace/name.
type Budget struct {
	Devices     int
	Entitlement string
}

// Budgets returns those of the classes that have one, by DeviceClass. Of two Entitlements with the same DeviceClass, which contradict each other, the smaller
// one holds.
func Budgets(entitlements []v1alpha1.Entitlement) map[string]Budget {
	out := map[string]Budget{}
	for i := range entitlements {
		e := &entitlements[i]
		for _, c := range e.Spec.Classes {
			if c.MaxUnavailable == nil {
				continue
			}
			name, budget := DeviceClassName(e, c), Budget{Devices: int(*c.MaxUnavailable), Entitlement: e.Namespace + "/" + e.Name}
			if known, found := out[name]; !found || budget.Devices < known.Devices {
				out[name] = budget
			}
		}
	}
	return out
}

package entitlement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Uses are what the claims and pods of each namespace have and ask for, by namespace and then by DeviceClass or resource. The name of a resource has a slash.
type Uses map[string]map[string]Usage

// UsesOf returns the uses of a tenant. quotas are what Kubernetes counts of its quotas, by namespace.
func UsesOf(claims []resourcev1.ResourceClaim, quotas map[string]corev1.ResourceList, waiting []Pod) Uses {
	claimsIn, podsIn := map[string][]resourcev1.ResourceClaim{}, map[string][]Pod{}
	for i := range claims {
		claimsIn[claims[i].Namespace] = append(claimsIn[claims[i].Namespace], claims[i])
	}
	for _, p := range waiting {
		podsIn[p.Namespace] = append(podsIn[p.Namespace], p)
	}
	out := Uses{}
	for namespace, used := range quotas {
		out[namespace] = CountResources([]corev1.ResourceList{used}, podsIn[namespace])
	}
	for namespace, all := range claimsIn {
		if out[namespace] == nil {
			out[namespace] = map[string]Usage{}
		}
		maps.Copy(out[namespace], Count(all))
	}
	return out
}

// Total returns what all namespaces together have and ask for.
func (u Uses) Total() map[string]Usage {
	out := map[string]Usage{}
	for _, uses := range u {
		for name, usage := range uses {
			out[name] = out[name].Add(usage)
		}
	}
	return out
}

// limits returns how many devices a namespace may have, by DeviceClass or resource.
func limits(classes []Class) map[string]int {
	out := map[string]int{}
	for _, c := range classes {
		if !c.isRefused() {
			out[c.key()] += int(c.Devices)
		}
	}
	return out
}

// excess returns which namespaces have or ask for more of a DeviceClass or a resource than they may have, sorted.
func (u Uses) excess(name string, limit int) []string {
	var out []string
	for _, namespace := range slices.Sorted(maps.Keys(u)) {
		if usage := u[namespace][name]; usage.Allocated+usage.Pending > limit {
			out = append(out, fmt.Sprintf("namespace %s has or asks for %d of %s and may have %d", namespace, usage.Allocated+usage.Pending, name, limit))
		}
	}
	return out
}

// notGiven returns what claims have of DeviceClasses that are none of the Entitlement, sorted.
func (u Uses) notGiven(limits map[string]int) []string {
	var out []string
	for name, usage := range u.Total() {
		if _, isGiven := limits[name]; !isGiven && usage.Allocated > 0 && !strings.Contains(name, "/") {
			out = append(out, fmt.Sprintf("claims have %d of %s, which is no class of the Entitlement", usage.Allocated, name))
		}
	}
	slices.Sort(out)
	return out
}

// WithinLimits says whether the tenant has no more than the Entitlement gives it.
func WithinLimits(classes []Class, uses Uses) metav1.Condition {
	limits := limits(classes)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, uses.excess(name, limits[name])...)
	}
	return withinLimits(append(all, uses.notGiven(limits)...))
}

func withinLimits(excess []string) metav1.Condition {
	if len(excess) == 0 {
		return metav1.Condition{Type: v1alpha1.ConditionWithinLimits, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWithinLimits, Message: "no namespace has more than it may have"}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionWithinLimits, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOverEntitled,
		Message: "nothing is taken away, and nothing more is let in until the tenant has deleted claims or pods, or the Entitlement gives more: " + strings.Join(excess, "; "),
	}
}

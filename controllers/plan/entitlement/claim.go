package entitlement

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeOf returns the only node on which the devices of a claim can be used; empty: there are several, or the claim has none.
func NodeOf(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil || claim.Status.Allocation.NodeSelector == nil {
		return ""
	}
	for _, term := range claim.Status.Allocation.NodeSelector.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// Since returns when a claim was allocated or, where that is not known and while it waits, created.
func Since(claim *resourcev1.ResourceClaim) metav1.Time {
	if a := claim.Status.Allocation; a != nil && a.AllocationTimestamp != nil {
		return *a.AllocationTimestamp
	}
	return claim.CreationTimestamp
}

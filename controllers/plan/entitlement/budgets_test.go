package entitlement

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// claimOn is a claim of a class that has so many devices which the nodes can use; without a node it has none yet.
func claimOn(class string, devices int, nodes ...string) resourcev1.ResourceClaim {
	c := resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: int64(devices)}},
	}}}}
	if len(nodes) == 0 {
		return c
	}
	c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
	}}}}
	for range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "r"})
	}
	return c
}

func TestDevicesAreHeldOnTheOnlyNodeThatCanUseThem(t *testing.T) {
	got := HeldOnNodes([]resourcev1.ResourceClaim{
		claimOn("legal-h200", 2, "a"), claimOn("legal-h200", 1, "a"), claimOn("lab-h200", 4, "a"), claimOn("legal-h200", 8, "b"),
		claimOn("legal-h200", 3), claimOn("channels", 1, "a", "b"),
	})
	if want := map[string]Held{"legal-h200": {3, 2}, "lab-h200": {4, 1}}; len(got) != 2 || !maps.Equal(got["a"], want) || got["b"]["legal-h200"] != (Held{8, 1}) {
		t.Errorf("%v", got)
	}
}

func TestTheSmallestBudgetOfADeviceClassHolds(t *testing.T) {
	of := func(name string, most *int32) v1alpha1.Entitlement {
		return v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: name}, Spec: v1alpha1.EntitlementSpec{
			Tenant: "legal", Classes: []v1alpha1.EntitledClass{{Name: "h200", MaxUnavailable: most}, {Name: "free"}},
		}}
	}
	got := Budgets([]v1alpha1.Entitlement{of("first", ptr.To(int32(4))), of("second", ptr.To(int32(0))), of("third", nil), of("fourth", ptr.To(int32(7)))})
	if want := map[string]Budget{"legal-h200": {0, "shared/second"}}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

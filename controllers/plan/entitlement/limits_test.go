package entitlement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestWhatIsHeldBeyondTheEntitlementIsSaid(t *testing.T) {
	const mig = "nvidia.com/mig-1g.5gb"
	classes := []Class{
		{EntitledClass: v1alpha1.EntitledClass{Name: "h100", Kind: v1alpha1.DeviceGPU, Devices: 2}, DeviceClass: "legal-h100"},
		{EntitledClass: v1alpha1.EntitledClass{Name: "mig", Kind: v1alpha1.DeviceResource, Resource: mig, Devices: 1}},
		{EntitledClass: v1alpha1.EntitledClass{Name: "mig-2", Kind: v1alpha1.DeviceResource, Resource: mig, Devices: 2}},
	}
	in := func(namespace string, c resourcev1.ResourceClaim) resourcev1.ResourceClaim {
		c.Namespace = namespace
		return c
	}
	used := func(n string) map[string]corev1.ResourceList {
		return map[string]corev1.ResourceList{"a": {"requests." + mig: resource.MustParse(n), "requests.deviceclass.resource.kubernetes.io/legal-h100": resource.MustParse("99")}}
	}
	for _, c := range []struct {
		name   string
		claims []resourcev1.ResourceClaim
		quotas map[string]corev1.ResourceList
		// want are parts of the Entitlement's message, and class the class that has too much.
		want  []string
		class string
	}{
		{"nothing", nil, nil, nil, ""},
		{"as much as it may have, in each of two namespaces", []resourcev1.ResourceClaim{in("a", claimOn("legal-h100", 2, "n")), in("b", claimOn("legal-h100", 2, "n"))}, used("3"), nil, ""},
		{"one more in one of them", []resourcev1.ResourceClaim{in("a", claimOn("legal-h100", 2, "n")), in("b", claimOn("legal-h100", 3, "n"))}, nil, []string{"namespace b has or asks for 3 of legal-h100 and may have 2"}, "h100"},
		{"one more with what waits", []resourcev1.ResourceClaim{in("a", claimOn("legal-h100", 2, "n")), in("a", claimOn("legal-h100", 1))}, nil, []string{"namespace a has or asks for 3"}, "h100"},
		{"a resource, of two classes together", nil, used("4"), []string{"namespace a has or asks for 4 of " + mig + " and may have 3"}, "mig"},
		{"a class that was taken away", []resourcev1.ResourceClaim{in("a", claimOn("legal-old", 1, "n")), in("b", claimOn("legal-old", 1, "n"))}, nil, []string{"claims have 2 of legal-old, which is no class of the Entitlement"}, ""},
		{"a class that was taken away is asked for", []resourcev1.ResourceClaim{in("a", claimOn("legal-old", 1))}, nil, nil, ""},
	} {
		known := Known{Seen: map[string]Seen{}, Uses: UsesOf(c.claims, c.quotas, nil)}
		got := WithinLimits(classes, known.Uses)
		if (got.Status == metav1.ConditionTrue) != (c.want == nil) || c.want != nil && (got.Reason != v1alpha1.ReasonOverEntitled || !strings.Contains(got.Message, "nothing is taken away")) {
			t.Errorf("%s: %+v", c.name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q does not say %q", c.name, got.Message, want)
			}
		}
		for _, row := range Report(&v1alpha1.Entitlement{}, classes, 2, known, metav1.Now())[:2] {
			if meta.IsStatusConditionFalse(row.Conditions, v1alpha1.ConditionWithinLimits) != (row.Name == c.class) {
				t.Errorf("%s: class %s has %+v", c.name, row.Name, row.Conditions)
			}
		}
	}
}

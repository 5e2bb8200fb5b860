package entitlement

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheRemovalOfAFenceSaysWhoStillHasDevices(t *testing.T) {
	e := &v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{"a", "b"}}}}
	if got := RemovalText(e); !strings.HasSuffix(got, "which devices the namespaces a, b ask for. No claim had devices") {
		t.Error(got)
	}
	for range 7 {
		e.Status.Holdings = append(e.Status.Holdings, v1alpha1.DeviceHolding{Namespace: "a", Claim: "train", Node: "n1", Devices: map[string]int32{"legal-h100": 2}})
	}
	e.Spec.Namespaces = v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "legal"}}}
	got := RemovalText(e)
	for _, want := range []string{"the fence of tenant legal is gone", "the namespaces with the labels team=legal ask for", "claim a/train has 2 of legal-h100 on node n1", "and 2 more claims"} {
		if !strings.Contains(got, want) || strings.Count(got, "a/train") != maxNamedHoldings {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

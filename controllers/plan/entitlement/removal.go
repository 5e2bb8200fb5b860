package entitlement

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// maxNamedHoldings is how many claims are named when a fence is removed.
const maxNamedHoldings = 5

// RemovalText says what no longer holds once the objects of an Entitlement are gone from the shared cluster, and which claims still have devices.
func RemovalText(e *v1alpha1.Entitlement) string {
	where := "the namespaces with the labels " + metav1.FormatLabelSelector(e.Spec.Namespaces.Selector)
	if e.Spec.Namespaces.Selector == nil {
		where = "the namespaces " + strings.Join(e.Spec.Namespaces.Names, ", ")
	}
	text := fmt.Sprintf("the fence of tenant %s is gone from the shared cluster: nothing limits any more which devices %s ask for", e.Spec.Tenant, where)
	holdings := e.Status.Holdings
	if len(holdings) == 0 {
		return text + ". No claim had devices"
	}
	var held []string
	for _, h := range holdings[:min(len(holdings), maxNamedHoldings)] {
		held = append(held, Change{DeviceHolding: h}.Text())
	}
	if more := len(holdings) - maxNamedHoldings; more > 0 {
		held = append(held, fmt.Sprintf("and %d more claims", more))
	}
	return text + ". Claims keep their devices: " + strings.Join(held, "; ")
}

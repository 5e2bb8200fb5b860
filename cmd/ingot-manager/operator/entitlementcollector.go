package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func (c *fleetCollector) countEntitlements(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.EntitlementList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		key := [2]string{"false", ""}
		if enforced := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionEnforced); enforced != nil {
			key[1] = enforced.Reason
			if enforced.Status == metav1.ConditionTrue {
				key[0] = "true"
			}
		}
		counts[key]++
	}
	return counts, nil
}

// countDevices counts the devices of each DeviceClass, which is called NAMESPACE/NAME after the namespace of its Entitlement: two shared clusters may have
// DeviceClasses of the same name.
func (c *fleetCollector) countDevices(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.EntitlementList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		for _, class := range list.Items[i].Status.Classes {
			if class.DeviceClass == "" {
				continue
			}
			name := list.Items[i].Namespace + "/" + class.DeviceClass
			counts[[2]string{name, "entitled"}] += int(class.Entitled)
			counts[[2]string{name, "admitted"}] += int(class.Admitted)
			counts[[2]string{name, "allocated"}] += int(class.Allocated)
			counts[[2]string{name, "pending"}] += int(class.Pending)
		}
	}
	return counts, nil
}

package operator

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
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

// countDevices counts the devices of each DeviceClass or resource, which is called NAMESPACE/NAME after the namespace of its Entitlement: two shared clusters
// may have DeviceClasses of the same name. Of resources it is not known how many the nodes have for whom.
func (c *fleetCollector) countDevices(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.EntitlementList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		e := &list.Items[i]
		isCounted := map[string]bool{}
		for _, class := range e.Status.Classes {
			name := e.Namespace + "/" + class.DeviceClass
			switch {
			case class.DeviceClass != "":
				counts[[2]string{name, "capacity"}] += int(class.Capacity)
				counts[[2]string{name, "allocatable"}] += int(class.Admitted)
			case class.Resource != "":
				// Several tenants have the same resource.
				name = e.Namespace + "/" + e.Spec.Tenant + ":" + class.Resource
			default:
				continue
			}
			counts[[2]string{name, "entitled"}] += int(class.Entitled)
			// Two classes that give one resource say the same of it.
			if !isCounted[name] {
				isCounted[name] = true
				counts[[2]string{name, "allocated"}] += int(class.Allocated)
				counts[[2]string{name, "pending"}] += int(class.Pending)
			}
		}
	}
	return counts, nil
}

// collectWaits reports what waits for devices. A tenant is called NAMESPACE/NAME after the namespace of its Entitlement, and may be one of several clusters.
func (c *fleetCollector) collectWaits(ctx context.Context, out chan<- prometheus.Metric) error {
	var list v1alpha1.EntitlementList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	counts, longest := map[[3]string]int32{}, map[[3]string]float64{}
	now := c.now()
	for i := range list.Items {
		tenant := list.Items[i].Namespace + "/" + list.Items[i].Spec.Tenant
		for _, w := range list.Items[i].Status.Waits {
			labels := [3]string{tenant, w.Kind, string(w.Reason)}
			counts[labels] += w.Count
			longest[labels] = max(longest[labels], now.Sub(w.Since.Time).Seconds())
		}
	}
	for labels, n := range counts {
		out <- prometheus.MustNewConstMetric(waitsGauge, prometheus.GaugeValue, float64(n), labels[:]...)
		out <- prometheus.MustNewConstMetric(longestGauge, prometheus.GaugeValue, longest[labels], labels[:]...)
	}
	return nil
}

package operator

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The gauges that fleetCollector reports.
var (
	machinesGauge = prometheus.NewDesc("ingot_machines", "Machines by phase; state is ready, working, or overdue: past the phase's deadline.", []string{"phase", "state"}, nil)
	rolloutsGauge = prometheus.NewDesc("ingot_rollouts", "Rollouts by phase.", []string{"phase"}, nil)
	hostsGauge    = prometheus.NewDesc("ingot_hosts", "BareMetalHosts by provisioning state and the type of error that they report, empty for none.", []string{"state", "error"}, nil)
	orphansGauge  = prometheus.NewDesc("ingot_orphaned_hosts", "BareMetalHosts whose consumerRef names a Machine that does not exist, by the namespace of the host.", []string{"namespace"}, nil)
	tenantsGauge  = prometheus.NewDesc("ingot_tenants", "TenantClusters by whether they are Ready, and the reason.", []string{"ready", "reason"}, nil)
	enforcedGauge = prometheus.NewDesc("ingot_entitlements", "Entitlements by whether the shared cluster enforces them, and the reason.", []string{"enforced", "reason"}, nil)
	devicesGauge  = prometheus.NewDesc("ingot_entitled_devices", "Devices of the classes of Entitlements by state: entitled, capacity, allocatable, allocated or pending.", []string{"class", "state"}, nil)
	waitsGauge    = prometheus.NewDesc("ingot_waiting", "Claims and pods of tenants that wait for devices, by tenant, kind and reason.", []string{"tenant", "kind", "reason"}, nil)
	longestGauge  = prometheus.NewDesc("ingot_waiting_longest_seconds", "Age of the claim or pod that has waited longest for devices, by tenant, kind and reason.", []string{"tenant", "kind", "reason"}, nil)
)

// fleetCollector counts the objects in the manager's cache when Prometheus asks for the metrics.
type fleetCollector struct {
	reader client.Reader
	now    func() time.Time
	log    logr.Logger
}

// collectTimeout limits one collection, because a cache that has not synced would block it.
const collectTimeout = 5 * time.Second

// Describe implements prometheus.Collector.
func (c *fleetCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{machinesGauge, rolloutsGauge, hostsGauge, orphansGauge, tenantsGauge, enforcedGauge, devicesGauge, waitsGauge, longestGauge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *fleetCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	if err := c.collectWaits(ctx, out); err != nil {
		c.log.Info("the fleet could not be counted", "metric", waitsGauge.String(), "error", err.Error())
	}
	for desc, count := range map[*prometheus.Desc]func(context.Context) (map[[2]string]int, error){
		machinesGauge: c.countMachines, rolloutsGauge: c.countRollouts, hostsGauge: c.countHosts, orphansGauge: c.countOrphans, tenantsGauge: c.countTenants,
		enforcedGauge: c.countEntitlements, devicesGauge: c.countDevices,
	} {
		counts, err := count(ctx)
		if err != nil {
			c.log.Info("the fleet could not be counted", "metric", desc.String(), "error", err.Error())
			continue
		}
		for labels, n := range counts {
			values := labels[:]
			if desc == rolloutsGauge || desc == orphansGauge {
				values = values[:1]
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), values...)
		}
	}
}

func (c *fleetCollector) countMachines(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.MachineList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	// The zero keeps the series alive, so that an alert can distinguish no Machines from no manager.
	counts := map[[2]string]int{{string(v1alpha1.MachineReady), "ready"}: 0}
	now := c.now()
	for i := range list.Items {
		s := &list.Items[i].Status
		state := "working"
		switch {
		case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady):
			state = "ready"
		case s.Deadline != nil && now.After(s.Deadline.Time):
			state = "overdue"
		}
		counts[[2]string{string(s.Phase), state}]++
	}
	return counts, nil
}

func (c *fleetCollector) countRollouts(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.RolloutList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{{string(v1alpha1.RolloutStopped)}: 0}
	for i := range list.Items {
		counts[[2]string{string(list.Items[i].Status.Phase)}]++
	}
	return counts, nil
}

func (c *fleetCollector) countHosts(ctx context.Context) (map[[2]string]int, error) {
	var list metal3.BareMetalHostList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		s := &list.Items[i].Status
		counts[[2]string{string(s.Provisioning.State), string(s.ErrorType)}]++
	}
	return counts, nil
}

// countOrphans counts the hosts of every provider. A claim that the cache has before its Machine counts for a moment; the alert waits longer.
func (c *fleetCollector) countOrphans(ctx context.Context) (map[[2]string]int, error) {
	var hosts metal3.BareMetalHostList
	if err := c.reader.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var machines v1alpha1.MachineList
	if err := c.reader.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	uids := make(map[types.UID]bool, len(machines.Items))
	for i := range machines.Items {
		uids[machines.Items[i].ClaimUID()] = true
	}
	counts := map[[2]string]int{}
	for i := range hosts.Items {
		h, orphans := &hosts.Items[i], 0
		if ref := h.Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) && !uids[ref.UID] {
			orphans = 1
		}
		counts[[2]string{h.Namespace}] += orphans
	}
	return counts, nil
}

func (c *fleetCollector) countTenants(ctx context.Context) (map[[2]string]int, error) {
	var list v1alpha1.TenantClusterList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		key := [2]string{"false", ""}
		if ready := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			key[1] = ready.Reason
			if ready.Status == metav1.ConditionTrue {
				key[0] = "true"
			}
		}
		counts[key]++
	}
	return counts, nil
}

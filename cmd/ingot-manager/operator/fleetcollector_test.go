package operator

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// fleet is a cache with hosts and Machines.
type fleet struct {
	client.Reader
	hosts    []metal3.BareMetalHost
	machines []v1alpha1.Machine

	entitlements []v1alpha1.Entitlement
}

func (f fleet) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *metal3.BareMetalHostList:
		list.Items = f.hosts
	case *v1alpha1.MachineList:
		list.Items = f.machines
	case *v1alpha1.EntitlementList:
		list.Items = f.entitlements
	}
	return nil
}

// gauges returns what a collector reports under names with the prefix, by the name and the labels in the order of their names.
func gauges(t *testing.T, c prometheus.Collector, prefix string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), prefix) {
			continue
		}
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, label := range m.GetLabel() {
				key += " " + label.GetName() + "=" + label.GetValue()
			}
			got[key] = m.GetGauge().GetValue()
		}
	}
	return got
}

func TestHostsWhoseMachineIsGoneAreCountedForEveryProvider(t *testing.T) {
	claimed := func(namespace, apiVersion string, uid types.UID) metal3.BareMetalHost {
		h := metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: apiVersion, Kind: "Machine", Namespace: "team", Name: "one", UID: uid}
		return h
	}
	const ours, theirs = "ingot.dev/v1alpha1", "cluster.x-k8s.io/v1beta1"
	f := fleet{
		machines: []v1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one", UID: "m2"}}},
		hosts: []metal3.BareMetalHost{
			claimed("hall-1", ours, "m1"), claimed("hall-1", ours, "m2"), claimed("hall-1", ours, ""), claimed("hall-2", theirs, "m3"),
			{ObjectMeta: metav1.ObjectMeta{Namespace: "hall-2"}},
		},
	}
	c := &fleetCollector{reader: f, now: time.Now, log: logr.Discard()}
	got := gauges(t, c, "ingot_orphaned_hosts")
	if want := map[string]float64{"ingot_orphaned_hosts namespace=hall-1": 2, "ingot_orphaned_hosts namespace=hall-2": 0}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEntitlementsAndTheirDevicesAreCounted(t *testing.T) {
	entitlement := func(status metav1.ConditionStatus, reason string, classes ...v1alpha1.EntitledClassStatus) v1alpha1.Entitlement {
		return v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: "shared"}, Spec: v1alpha1.EntitlementSpec{Tenant: "legal"}, Status: v1alpha1.EntitlementStatus{
			Classes: classes, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: status, Reason: reason}},
		}}
	}
	c := &fleetCollector{reader: fleet{entitlements: []v1alpha1.Entitlement{
		entitlement(metav1.ConditionTrue, v1alpha1.ReasonEnforced,
			v1alpha1.EntitledClassStatus{Name: "a", DeviceClass: "legal-a", Entitled: 8, Capacity: 24, Admitted: 16, Allocated: 3, Pending: 2},
			v1alpha1.EntitledClassStatus{Name: "plugin", Resource: "nvidia.com/gpu", Entitled: 4, Allocated: 1}),
		entitlement(metav1.ConditionUnknown, v1alpha1.ReasonTenantUnreachable), {},
	}}}
	got, err := c.countEntitlements(t.Context())
	if want := map[[2]string]int{{"true", "Enforced"}: 1, {"false", "TenantUnreachable"}: 1, {"false", ""}: 1}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	got, err = c.countDevices(t.Context())
	want := map[[2]string]int{
		{"shared/legal-a", "entitled"}: 8, {"shared/legal-a", "capacity"}: 24, {"shared/legal-a", "allocatable"}: 16, {"shared/legal-a", "allocated"}: 3, {"shared/legal-a", "pending"}: 2,
		{"shared/legal:nvidia.com/gpu", "entitled"}: 4, {"shared/legal:nvidia.com/gpu", "allocated"}: 1, {"shared/legal:nvidia.com/gpu", "pending"}: 0,
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestWhatWaitsIsReportedWithItsAge(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := &fleetCollector{now: func() time.Time { return now }, reader: fleet{entitlements: []v1alpha1.Entitlement{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shared"}, Spec: v1alpha1.EntitlementSpec{Tenant: "legal"},
		Status: v1alpha1.EntitlementStatus{Waits: []v1alpha1.DeviceWait{
			{Kind: v1alpha1.WaitingClaim, Reason: v1alpha1.WaitUnallocated, Count: 3, Since: metav1.NewTime(now.Add(-time.Minute))},
			{Kind: v1alpha1.WaitingPod, Reason: v1alpha1.WaitQuotaExceeded, Count: 2, Since: metav1.NewTime(now.Add(time.Minute))},
		}},
	}}}}
	got := gauges(t, c, "ingot_waiting")
	want := map[string]float64{
		"ingot_waiting kind=ResourceClaim reason=Unallocated tenant=shared/legal": 3, "ingot_waiting_longest_seconds kind=ResourceClaim reason=Unallocated tenant=shared/legal": 60,
		"ingot_waiting kind=Pod reason=QuotaExceeded tenant=shared/legal": 2, "ingot_waiting_longest_seconds kind=Pod reason=QuotaExceeded tenant=shared/legal": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestARecordSaysWhichClusterHadTheDisksLast(t *testing.T) {
	inCluster := func(f *Facts) { f.Spec.TenantClusterUID = "cluster-1" }
	running := inUse(metal3.StateProvisioned)
	for _, c := range []struct {
		name  string
		facts Facts
		want  string
	}{
		{"an installation begins", facts(metal3.StateAvailable, hardware.PowerOff).claimed().with(inCluster), "cluster-1"},
		{"an installation begins in a cluster that is not known", facts(metal3.StateAvailable, hardware.PowerOff).claimed().with(func(f *Facts) { f.Record.LastTenantClusterUID = "cluster-0" }), ""},
		{"it becomes known while the node runs", running.with(inCluster), "cluster-1"},
		{"it is not known while the node runs", running, ""},
		{"the host had another tenant", running.with(inCluster).with(func(f *Facts) { f.Record.LastTenant = "team/other" }), ""},
	} {
		d := Plan(c.facts)
		if got := string(d.Record.LastTenantClusterUID); got != c.want {
			t.Errorf("%s: %q, expected %q (lastTenant %s)", c.name, got, c.want, d.Record.LastTenant)
		}
		if begun := d.Record.Wanted; c.facts.Record.Wanted != nil && begun.Number != c.facts.Record.Wanted.Number {
			t.Errorf("%s: attempt %d begins", c.name, begun.Number)
		}
	}
}

func TestARecordSaysWhichTenantClusterHadTheDisksLast(t *testing.T) {
	ours := func(f *Facts) { f.Spec.TenantUID = "object-1" }
	running := inUse(metal3.StateProvisioned).with(ours)
	for _, c := range []struct {
		name  string
		facts Facts
		want  string
	}{
		{"an installation begins", facts(metal3.StateAvailable, hardware.PowerOff).claimed().with(ours).with(func(f *Facts) { f.Record.LastTenantUID = "object-0" }), "object-1"},
		{"a node runs", running.with(func(f *Facts) { f.Record.LastTenantUID = "object-0" }), "object-0"},
		{"an earlier version installed it", running, ""},
		{"it was new", facts(metal3.StateAvailable, hardware.PowerOff), ""},
		{"its record was lost", facts(metal3.StateProvisioned, hardware.PowerOn).claimed().with(ours).with(func(f *Facts) { f.Record.Power = nil }), ""},
	} {
		d := Plan(c.facts)
		if got := string(d.Record.LastTenantUID); got != c.want {
			t.Errorf("%s: %q, expected %q (lastTenant %s)", c.name, got, c.want, d.Record.LastTenant)
		}
	}
}

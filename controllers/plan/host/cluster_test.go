package host

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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

func TestARecordSaysSinceWhenTheLastTenantHadTheDisks(t *testing.T) {
	begun, wanted := at(0), at(-10*time.Minute)
	earlier, running := at(-2*time.Hour), inUse(metal3.StateProvisioned)
	erased := facts(metal3.StateAvailable, hardware.PowerOff).with(func(f *Facts) {
		f.Record.LastTenant, f.Record.Erased = "team/research", &v1alpha1.EraseProof{Mode: v1alpha1.EraseMetadata, At: earlier}
	})
	for _, c := range []struct {
		name  string
		facts Facts
		want  *metav1.MicroTime
	}{
		{"an installation begins", facts(metal3.StateAvailable, hardware.PowerOff).claimed().with(func(f *Facts) { f.Record.LastTenantSince = &earlier }), &begun},
		{"a node runs", running.with(func(f *Facts) { f.Record.LastTenantSince = &earlier }), &earlier},
		{"an earlier version installed it", running.with(func(f *Facts) { f.Record.LastTenantSince = nil }), &wanted},
		{"an earlier version installed it and lost the attempt", running.with(func(f *Facts) { f.Record.LastTenantSince, f.Record.Wanted, f.Record.Installed.At = nil, nil, earlier }), &earlier},
		{"an earlier version erased it", erased, &earlier},
		{"a person erases it once more", erased.with(func(f *Facts) { f.Host.Erase = string(v1alpha1.EraseMetadata) }), &earlier},
		{"nobody knows who had it", erased.with(func(f *Facts) { f.Record.LastTenant = unknownTenant }), nil},
		{"it was new", facts(metal3.StateAvailable, hardware.PowerOff), nil},
		{"its record was lost", facts(metal3.StateProvisioned, hardware.PowerOn).claimed().with(func(f *Facts) { f.Record.Power = nil }), &unknownSince},
	} {
		d := Plan(c.facts)
		if got := d.Record.LastTenantSince; !got.Equal(c.want) {
			t.Errorf("%s: %v, expected %v (lastTenant %s)", c.name, got, c.want, d.Record.LastTenant)
		}
	}
}

package lifecycle

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheClusterThatARunningNodeHasJoinedIsRecordedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts)
		writes bool
	}{
		{"an earlier version has installed it", func(f *Facts) { f.Host.Record.Spec.TenantClusterUID = "" }, true},
		{"it is recorded", func(*Facts) {}, false},
		{"the cluster is not known", func(f *Facts) { f.Host.Record.Spec.TenantClusterUID, f.Tenant.ClusterUID = "", "" }, false},
		{"the tenant does not answer", func(f *Facts) { f.Host.Record.Spec.TenantClusterUID, f.Tenant.Reachable = "", false }, false},
		{"another cluster was recorded", func(f *Facts) { f.Host.Record.Spec.TenantClusterUID = "cluster-0" }, false},
	} {
		f := factsIn(t, v1alpha1.MachineReady)
		c.change(&f)
		before := *f.Host.Record.Spec.DeepCopy()
		d := Plan(f)
		isWrite := d.Action != nil && d.Action.Kind == WriteHostRecord
		if isWrite != c.writes || d.Status.Phase != v1alpha1.MachineReady {
			t.Errorf("%s: phase %s, action %+v", c.name, d.Status.Phase, d.Action)
			continue
		}
		before.TenantClusterUID = f.Tenant.ClusterUID
		if isWrite && !isEqualRecord(d.Action.Record, before) {
			t.Errorf("%s: the record becomes %+v, expected %+v", c.name, d.Action.Record, before)
		}
	}
}

func TestAnInstallationRecordsTheClusterOfItsTenant(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineProvisioning)
	if got := f.Host.Record.Spec.TenantClusterUID; got != "cluster-1" {
		t.Errorf("recorded cluster %q", got)
	}
	f.Tenant.ClusterUID = ""
	s := scope{Facts: f, guards: realGuards()}
	if got := s.desiredRecord().TenantClusterUID; got != "cluster-1" {
		t.Errorf("while the tenant's cluster is not known, %q is recorded", got)
	}
}

func TestTheClusterThatARunningNodeHasJoinedIsWrittenOntoAMetal3Host(t *testing.T) {
	for _, lacks := range []bool{true, false} {
		f := factsIn(t, v1alpha1.MachineReady)
		f.Provider.HasRecords, f.Host.Record, f.Host.LacksClusterUID = false, nil, lacks
		f.Host.Installation = scope{Facts: f, guards: realGuards()}.installation(v1alpha1.InstallationComplete)
		d := Plan(f)
		if isWrite := d.Action != nil && d.Action.Kind == RecordInstallation && d.Action.ClusterUID == f.Tenant.ClusterUID; isWrite != lacks {
			t.Errorf("lacks %t: %+v", lacks, d.Action)
		}
	}
}

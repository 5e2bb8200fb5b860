package host

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// unknownSince is the lastTenantSince of a tenant that nobody knows how long it had the disks. Every TenantCluster is younger, so that none of that name
// is taken for the one that had them unless its cluster is the same.
var unknownSince = metav1.NewMicroTime(time.Unix(0, 0))

// setLastTenant writes into a record who has the disks from now on, which cluster that is, and when its installation was begun.
func setLastTenant(r *v1alpha1.HostRecordStatus, tenant string, cluster types.UID, since metav1.MicroTime) {
	r.LastTenant, r.LastTenantClusterUID, r.LastTenantSince = tenant, cluster, &since
}

// recordCluster records which cluster had the disks last, where that became known only while the Machine's node ran.
func (p *planner) recordCluster() {
	r, m := &p.d.Record, p.Spec.Machine
	if r.LastTenantClusterUID == "" && r.LastTenant == p.Spec.Tenant && m != nil && r.Installed != nil && r.Installed.MachineUID == m.UID {
		r.LastTenantClusterUID = p.Spec.TenantClusterUID
	}
}

// recordTenantSince completes a record of an earlier version, which did not write when the last tenant's installation was begun, by the earliest time
// that such a record has after it. The proof of the erase that ended the tenant's stay is early enough: a TenantCluster is kept until the hosts of its
// Machines are erased, so that another one of its name is younger than the proof. A later erase must not move that time. Without it: the host of a
// TenantCluster that is gone is erased once more by its annotation, and another team's of the same name counts as older than what was on the disks.
func (p *planner) recordTenantSince() {
	r := &p.d.Record
	if r.LastTenant == "" || r.LastTenant == unknownTenant || r.LastTenant == sharedTenant || r.LastTenantSince != nil {
		return
	}
	switch {
	case r.Wanted != nil && r.Wanted.Operation == string(hardware.OpInstall):
		r.LastTenantSince = r.Wanted.Since.DeepCopy()
	case r.Installed != nil:
		r.LastTenantSince = r.Installed.At.DeepCopy()
	case r.Erased != nil:
		r.LastTenantSince = r.Erased.At.DeepCopy()
	}
}

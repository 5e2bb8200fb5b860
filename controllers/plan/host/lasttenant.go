package host

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// setLastTenant writes into a record who has the disks from now on, which cluster that is, and the uid of its TenantCluster; empty: nobody knows.
func setLastTenant(r *v1alpha1.HostRecordStatus, tenant string, cluster, uid types.UID) {
	r.LastTenant, r.LastTenantClusterUID, r.LastTenantUID = tenant, cluster, uid
}

// recordCluster records which cluster had the disks last, where that became known only while the Machine's node ran.
func (p *planner) recordCluster() {
	r, m := &p.d.Record, p.Spec.Machine
	if r.LastTenantClusterUID == "" && r.LastTenant == p.Spec.Tenant && m != nil && r.Installed != nil && r.Installed.MachineUID == m.UID {
		r.LastTenantClusterUID = p.Spec.TenantClusterUID
	}
}

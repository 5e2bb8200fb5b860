package invariants

import (
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// claimViolations returns the violations of invariants 1 and 3 in one listing of hosts, their records and Machines.
func claimViolations(hosts []metal3.BareMetalHost, records []v1alpha1.HostRecord, machines []v1alpha1.Machine) []string {
	var out []string
	holder := map[types.UID]string{}
	for _, h := range hosts {
		ref := h.Spec.ConsumerRef
		if ref == nil || ref.UID == "" {
			continue
		}
		if other, taken := holder[ref.UID]; taken {
			out = append(out, fmt.Sprintf("machine %s/%s has two hosts: %s and %s", ref.Namespace, ref.Name, other, h.Name))
		}
		holder[ref.UID] = h.Name
	}
	user := map[v1alpha1.NamespacedReference]string{}
	for _, m := range machines {
		if m.Status.HostRef == nil || m.Status.Phase == v1alpha1.MachineClaiming {
			continue // a Machine in Claiming does not have the host yet
		}
		if other, taken := user[*m.Status.HostRef]; taken {
			out = append(out, fmt.Sprintf("host %s has two machines: %s and %s", m.Status.HostRef.Name, other, m.Name))
		}
		user[*m.Status.HostRef] = m.Name
	}
	return append(out, installsWithoutErase(records)...)
}

// installsWithoutErase returns the hosts that are installed for a Machine before the disks of the Machine before it were erased.
func installsWithoutErase(records []v1alpha1.HostRecord) []string {
	var out []string
	for _, r := range records {
		w, in := r.Status.Wanted, r.Status.Installed
		if in == nil || !w.IsOpen() || w.Operation != "Install" {
			continue
		}
		if w.MachineUID != in.MachineUID {
			out = append(out, fmt.Sprintf("host %s is installed for another Machine before the disks of the one before were erased", r.Name))
		}
	}
	return out
}

package quota

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Machine is the part of a Machine that the decision depends on.
type Machine struct {
	Name     string
	UID      types.UID
	NodeType string
	// GPUs is the gpu.count of its NodeType.
	GPUs int32
	// ResourceVersion is that of the object.
	ResourceVersion uint64
	// Created is when the object was created, and Since when it entered its phase.
	Created, Since time.Time
	// HasHost is true when its status says that it has a host, from its claim until the object is gone.
	HasHost bool
	// MayHaveHost is true while it may be about to write its claim, and where a host names it that its status does not know of, as after a restore.
	MayHaveHost bool
	// IsInLine is true while it asks for a place.
	IsInLine bool
}

// Facts are what the namespace has.
type Facts struct {
	// Clock is the time of the decision.
	watched.Clock
	// Namespace is that of the NodeQuota.
	Namespace string
	// Spec, Reservations and MachinesResourceVersion are those of the NodeQuota, as it was read before it is written.
	Spec                    v1alpha1.NodeQuotaSpec
	Reservations            []v1alpha1.QuotaReservation
	MachinesResourceVersion string
	// Machines are all of the namespace.
	Machines []Machine
	// IsLive is true when the API server has listed the Machines, after the NodeQuota was read.
	IsLive bool
}

// FactsOf returns the facts of a NodeQuota without the Machines.
func FactsOf(clock watched.Clock, quota *v1alpha1.NodeQuota) Facts {
	return Facts{
		Clock: clock, Namespace: quota.Namespace, Spec: quota.Spec,
		Reservations: quota.Status.Reservations, MachinesResourceVersion: quota.Status.MachinesResourceVersion,
	}
}

// MachineOf returns the facts of a Machine whose NodeType has so many GPUs. isNamed is true where a host's consumerRef names it.
func MachineOf(m *v1alpha1.Machine, gpus int32, isNamed bool) Machine {
	phase := m.Status.Phase
	isBeforeClaim := phase == "" || phase == v1alpha1.MachinePending || phase == v1alpha1.MachineClaiming
	out := Machine{
		Name: m.Name, UID: m.ClaimUID(), NodeType: m.Spec.NodeTypeRef.Name, GPUs: gpus, Created: m.CreationTimestamp.Time,
		HasHost: m.Status.HostRef != nil && !isBeforeClaim, MayHaveHost: isNamed || phase == v1alpha1.MachineClaiming,
		IsInLine: phase == v1alpha1.MachinePending && hasClaimed(m, v1alpha1.ReasonClaiming, v1alpha1.ReasonQuotaExceeded),
	}
	out.ResourceVersion, _ = strconv.ParseUint(m.ResourceVersion, 10, 64) // one that is no number is older than every other
	if entries := m.Status.Timeline; len(entries) > 0 {
		out.Since = entries[len(entries)-1].At.Time
	}
	return out
}

// IsAsking reports whether a Machine asks for a place and does not know yet whether there is room.
func IsAsking(m *v1alpha1.Machine) bool {
	return m.Status.Phase == v1alpha1.MachinePending && hasClaimed(m, v1alpha1.ReasonClaiming)
}

// IsWaiting reports whether a Machine waits because of the NodeQuota of its namespace.
func IsWaiting(m *v1alpha1.Machine) bool {
	return m.Status.HostRef == nil && hasClaimed(m, v1alpha1.ReasonQuotaExceeded)
}

// hasClaimed reports whether a Machine that is not being deleted has the condition Claimed=False for one of the reasons.
func hasClaimed(m *v1alpha1.Machine, reasons ...string) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionClaimed)
	return m.DeletionTimestamp == nil && c != nil && c.Status == metav1.ConditionFalse && slices.Contains(reasons, c.Reason)
}

// HasPlace reports whether the Machine of that uid may claim a host. A namespace without a NodeQuota, which is nil, is not limited.
func HasPlace(quota *v1alpha1.NodeQuota, uid types.UID) bool {
	return quota == nil || slices.ContainsFunc(quota.Status.Reservations, func(r v1alpha1.QuotaReservation) bool { return r.UID == string(uid) })
}

// Concerned returns the names of the Machines that go on after a change of their NodeQuota, and of those that are the next since then.
func Concerned(before, after *v1alpha1.NodeQuota) []string {
	had, wasNext := map[string]bool{}, map[string]bool{"": true, before.Status.Next: true}
	for _, r := range before.Status.Reservations {
		had[r.UID] = true
	}
	for _, row := range before.Status.Machines {
		wasNext[row.Next] = true
	}
	var out []string
	for _, r := range after.Status.Reservations {
		if !had[r.UID] {
			out = append(out, r.Machine)
		}
	}
	for _, next := range append(nextOf(after.Status.Machines), after.Status.Next) {
		if !wasNext[next] {
			out, wasNext[next] = append(out, next), true
		}
	}
	return out
}

func nextOf(rows []v1alpha1.NodeTypeUse) []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].Next
	}
	return out
}

// HasMoreRoom reports whether a NodeQuota may have room for more Machines than before: its spec changed, or less is used or waited for.
func HasMoreRoom(before, after *v1alpha1.NodeQuota) bool {
	if before.Generation != after.Generation || after.Status.GPUs < before.Status.GPUs || after.Status.Waiting < before.Status.Waiting {
		return true
	}
	for _, was := range before.Status.Machines {
		if is := rowOf(after, was.NodeType); is.Used < was.Used || is.Waiting < was.Waiting {
			return true
		}
	}
	return false
}

// rowOf returns what the status of a NodeQuota says of a NodeType.
func rowOf(quota *v1alpha1.NodeQuota, nodeType string) v1alpha1.NodeTypeUse {
	at := slices.IndexFunc(quota.Status.Machines, func(row v1alpha1.NodeTypeUse) bool { return row.NodeType == nodeType })
	if at < 0 {
		return v1alpha1.NodeTypeUse{NodeType: nodeType}
	}
	return quota.Status.Machines[at]
}

// GPUsOf returns how many GPUs a Machine of each NodeType counts with.
func GPUsOf(nodeTypes []v1alpha1.NodeType) func(nodeType string) int32 {
	counts := make(map[string]int32, len(nodeTypes))
	for i := range nodeTypes {
		counts[nodeTypes[i].Name] = GPUs(&nodeTypes[i])
	}
	return func(name string) int32 { return counts[name] }
}

// GPUs returns how many GPUs a Machine of the NodeType counts with.
func GPUs(nodeType *v1alpha1.NodeType) int32 {
	if nodeType.Spec.GPU == nil {
		return 0
	}
	return nodeType.Spec.GPU.Count
}

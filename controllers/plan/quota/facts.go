package quota

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// FactsOf returns the facts of a NodeQuota. gpus returns the gpu.count of a NodeType, and isNamed reports whether a host's consumerRef names a Machine,
// which may know nothing of it yet.
func FactsOf(now time.Time, quota *v1alpha1.NodeQuota, machines []v1alpha1.Machine, gpus func(nodeType string) int32, isNamed func(*v1alpha1.Machine) bool) Facts {
	f := Facts{Now: now, Namespace: quota.Namespace, Spec: quota.Spec, Reservations: quota.Status.Reservations, Machines: make([]Machine, len(machines))}
	for i := range machines {
		m := &machines[i]
		f.Machines[i] = MachineOf(m, gpus(m.Spec.NodeTypeRef.Name))
		f.Machines[i].HasHost = f.Machines[i].HasHost || isNamed(m)
	}
	return f
}

// MachineOf returns the facts of a Machine whose NodeType has so many GPUs.
func MachineOf(m *v1alpha1.Machine, gpus int32) Machine {
	phase := m.Status.Phase
	isBeforeClaim := phase == "" || phase == v1alpha1.MachinePending || phase == v1alpha1.MachineClaiming
	return Machine{
		Name: m.Name, UID: m.ClaimUID(), NodeType: m.Spec.NodeTypeRef.Name, GPUs: gpus, Created: m.CreationTimestamp.Time,
		HasHost: m.Status.HostRef != nil && !isBeforeClaim, IsClaiming: phase == v1alpha1.MachineClaiming, IsWaiting: IsWaiting(m),
		IsInLine: IsWaiting(m) || phase == v1alpha1.MachineClaiming && hasClaimed(m, v1alpha1.ReasonClaiming, v1alpha1.ReasonQuotaExceeded),
	}
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

// MustLookAgain reports whether a Machine that waits may find room after the change of the NodeQuota: its spec changed, or less is used, reserved or
// waited for.
func MustLookAgain(before, after *v1alpha1.NodeQuota) bool {
	if before.Generation != after.Generation || after.Status.GPUs < before.Status.GPUs || after.Status.Waiting < before.Status.Waiting ||
		len(after.Status.Reservations) < len(before.Status.Reservations) {
		return true
	}
	for _, was := range before.Status.Machines {
		isFound := false
		for _, is := range after.Status.Machines {
			isFound = isFound || is.NodeType == was.NodeType && is.Used >= was.Used && is.Waiting >= was.Waiting
		}
		if !isFound {
			return true
		}
	}
	return false
}

// GPUsOf returns how many GPUs a Machine of each NodeType counts with.
func GPUsOf(nodeTypes []v1alpha1.NodeType) func(nodeType string) int32 {
	counts := make(map[string]int32, len(nodeTypes))
	for i := range nodeTypes {
		if gpu := nodeTypes[i].Spec.GPU; gpu != nil {
			counts[nodeTypes[i].Name] = gpu.Count
		}
	}
	return func(name string) int32 { return counts[name] }
}

package entitlement

import (
	"cmp"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Seen is what was found of one class in the shared cluster.
type Seen struct {
	Usage
	Found
	// Problem says why its selector cannot be used; empty: it can.
	Problem string
}

// Known is what is known of the shared cluster.
type Known struct {
	// Seen is what was found of the classes, by DeviceClass or resource; nil: it cannot be asked, and what was known before stays.
	Seen map[string]Seen
	// Uses are what the tenant has and asks for, by namespace. They are known where Seen is.
	Uses Uses
	// UnderWay says how many Machines are being installed or rolled, by NodeType. It is known where a class has no device of an admitted node.
	UnderWay map[string]string
	// Problem is why it cannot be asked; empty: the condition Enforced says it.
	Problem string
	// IsUnread: it is being read for the first time, and what was said before is said until then.
	IsUnread bool
}

// key returns the key of a class in Seen.
func (c Class) key() string { return cmp.Or(c.DeviceClass, c.Resource) }

// Report returns the status of the classes.
func Report(e *v1alpha1.Entitlement, classes []Class, namespaces int, known Known, now metav1.Time) []v1alpha1.EntitledClassStatus {
	before := map[string]v1alpha1.EntitledClassStatus{}
	for _, c := range e.Status.Classes {
		before[c.Name] = c
	}
	limits := limits(classes)
	var out []v1alpha1.EntitledClassStatus
	for _, c := range classes {
		row, isKnown := before[c.Name]
		row.Name, row.DeviceClass, row.Resource = c.Name, c.DeviceClass, c.Resource
		if known.Seen != nil {
			s := known.Seen[c.key()]
			row.Entitled = int32(min(int64(c.Devices)*int64(namespaces), math.MaxInt32))
			row.Allocated, row.Pending = int32(s.Allocated), int32(s.Pending)
			row.Capacity, row.Admitted = int32(s.Admitted+s.Gated), int32(s.Admitted)
		}
		if known.IsUnread && isKnown && c.Problem == "" {
			out = append(out, row)
			continue
		}
		conditions := []metav1.Condition{availability(c, known), isolation(c)}
		if known.Seen != nil {
			conditions = append(conditions, withinLimits(known.Uses.excess(c.key(), limits[c.key()])))
		}
		row.Conditions = append([]metav1.Condition(nil), row.Conditions...)
		for _, condition := range conditions {
			condition.ObservedGeneration, condition.LastTransitionTime = e.Generation, now
			meta.SetStatusCondition(&row.Conditions, condition)
		}
		out = append(out, row)
	}
	return out
}

// isolation says whether pods of several tenants can be on the nodes.
func isolation(c Class) metav1.Condition {
	if c.IsDedicated {
		return metav1.Condition{Type: v1alpha1.ConditionIsolated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodesDedicated, Message: fmt.Sprintf(
			"a pod on a node of NodeType %s gets all its GPUs by the environment variable NVIDIA_VISIBLE_DEVICES, whatever it may ask for: set gpu.tenancy of the NodeType to Shared, "+
				"or see to it that its nodes close this otherwise", c.NodeTypeRef.Name)}
	}
	return metav1.Condition{Type: v1alpha1.ConditionIsolated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodesShared, Message: "pods have the devices that they have asked for"}
}

func availability(c Class, known Known) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	s := known.Seen[c.key()]
	switch {
	case c.Problem != "":
		out.Reason, out.Message = c.Reason, c.Problem
	case known.Problem != "":
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, v1alpha1.ReasonUseUnknown, known.Problem
	case known.Seen == nil:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, v1alpha1.ReasonTenantUnreachable, "the shared cluster cannot be asked now: see the condition Enforced"
	case c.DeviceClass == "":
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonDevicesAvailable, "containers ask for "+c.Resource+", which nodes of the NodeType promise"
	case s.Problem != "":
		out.Reason, out.Message = v1alpha1.ReasonSelectsNothing, s.Problem
	case s.Admitted > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, v1alpha1.ReasonDevicesAvailable, fmt.Sprintf("%d devices of admitted nodes match", s.Admitted)
	default:
		out.Reason, out.Message = lack(c, s, known.UnderWay[c.NodeTypeRef.Name])
	}
	return out
}

// lack says why no device can be claimed. underWay says what is being installed or rolled; empty: nothing.
func lack(c Class, s Seen, underWay string) (reason, message string) {
	gated := fmt.Sprintf("%d devices match, and all are of nodes that are not admitted: ", s.Gated)
	switch {
	case s.Gated > 0 && underWay != "":
		return v1alpha1.ReasonNodesUnderWay, gated + underWay
	case s.Gated > 0:
		return v1alpha1.ReasonNodesNotAdmitted, gated + "ingot machines says why"
	case underWay != "":
		return v1alpha1.ReasonNodesUnderWay, "no device in the shared cluster matches yet: " + underWay
	}
	return v1alpha1.ReasonSelectsNothing, fmt.Sprintf("no device in the shared cluster matches: are nodes of NodeType %s there, and does their driver publish? kubectl get resourceslices", c.NodeTypeRef.Name)
}

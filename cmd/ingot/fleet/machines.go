package fleet

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// MachineRow is a Machine as `ingot machines -o json` prints it.
type MachineRow struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	NodeType  string                `json:"nodeType"`
	Phase     v1alpha1.MachinePhase `json:"phase"`
	Host      string                `json:"host,omitempty"`
	Ready     bool                  `json:"ready"`
	// HostError is what the host reports. The Machine may be Ready all the same.
	HostError string `json:"hostError,omitempty"`
	// Reason is that of Ready.
	Reason string `json:"reason,omitempty"`
	// Since is when the phase was entered, Deadline when it should have ended.
	Since    *time.Time `json:"since,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
	// Overdue: the deadline has passed.
	Overdue    bool   `json:"overdue"`
	WaitingFor string `json:"waitingFor,omitempty"`
	Revision   string `json:"revision,omitempty"`
	// Rollout that the Machine is a target of.
	Rollout string `json:"rollout,omitempty"`
}

// MachineRows returns the Machines in the order of urgency: those past their deadline, then those that are not Ready, the longest
// waiting first, then those whose host is in error, then the others by name. hosts are empty where the user may not list them.
func MachineRows(machines []v1alpha1.Machine, hosts []placement.HostFacts, now time.Time) []MachineRow {
	reported := map[v1alpha1.NamespacedReference]string{}
	for _, h := range hosts {
		reported[v1alpha1.NamespacedReference{Namespace: h.Host.Namespace, Name: h.Host.Name}] = hostRow(h, nil).Error
	}
	rows := make([]MachineRow, 0, len(machines))
	for i := range machines {
		row := machineRow(&machines[i], now)
		if ref := machines[i].Status.HostRef; ref != nil {
			row.HostError = reported[*ref]
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b MachineRow) int {
		return cmp.Or(
			cmp.Compare(urgency(a), urgency(b)), compareWaitingTime(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return rows
}

func urgency(r MachineRow) int {
	switch {
	case r.Overdue:
		return 0
	case !r.Ready:
		return 1
	case r.HostError != "":
		return 2
	default:
		return 3
	}
}

// compareWaitingTime orders Machines that are not Ready by how long they have been waiting.
func compareWaitingTime(a, b MachineRow) int {
	if a.Ready || a.Since == nil || b.Since == nil {
		return 0
	}
	return a.Since.Compare(*b.Since)
}

func machineRow(m *v1alpha1.Machine, now time.Time) MachineRow {
	s := &m.Status
	r := MachineRow{
		Namespace: m.Namespace, Name: m.Name, NodeType: m.Spec.NodeTypeRef.Name, Phase: s.Phase, WaitingFor: s.WaitingFor,
		Revision: s.Revision, Rollout: m.Labels[v1alpha1.LabelRollout],
	}
	if s.HostRef != nil {
		r.Host = s.HostRef.Name
	}
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
		r.Ready, r.Reason = ready.Status == metav1.ConditionTrue, ready.Reason
	}
	if n := len(s.Timeline); n > 0 {
		at := s.Timeline[n-1].At.Time
		r.Since = &at
	}
	if s.Deadline != nil {
		at := s.Deadline.Time
		r.Deadline, r.Overdue = &at, !r.Ready && now.After(at)
	}
	return r
}

// machineTable returns the table for a terminal.
func machineTable(rows []MachineRow, now time.Time) [][]string {
	out := [][]string{{"NAMESPACE", "NAME", "NODETYPE", "PHASE", "HOST", "FOR", "DEADLINE", "WAITING FOR"}}
	for _, r := range rows {
		waiting := r.WaitingFor
		if !r.Ready && r.Reason != "" {
			waiting = r.Reason + ": " + waiting
		}
		if r.Ready && r.HostError != "" {
			waiting = "its host is in error: " + r.HostError
		}
		out = append(out, []string{r.Namespace, r.Name, r.NodeType, string(r.Phase), orDash(r.Host), timeSince(r.Since, now), timeUntil(r.Deadline, now), orDash(waiting)})
	}
	return out
}

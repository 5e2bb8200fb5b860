package fleet

import (
	"cmp"
	"fmt"
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
	// HeldBack says which Rollout is to move the Machine, and why the budgets of tenants keep it from that.
	HeldBack string `json:"heldBack,omitempty"`
}

// MachineRows returns the Machines in the order of urgency: those past their deadline, then those that are not Ready, the longest
// waiting first, then those whose host is in error or that a tenant's budget holds back, then the others by name. hosts and rollouts are empty where the user
// may not list them.
func MachineRows(machines []v1alpha1.Machine, hosts []placement.HostFacts, rollouts []v1alpha1.Rollout, now time.Time) []MachineRow {
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
		if r := rolloutAhead(&machines[i], rollouts); r != nil && !isUnderWay(&machines[i], r) && r.WaitsForTenants() != "" {
			row.HeldBack = fmt.Sprintf("rollout %s waits for %s", r.Name, r.WaitsForTenants())
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

// rolloutAhead returns the Rollout that moves the Machine, or is to; nil: there is none.
func rolloutAhead(m *v1alpha1.Machine, rollouts []v1alpha1.Rollout) *v1alpha1.Rollout {
	for i := range rollouts {
		if r := &rollouts[i]; r.Spec.NodeTypeRef == m.Spec.NodeTypeRef && !r.Status.Phase.IsFinal() && m.Status.HostRef != nil && m.Status.Installed() != r.Spec.Target() {
			return r
		}
	}
	return nil
}

func isUnderWay(m *v1alpha1.Machine, r *v1alpha1.Rollout) bool {
	return slices.Contains(r.Status.InProgress, m.Namespace+"/"+m.Name)
}

func urgency(r MachineRow) int {
	switch {
	case r.Overdue:
		return 0
	case !r.Ready:
		return 1
	case r.HostError != "" || r.HeldBack != "":
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
		switch {
		case r.Ready && r.HostError != "":
			waiting = "its host is in error: " + r.HostError
		case r.Ready && r.HeldBack != "":
			waiting = r.HeldBack
		}
		out = append(out, []string{r.Namespace, r.Name, r.NodeType, string(r.Phase), orDash(r.Host), timeSince(r.Since, now), timeUntil(r.Deadline, now), orDash(waiting)})
	}
	return out
}

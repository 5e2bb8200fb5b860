// Package observation reads hosts, Machines and Rollouts for the demo.
package observation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/display"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

// Observation holds the objects of the management cluster at one moment.
type Observation struct {
	Hosts    []metal3.BareMetalHost
	Records  map[types.NamespacedName]v1alpha1.HostRecord
	Machines []v1alpha1.Machine
	Rollouts []v1alpha1.Rollout
	// Outage is set when no manager works.
	Outage *leaderlease.Outage
}

// Observe lists the objects, and judges the manager's Lease at a time.
func Observe(ctx context.Context, c client.Client, now time.Time) (s Observation, err error) {
	var hosts metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	var machines v1alpha1.MachineList
	var rollouts v1alpha1.RolloutList
	for _, l := range []client.ObjectList{&machines, &hosts, &records, &rollouts} {
		if err := c.List(ctx, l); err != nil {
			return Observation{}, fmt.Errorf("look at the fleet: %w", err)
		}
	}
	s = Observation{Hosts: hosts.Items, Machines: machines.Items, Rollouts: rollouts.Items, Records: map[types.NamespacedName]v1alpha1.HostRecord{}}
	for _, r := range records.Items {
		s.Records[client.ObjectKeyFromObject(&r)] = r
	}
	s.Outage, err = readOutage(ctx, c, now)
	return s, err
}

// readOutage judges the manager's Lease. There is none until the first manager leads.
func readOutage(ctx context.Context, c client.Client, now time.Time) (*leaderlease.Outage, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: leaderlease.DefaultNamespace, Name: leaderlease.DefaultName}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the manager's Lease: %w", err)
	}
	return leaderlease.Judge(lease.Namespace, lease.Name, lease, now), nil
}

// Rows returns a row for each host, with its Machine, and then one for each Machine without a host.
func (s Observation) Rows() []display.Row {
	byHost := map[string]*v1alpha1.Machine{}
	var out []display.Row
	for i, m := range s.Machines {
		if m.Status.HostRef != nil {
			byHost[m.Status.HostRef.Name] = &s.Machines[i]
		} else {
			out = append(out, machineRow(&s.Machines[i]))
		}
	}
	for _, h := range s.Hosts {
		row := display.Row{}
		if m := byHost[h.Name]; m != nil {
			row = machineRow(m)
		}
		row.Host, row.HostState, row.Power = h.Name, string(h.Status.Provisioning.State), "Off"
		if h.Status.PoweredOn {
			row.Power = "On"
		}
		if h.Status.ErrorMessage != "" && row.Waiting == "" {
			row.Waiting = h.Status.ErrorMessage
		}
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b display.Row) int {
		return cmp.Or(cmp.Compare(sortKey(a), sortKey(b)), cmp.Compare(a.Machine, b.Machine))
	})
	return out
}

// sortKey returns the name of the host, or "~", which sorts after all names of hosts.
func sortKey(r display.Row) string { return cmp.Or(r.Host, "~") }

func machineRow(m *v1alpha1.Machine) display.Row {
	row := display.Row{Machine: m.Name, Phase: string(m.Status.Phase), Waiting: m.Status.WaitingFor}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		row.Ready = ready.Status == metav1.ConditionTrue
		if !row.Ready {
			row.Reason = ready.Reason
		}
	}
	if v := m.Status.Verdict; v != nil && m.Status.Phase == v1alpha1.MachineValidating {
		row.Failing = v.Result == v1alpha1.CheckFail
	}
	if p := m.Status.Progress; p != nil {
		row.Step, row.Done, row.Total = p.Step, p.DoneBytes, p.TotalBytes
	}
	return row
}

// StateLines returns a line that says that no manager works, if that is so, and one for every Rollout that is not settled.
func (s Observation) StateLines() []string {
	rollouts := s.rolloutLines()
	if s.Outage == nil {
		return rollouts
	}
	line := "no ingot-manager works: what is shown is what it stored last"
	if at := s.Outage.Since; at != nil {
		// The time and not the age: a line that changed with each second would be printed each second.
		line = fmt.Sprintf("no ingot-manager works since %s: what is shown is what it stored last", at.UTC().Format(time.RFC3339))
	}
	return append([]string{line}, rollouts...)
}

func (s Observation) rolloutLines() []string {
	var out []string
	for _, r := range s.Rollouts {
		if r.Status.Phase == "" || r.Status.Phase.IsFinal() {
			continue
		}
		n := r.Status.Targets
		line := fmt.Sprintf("rollout %s: %s, %d of %d done", r.Name, r.Status.Phase, n.Done, n.Total)
		if r.Status.StoppedBy != "" {
			line += "; stopped by " + r.Status.StoppedBy
		} else if len(r.Status.InProgress) > 0 {
			line += "; under way: " + strings.Join(r.Status.InProgress, ", ")
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// ActiveRollout returns the Rollout of the NodeType that is not settled, or nil.
func (s Observation) ActiveRollout(nodeType string) *v1alpha1.Rollout {
	for i, r := range s.Rollouts {
		if r.Spec.NodeTypeRef.Name == nodeType && !r.Status.Phase.IsFinal() {
			return &s.Rollouts[i]
		}
	}
	return nil
}

// Rollout returns the Rollout with the name, or nil.
func (s Observation) Rollout(name string) *v1alpha1.Rollout {
	for i, r := range s.Rollouts {
		if r.Name == name {
			return &s.Rollouts[i]
		}
	}
	return nil
}

// MachinesOf returns the Machines of a NodeType.
func (s Observation) MachinesOf(nodeType string) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for i, m := range s.Machines {
		if m.Spec.NodeTypeRef.Name == nodeType {
			out = append(out, &s.Machines[i])
		}
	}
	return out
}

// Machine returns the Machine with the name, or nil.
func (s Observation) Machine(name string) *v1alpha1.Machine {
	for i := range s.Machines {
		if s.Machines[i].Name == name {
			return &s.Machines[i]
		}
	}
	return nil
}

// MachineOn returns the Machine that has the host, or nil.
func (s Observation) MachineOn(host string) *v1alpha1.Machine {
	for i, m := range s.Machines {
		if m.Status.HostRef != nil && m.Status.HostRef.Name == host {
			return &s.Machines[i]
		}
	}
	return nil
}

// Host returns the host with the name, or nil.
func (s Observation) Host(name string) *metal3.BareMetalHost {
	for i := range s.Hosts {
		if s.Hosts[i].Name == name {
			return &s.Hosts[i]
		}
	}
	return nil
}

// IsReady reports whether a Machine is Ready. A nil Machine is not.
func IsReady(m *v1alpha1.Machine) bool {
	return m != nil && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// PhaseDurations returns how long a Machine was in each phase. Its present phase counts until now.
func PhaseDurations(m v1alpha1.Machine, now time.Time) display.MachineDurations {
	l := display.MachineDurations{Machine: m.Name, Phases: map[string]time.Duration{}}
	for i, e := range m.Status.Timeline {
		end := now
		if i+1 < len(m.Status.Timeline) {
			end = m.Status.Timeline[i+1].At.Time
		}
		l.Phases[string(e.Phase)] += end.Sub(e.At.Time)
	}
	delete(l.Phases, string(v1alpha1.MachineReady))
	return l
}

// UnmetChecks describes a Machine, with the checks of its verdict that do not pass.
func UnmetChecks(m *v1alpha1.Machine) string {
	if m == nil {
		return "there is no such Machine"
	}
	text := fmt.Sprintf("%s is %s: %s", m.Name, m.Status.Phase, m.Status.WaitingFor)
	if m.Status.Verdict == nil {
		return text
	}
	for _, c := range m.Status.Verdict.Checks {
		if c.Result == v1alpha1.CheckPass {
			continue
		}
		text += fmt.Sprintf("\n%s %s: expected %s, observed %s", c.Result, c.Name, c.Expected, c.Observed)
		if c.Hint != "" {
			text += "; " + c.Hint
		}
	}
	return text
}

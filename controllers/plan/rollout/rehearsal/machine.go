package rehearsal

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// fencing is how long it takes until a machine that was installing is off and begins anew.
const fencing = time.Minute

type machine struct {
	rollout.Machine
	// label is that of the Rollout that started it.
	label  string
	course Course
	// due is when the next step of its life ends; zero: it stays as it is.
	due  time.Time
	gone bool
}

// Add puts a Machine into the play that is Ready with the stable revision.
func (p *Play) Add(pool types.NamespacedName, namespace, name string) {
	p.machines = append(p.machines, &machine{Machine: rollout.Machine{
		Namespace: namespace, Name: name, Pool: pool, Installed: rendered(p.set.Stable), Claimed: true,
		Phase: v1alpha1.MachineReady, Ready: true, ReadySince: p.now,
	}})
}

// Grow adds a new Machine that claims a host now and is installed with the stable revision.
func (p *Play) Grow(pool types.NamespacedName, name string) {
	p.Add(pool, pool.Namespace, name)
	m := p.machines[len(p.machines)-1]
	m.Phase, m.Ready = v1alpha1.MachineProvisioning, false
	m.course = p.set.Course(key(m), m.Installed.Revision)
	m.due = p.now.Add(m.course.Install)
	p.Say("%s is new and is being installed with %s", key(m), m.Installed.Revision)
}

// Delete takes a Machine out of the play.
func (p *Play) Delete(machine types.NamespacedName) {
	m := p.find(machine)
	m.Deleting, m.Ready, m.due = true, false, p.now.Add(10*time.Minute)
	p.Say("%s is being deleted", machine)
}

// Lose takes a Machine's Ready away; it has it again after that time, 0 for never.
func (p *Play) Lose(machine types.NamespacedName, why string, mends time.Duration) {
	m := p.find(machine)
	m.Ready, m.Phase, m.WaitingFor, m.course, m.due = false, v1alpha1.MachineValidating, why, Course{}, time.Time{}
	if mends > 0 {
		m.due = p.now.Add(mends)
	}
	p.Say("%s is no longer Ready: %s", machine, why)
	p.peak = max(p.peak, p.unavailable())
}

// start is what the manager's request does to a Machine.
func (p *Play) start(r *record, m *machine) {
	m.Desired, m.label = r.To, r.Name
	m.course = p.set.Course(key(m), r.To.Revision)
	switch {
	case m.Installed == r.To && m.Phase == v1alpha1.MachineDraining: // called off
		m.due = p.now
	case m.Installed == r.To:
	default:
		if m.Phase != v1alpha1.MachineReady {
			m.course.Drain = fencing
		}
		m.Phase, m.Ready, m.FailureReason, m.WaitingFor = v1alpha1.MachineDraining, false, "", ""
		m.due = p.now.Add(m.course.Drain)
	}
}

// live ends a step of a Machine's life when its time has come.
func (p *Play) live(m *machine) {
	if m.due.IsZero() || p.now.Before(m.due) {
		return
	}
	m.due = time.Time{}
	switch {
	case m.Deleting:
		m.gone = true
	case m.Phase == v1alpha1.MachineDraining && m.Installed != m.Desired:
		p.drained(m)
	case m.course.Failed != "" && m.FailureReason == "":
		m.Phase = v1alpha1.MachineValidating
		p.fail(m)
	default:
		if m.FailureReason != "" || m.WaitingFor != "" {
			p.Say("%s is Ready again", key(m))
		}
		m.Phase, m.Ready, m.ReadySince, m.FailureReason, m.WaitingFor = v1alpha1.MachineReady, true, p.now, "", ""
	}
}

// drained ends the drain: either the pods have left, or they never will.
func (p *Play) drained(m *machine) {
	if m.course.Failed == v1alpha1.ReasonDrainTimedOut {
		p.fail(m)
		return
	}
	m.Phase, m.Installed = v1alpha1.MachineProvisioning, m.Desired
	m.due = p.now.Add(m.course.Install)
}

func (p *Play) fail(m *machine) {
	m.FailureReason, m.WaitingFor = m.course.Failed, m.course.WaitingFor
	if m.course.Mends > 0 {
		m.due = p.now.Add(m.course.Mends)
	}
	if m.WaitingFor == "" {
		p.Say("%s fails: %s", key(m), m.FailureReason)
		return
	}
	p.Say("%s fails: %s (%s)", key(m), m.FailureReason, m.WaitingFor)
}

// unavailable is how many Machines are not Ready, or about to be.
func (p *Play) unavailable() int {
	n := 0
	for _, m := range p.machines {
		if !m.Deleting && (!m.Ready || !m.Desired.IsZero() && m.Desired != m.Installed) {
			n++
		}
	}
	return n
}

func key(m *machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

package simulation

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// fenceDuration is how long it takes to power off a Machine that was installing, before it is installed again.
const fenceDuration = time.Minute

type machine struct {
	rollout.Machine
	// label is the name of the Rollout that started or marked it.
	label    string
	behavior Behavior
	// due is when its next step ends; zero: it stays as it is.
	due    time.Time
	isGone bool
	// held are the devices that claims hold on its node, by DeviceClass.
	held map[string]int
}

// AddMachine adds a Machine that is Ready with the stable revision.
func (s *Simulation) AddMachine(pool types.NamespacedName, namespace, name string) {
	s.machines = append(s.machines, &machine{Machine: rollout.Machine{
		Namespace: namespace, Name: name, Pool: pool, Installed: rendered(s.config.Stable), Claimed: true,
		Phase: v1alpha1.MachineReady, Ready: true, ReadySince: s.now,
	}})
}

// AddNewMachine adds a new Machine that claims a host now and is installed with the stable revision.
func (s *Simulation) AddNewMachine(pool types.NamespacedName, name string) {
	s.AddMachine(pool, pool.Namespace, name)
	m := s.machines[len(s.machines)-1]
	m.Phase, m.Ready = v1alpha1.MachineProvisioning, false
	m.behavior = s.config.Behavior(key(m), m.Installed.Revision)
	m.due = s.now.Add(m.behavior.Install)
	s.log("%s is new and is being installed with %s", key(m), m.Installed.Revision)
}

// AddMachineWithoutHost adds a new Machine for which there is no host. It has no desired revision.
func (s *Simulation) AddMachineWithoutHost(pool, name types.NamespacedName) {
	s.machines = append(s.machines, &machine{Machine: rollout.Machine{Namespace: name.Namespace, Name: name.Name, Pool: pool, Phase: v1alpha1.MachinePending}})
	s.log("%s is new and has no host", name)
}

// GiveHost gives a host to a Machine without one. It is installed with its desired revision or, if it has none, with the stable one.
func (s *Simulation) GiveHost(machine types.NamespacedName) {
	m := s.findMachine(machine)
	m.Claimed, m.Phase, m.Installed = true, v1alpha1.MachineProvisioning, cmp.Or(m.Desired, rendered(s.config.Stable))
	m.behavior = s.config.Behavior(machine, m.Installed.Revision)
	m.due = s.now.Add(m.behavior.Install)
	s.log("%s has a host now and is being installed with %s", machine, m.Installed.Revision)
}

// Break makes a Machine not Ready until a person mends it or it is installed again.
func (s *Simulation) Break(machine types.NamespacedName, reason, why string) {
	m := s.findMachine(machine)
	m.Ready, m.Phase, m.due = false, v1alpha1.MachineValidating, time.Time{}
	m.behavior = Behavior{FailureReason: reason, WaitingFor: why}
	s.fail(m)
	s.maxUnavailable = max(s.maxUnavailable, s.countUnavailable())
}

// DeleteMachine deletes a Machine, which takes ten minutes.
func (s *Simulation) DeleteMachine(machine types.NamespacedName) {
	m := s.findMachine(machine)
	m.Deleting, m.Ready, m.due = true, false, s.now.Add(10*time.Minute)
	s.log("%s is being deleted", machine)
}

// LoseReady makes a Machine not Ready; it becomes Ready again after that time, 0 for never.
func (s *Simulation) LoseReady(machine types.NamespacedName, why string, recoversAfter time.Duration) {
	m := s.findMachine(machine)
	m.Ready, m.Phase, m.WaitingFor, m.behavior, m.due = false, v1alpha1.MachineValidating, why, Behavior{}, time.Time{}
	if recoversAfter > 0 {
		m.due = s.now.Add(recoversAfter)
	}
	s.log("%s is no longer Ready: %s", machine, why)
	s.maxUnavailable = max(s.maxUnavailable, s.countUnavailable())
}

// start applies the request of the manager to start the Machine.
func (s *Simulation) start(r *rolloutObject, m *machine) {
	m.Desired, m.label = r.To, r.Name
	if !m.Claimed {
		return
	}
	// The reason is about an earlier generation until the Machine's controller has observed this one.
	m.FailureReason = ""
	m.behavior = s.config.Behavior(key(m), r.To.Revision)
	switch {
	case m.Installed == r.To && m.Phase == v1alpha1.MachineDraining: // the drain for another revision ends
		m.due = s.now
	case m.Installed == r.To:
	default:
		if m.Phase != v1alpha1.MachineReady {
			m.behavior.Drain = fenceDuration
		}
		m.Phase, m.Ready, m.FailureReason, m.WaitingFor = v1alpha1.MachineDraining, false, "", ""
		m.due = s.now.Add(m.behavior.Drain)
	}
}

// advance ends the Machine's current step if it is due.
func (s *Simulation) advance(m *machine) {
	if m.due.IsZero() || s.now.Before(m.due) {
		return
	}
	m.due = time.Time{}
	switch {
	case m.Deleting:
		m.isGone = true
	case m.Phase == v1alpha1.MachineDraining && m.Installed != m.Desired:
		s.finishDrain(m)
	case m.behavior.FailureReason != "" && m.FailureReason == "":
		m.Phase = v1alpha1.MachineValidating
		s.fail(m)
	default:
		if m.FailureReason != "" || m.WaitingFor != "" {
			s.log("%s is Ready again", key(m))
		}
		m.Phase, m.Ready, m.ReadySince, m.FailureReason, m.WaitingFor = v1alpha1.MachineReady, true, s.now, "", ""
	}
}

// finishDrain ends the drain: the pods have left, or the drain has timed out.
func (s *Simulation) finishDrain(m *machine) {
	if m.behavior.FailureReason == v1alpha1.ReasonDrainTimedOut {
		s.fail(m)
		return
	}
	m.Phase, m.Installed, m.held = v1alpha1.MachineProvisioning, m.Desired, nil
	m.due = s.now.Add(m.behavior.Install)
}

func (s *Simulation) fail(m *machine) {
	m.FailureReason, m.WaitingFor = m.behavior.FailureReason, m.behavior.WaitingFor
	if m.behavior.RecoversAfter > 0 {
		m.due = s.now.Add(m.behavior.RecoversAfter)
	}
	if m.WaitingFor == "" {
		s.log("%s fails: %s", key(m), m.FailureReason)
		return
	}
	s.log("%s fails: %s (%s)", key(m), m.FailureReason, m.WaitingFor)
}

// countUnavailable returns how many Machines with a host are not Ready, or will soon not be.
func (s *Simulation) countUnavailable() int {
	n := 0
	for _, m := range s.machines {
		if !m.Deleting && m.Claimed && (!m.Ready || !m.Desired.IsZero() && m.Desired != m.Installed) {
			n++
		}
	}
	return n
}

func key(m *machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

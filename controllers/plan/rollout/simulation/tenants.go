package simulation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// sharedCluster is the one cluster that the tenants of a simulation share.
const sharedCluster = "shared"

// HoldDevices has claims hold devices of a class on the node of a Machine until it is drained or they are freed. With 0 they are freed.
func (s *Simulation) HoldDevices(machine types.NamespacedName, class string, devices int) {
	m := s.findMachine(machine)
	if m.held == nil {
		m.held = map[string]int{}
	}
	if m.held[class] = devices; devices == 0 {
		delete(m.held, class)
	}
	s.log("%d devices of %s are held on node-%s", devices, class, machine.Name)
}

// tenants returns what the planner needs to know of the tenants.
func (s *Simulation) tenants() rollout.Tenants {
	out := rollout.Tenants{Held: map[types.NamespacedName][]rollout.Held{}, Budgets: map[rollout.Class]rollout.DeviceBudget{}}
	for class, limit := range s.config.MaxUnavailable {
		out.Budgets[rollout.Class{Cluster: sharedCluster, Name: class}] = rollout.DeviceBudget{Limit: limit, Entitlement: "shared/tenant"}
	}
	for _, m := range s.machines {
		for _, class := range slices.Sorted(maps.Keys(m.held)) {
			out.Held[key(m)] = append(out.Held[key(m)], rollout.Held{DeviceClass: class, Devices: m.held[class], Claims: 1})
		}
	}
	return out
}

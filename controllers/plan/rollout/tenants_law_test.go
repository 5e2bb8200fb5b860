package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// sharedClass is the class of the world's tenant.
var sharedClass = Class{Cluster: "shared", Name: "legal-gpu"}

// addHeld adds to the facts what claims hold on the Machine's node.
func (w *world) addHeld(f *Facts, o *object) {
	if w.tenants == nil {
		return
	}
	if f.Tenants.Held == nil {
		f.Tenants.Held = map[types.NamespacedName][]Held{}
		f.Tenants.Budgets = map[Class]DeviceBudget{sharedClass: {Limit: w.deviceLimit, Entitlement: "shared/legal"}}
	}
	m := &f.Machines[len(f.Machines)-1]
	m.Cluster, m.Node = sharedClass.Cluster, m.Name
	if o.held > 0 {
		f.Tenants.Held[m.key()] = []Held{{DeviceClass: sharedClass.Name, Devices: o.held, Claims: 1}}
	}
}

// changeClaims has the tenant take or free devices of a node. It can take none of one that is not Ready, or that is to be drained.
func (w *world) changeClaims() {
	if w.tenants == nil || w.tenants.IntN(3) > 0 {
		return
	}
	m := w.machines[w.tenants.IntN(len(w.machines))]
	most := m.held
	if m.Ready && !isRequested(&m.Machine) {
		most = 3
	}
	if held := w.tenants.IntN(most + 1); held != m.held && !m.isGone && m.Claimed {
		m.held = held
		w.logf("%s: %d devices are held", m.Name, held)
		w.recordMachine(m)
	}
}

// evict has the pods leave a node that is being drained, and the claims with them: mostly before the drain ends.
func (w *world) evict(m *machine) {
	if w.tenants != nil && w.tenants.IntN(4) > 0 {
		m.held = 0
	}
}

// freeClaims has the tenant free everything.
func (w *world) freeClaims() {
	for _, m := range w.machines {
		if m.held > 0 && !m.isGone {
			m.held = 0
			w.recordMachine(m)
		}
	}
}

// giveUp ends the count of what is not back when a Rollout is Done: a person has given it up, or it was broken before.
func (w *world) giveUp(status v1alpha1.RolloutStatus) {
	if status.Phase != v1alpha1.RolloutDone {
		return
	}
	for _, m := range w.machines {
		m.lost = 0
	}
}

// checkUse checks that the status counts what is in use on the node of a Machine that is started.
func (w *world) checkUse(f Facts, m *Machine) {
	for _, h := range f.Tenants.Held[m.key()] {
		isCounted := slices.ContainsFunc(f.Rollout.Status.InUse, func(u v1alpha1.DevicesInUse) bool {
			return u.Machine == m.key().String() && u.DeviceClass == h.DeviceClass && int(u.Devices) >= h.Devices
		})
		if !isCounted {
			w.violated("use: %s is started, and the status does not count that %d devices are held there: %v", m.Name, h.Devices, f.Rollout.Status.InUse)
		}
	}
}

// checkDevices checks the tenant's budget in the actual state, for what rollouts have taken away or may still take.
func (w *world) checkDevices(m *Machine) {
	truth := w.machineNamed(m.key())
	if w.tenants == nil || truth.held == 0 || isRequested(&truth.Machine) || truth.rv != w.observedVersion(truth) {
		return // no harm, or a conflict
	}
	taken := map[string]int{}
	for _, o := range w.machines {
		if !o.Deleting && !o.isGone {
			taken[o.Name] = o.lost
		}
	}
	for _, fl := range w.inFlight {
		if fl.canSucceed() && !fl.machine.Deleting {
			taken[fl.machine.Name] = max(fl.machine.lost, fl.machine.held)
		}
	}
	taken[m.Name] = truth.held
	sum := 0
	for _, n := range taken {
		sum += n
	}
	if sum > w.deviceLimit {
		w.violated("devices: %s is started, and %d devices of at most %d are unavailable: %v", m.Name, sum, w.deviceLimit, taken)
	}
}

// hasDeviceRoom reports whether the tenant's budget has room for the Machine, by the status as read.
func (w *world) hasDeviceRoom(f Facts, m *Machine) bool {
	held := f.Tenants.Held[m.key()]
	if len(held) == 0 {
		return true
	}
	sum := held[0].Devices
	for _, u := range f.Rollout.Status.InUse {
		if u.Machine != m.key().String() {
			sum += int(u.Devices)
		}
	}
	if f.Previous != nil {
		for _, u := range f.Previous.InUse {
			sum += int(u.Devices)
		}
	}
	return sum <= w.deviceLimit
}

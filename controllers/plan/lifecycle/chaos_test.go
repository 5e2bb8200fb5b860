package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// step is one of a history.
func (w *world) step() {
	w.missKubelets()
	w.initialize()
	switch r := w.rng.IntN(20); {
	case r < 9:
		w.reconcile(w.machines[w.rng.IntN(len(w.machines))])
	case r < 13:
		h := w.hosts[w.rng.IntN(len(w.hosts))]
		if w.reconcileHost(h); w.served != nil {
			w.runServer(h)
		}
	case r < 16:
		w.runServer(w.hosts[w.rng.IntN(len(w.hosts))])
	case r < 17:
		if m := w.machines[w.rng.IntN(len(w.machines))]; !m.gone {
			w.judge(m)
		}
	case r < 18:
		w.now = w.now.Add(time.Duration(w.rng.IntN(240)) * time.Second)
	case w.served != nil && w.rng.IntN(2) == 0:
		w.disturbServed()
	default:
		w.disturb()
	}
	if len(w.pending) > 0 && w.rng.IntN(3) == 0 {
		w.deliver(w.rng.IntN(len(w.pending)))
	}
	w.sync()
	w.checkHosts()
}

func (w *world) deliver(i int) {
	effect := w.pending[i]
	w.pending = append(w.pending[:i], w.pending[i+1:]...)
	w.late = true
	w.logf("a late effect arrives")
	effect()
	w.late = false
}

// disturb is what the world does to the planners.
func (w *world) disturb() {
	h, m := w.hosts[w.rng.IntN(len(w.hosts))], w.machines[w.rng.IntN(len(w.machines))]
	what := w.rng.IntN(18)
	w.logf("disturbance %d of %s and %s", what, h.name, m.live.Name)
	switch what {
	case 0:
		w.tenant.reachable = !w.tenant.reachable
	case 1:
		w.delete(m)
	case 3: // a power cut
		h.hw.booted = false
	case 4:
		h.live.paused = !h.live.paused
		h.live.rv++
	case 5: // the tenant's administrator deletes a Node
		delete(w.tenant.nodes, m.live.Name)
	case 6: // somebody presses a power button; between a confirmed power-off and what follows that is the host controller's to see
		rewritten := h.hw.disk.complete && h.live.spec.Machine != nil && h.hw.disk.attempt != h.live.spec.Attempt
		if w.served == nil && (h.live.online && !rewritten || h.live.consumer == "") {
			w.power(h, !h.hw.on)
		}
	case 7:
		for i := range w.pending {
			w.deliver(i)
			break
		}
	case 8: // somebody takes a host away by force
		if w.rng.IntN(8) == 0 {
			h.live.consumer, h.live.consumerName = "somebody", "somebody"
			h.live.rv++
			h.live.generation++
		}
	case 2, 9, 10: // a rollout, or an undo
		w.setRevision(m, revisionNames[w.rng.IntN(len(revisionNames))])
	case 11: // the rolls that run are called off
		for _, m := range w.machines {
			if m.live.Status.Phase == v1alpha1.MachineDraining {
				w.setRevision(m, m.live.Status.Revision)
			}
		}
	case 17: // the switch of the rack, or its power, fails for up to a day, or is back: nothing is heard of any server, and what runs may run on
		w.isDark = !w.isDark
		w.now = w.now.Add(time.Duration(w.rng.IntN(24*60)) * time.Minute)
		if w.isDark && w.rng.IntN(2) == 0 {
			for _, h := range w.hosts {
				h.hw.booted = false
			}
		}
	case 16: // the clock is set a day either way, or right again
		w.setClock(time.Duration(w.rng.IntN(3)-1) * 24 * time.Hour)
	case 13, 14: // spec.powerOff is set, or cleared
		w.setPowerOff(m, !m.live.Spec.PowerOff)
	case 15: // a machine of the tenant's own has the name of a Machine
		if w.tenant.byCluster || w.served != nil {
			w.registerForeign(m.live.Name)
		}
		w.tenant.byCluster = w.tenant.byCluster != (w.edits && w.rng.IntN(2) == 0) // and its TenantCluster may be edited
	case 12: // what a disruption budget protects comes or goes; or a person cordons
		if n := w.tenant.nodes[m.live.Name]; n != nil {
			n.kept = !n.kept
			n.cordoned = n.cordoned || w.rng.IntN(2) == 0
		}
	}
}

// setRevision sets spec.revision and spec.rendering.
func (w *world) setRevision(m *machine, name string) {
	if asked := rendered(name); !m.gone {
		m.live.Spec.Revision, m.live.Spec.Rendering = asked.Revision, asked.Rendering
		m.live.Generation++
		m.live.rv++
	}
}

func (w *world) setPowerOff(m *machine, off bool) {
	if !m.gone && m.live.Spec.PowerOff != off {
		m.live.Spec.PowerOff = off
		m.live.Generation++
		m.live.rv++
	}
}

func (w *world) delete(m *machine) {
	if m.gone || m.live.Deleting {
		return
	}
	m.live.Deleting = true
	m.live.rv++
	m.gone = !m.live.Finalizer
}

// mayRest are the reasons with which a Machine may stay as it is when nothing goes wrong any more: another one has the host, or a
// person has to look.
var mayRest = map[string]bool{
	v1alpha1.ReasonPoweredOff: true, v1alpha1.ReasonNoHostAvailable: true, v1alpha1.ReasonHostLost: true, v1alpha1.ReasonJoinTimedOut: true, v1alpha1.ReasonNodeConflict: true,
}

// settle ends the chaos and lets everybody work, until every Machine is Ready, gone, or stuck with a reason.
func (w *world) settle() {
	w.chaos, w.tenant.reachable, w.isDark = false, true, false
	w.setClock(0)
	for len(w.pending) > 0 {
		w.deliver(0)
	}
	for i, h := range w.hosts {
		h.live.paused, h.live.retry = false, fmt.Sprint("retry-", i)
		h.operator, h.hw.isDark = operator{}, false
		h.live.rv++
	}
	for name, n := range w.tenant.nodes {
		n.kept = false
		if n.owner == "foreign" {
			delete(w.tenant.nodes, name) // its owner gave it another name
		}
	}
	for _, m := range w.machines {
		// A person undoes what cannot work. A Machine that is Ready meanwhile needs no help.
		bad := !isInstallable(m.live.Spec.Revision) && m.live.Spec.Revision != "" || m.live.Status.Revision != "" && !isInstallable(m.live.Status.Revision)
		if bad && m.live.Status.Phase != v1alpha1.MachineReady && m.live.Status.Phase != v1alpha1.MachineValidating {
			w.setRevision(m, "rev-1")
		}
		if w.rng.IntN(4) > 0 {
			w.setPowerOff(m, false)
		}
	}
	w.sync()
	for rests, turns := 0, 0; rests < 3; turns++ {
		if turns == 200 {
			w.violated("4: does not settle: %s", w.state())
			return
		}
		w.turn()
		if rests++; !w.isAtRest() {
			rests = 0
		}
	}
	w.checkRest()
}

// turn lets everybody work once.
func (w *world) turn() {
	w.missKubelets()
	w.initialize()
	for _, m := range w.machines {
		if m.gone {
			continue
		}
		for range 2 {
			w.reconcile(m)
			w.sync()
		}
		w.judge(m)
	}
	for _, h := range w.hosts {
		for range w.looks() {
			w.reconcileHost(h)
			w.sync()
			w.runServer(h)
		}
	}
	w.freeOrphans()
	w.sync()
	w.checkHosts()
	w.now = w.now.Add(time.Minute)
}

func (w *world) isAtRest() bool {
	for _, m := range w.machines {
		if m.gone || m.live.Status.Phase == v1alpha1.MachineReady {
			continue
		}
		ready := meta.FindStatusCondition(m.live.Status.Conditions, v1alpha1.ConditionReady)
		if m.live.Deleting || ready == nil || !mayRest[ready.Reason] || m.live.Status.WaitingFor == "" {
			return false
		}
	}
	return true
}

// checkRest: what is left when everything has settled.
func (w *world) checkRest() {
	for _, h := range w.hosts {
		owner := w.machineNamed(h.live.consumerName)
		if h.live.consumer != "" && h.live.consumerName != "somebody" && (owner == nil || owner.gone) {
			w.violated("4: %s is kept by %s, which is gone", h.name, h.live.consumerName)
		}
	}
	for id, t := range w.tenant.tokens {
		for _, m := range w.machines {
			if t.machine == m.live.UID && !t.late && t.expires.After(w.now) && (m.gone || m.live.Status.Phase == v1alpha1.MachineReady || m.live.Status.Phase == v1alpha1.MachineJoining) {
				w.violated("6: %s of %s still lives", id, m.live.Name)
			}
		}
	}
	for _, m := range w.machines {
		w.checkReadyAtRest(m)
	}
	for name := range w.tenant.nodes {
		if m := w.machineNamed(name); m.gone && !m.remains && !w.isStolen(name) {
			w.violated("4: Node %s is left behind and nothing reported that", name)
		}
	}
}

// checkReadyAtRest: whoever is Ready is what is wanted, and admits pods.
func (w *world) checkReadyAtRest(m *machine) {
	s := m.live.Status
	if m.gone || s.Phase != v1alpha1.MachineReady {
		return
	}
	if m.live.Spec.PowerOff {
		w.violated("power-off: %s rests in Ready and is to be off", m.live.Name)
	}
	if want := m.live.Spec.Asked(); isInstallable(want.Revision) && (want.Revision != s.Revision || want.Rendering != "" && want.Rendering != s.Rendering) {
		w.violated("roll: %s rests with %s, %s is wanted", m.live.Name, text(s.Installed()), text(want))
	}
	upToDate := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionUpToDate)
	if want := m.live.Spec.Revision; want != "" && !isInstallable(want) && (upToDate == nil || upToDate.Status == "True" || !strings.Contains(upToDate.Message, want)) {
		w.violated("roll: %s does not say why it cannot be rolled to %s: %v", m.live.Name, want, upToDate)
	}
	if w.tenant.nodes[m.live.Name].ours {
		w.violated("roll: %s is Ready and its Node is still cordoned", m.live.Name)
	}
	if h := w.hostOf(m.live.Machine); !h.live.online {
		w.violated("roll: %s is Ready and its host is asked to be off", m.live.Name)
	}
}

// isStolen: somebody took the host with that Machine's system on it by force, and what runs there is theirs.
func (w *world) isStolen(name string) bool {
	return slices.ContainsFunc(w.hosts, func(h *host) bool { return h.live.consumer == "somebody" && h.hw.disk.name == name })
}

func (w *world) machineNamed(name string) *machine {
	for _, m := range w.machines {
		if m.live.Name == name {
			return m
		}
	}
	return nil
}

// state is for messages.
func (w *world) state() string {
	var b strings.Builder
	for _, m := range w.machines {
		ready := meta.FindStatusCondition(m.live.Status.Conditions, v1alpha1.ConditionReady)
		fmt.Fprintf(&b, "\n  %s gone=%t deleting=%t %s: %+v", m.live.Name, m.gone, m.live.Deleting, m.live.Status.Phase, ready)
	}
	for _, h := range w.hosts {
		record, _ := json.Marshal(h.live.record)
		fmt.Fprintf(&b, "\n  %s consumer=%s online=%t image=%q %s on=%t disk=%+v %s", h.name, h.live.consumerName, h.live.online, h.live.imageURL, h.live.status.State, h.hw.on, h.hw.disk, record)
	}
	return b.String()
}

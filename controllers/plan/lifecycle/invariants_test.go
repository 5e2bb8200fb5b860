package lifecycle

import (
	"reflect"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The invariants of the design, where they can be seen to break.

// checkIntent: an effect belongs to the phase that is recorded already, and to the host that is.
func (w *world) checkIntent(f Facts, d Decision) {
	if d.Status.Phase != f.Machine.Status.Phase && d.Action.Kind != AddFinalizer {
		w.violated("intent: %s together with the step from %s to %s", d.Action.Kind, f.Machine.Status.Phase, d.Status.Phase)
	}
}

// misleading are conditions as a Machine may have them when somebody else wrote or lost them.
var misleading = [][]metav1.Condition{
	nil,
	{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPoweringOff}},
	{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeRemains}},
	{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}, {Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHostLost}},
}

// checkMemory: nothing that is done depends on what a condition says.
func (w *world) checkMemory(f Facts, d Decision) {
	for _, conditions := range misleading {
		f.Machine.Status.Conditions = conditions
		other := plan(f, w.guards)
		s, o := d.Status, other.Status
		if o.Phase != s.Phase || !reflect.DeepEqual(other.Action, d.Action) || other.Requeue != d.Requeue || other.RequeueAfter != d.RequeueAfter ||
			!o.PowerOffRequestedAt.Equal(s.PowerOffRequestedAt) || !reflect.DeepEqual(o.PowerOff, s.PowerOff) || !o.NodeRemainsReportedAt.Equal(s.NodeRemainsReportedAt) {
			w.violated("memory: with conditions %v %s goes to %s with action %v, and else to %s with action %v", conditions, f.Machine.Name, o.Phase, other.Action, s.Phase, d.Action)
		}
	}
}

func (w *world) checkClaim(m *machine, h *host) {
	if h.live.consumer != "" && h.live.consumer != m.live.UID {
		w.violated("1: %s takes %s from %s", m.live.Name, h.name, h.live.consumerName)
	}
	if w.served != nil {
		w.checkServedClaim(m, h)
	} else if !isClean(h.live) || h.hw.disk.complete || h.live.status.ErrorType != "" || h.live.paused {
		w.violated("3: %s claims %s, which is not clean, or kept back", m.live.Name, h.name)
	}
	for _, other := range w.hosts {
		if other != h && other.live.consumer == m.live.UID {
			w.violated("1: %s has %s and claims %s", m.live.Name, other.name, h.name)
		}
	}
}

func (w *world) checkMine(f Facts, h *host, a Action) {
	if (h.live.consumer == "somebody" || h.live.consumer == "") && (a.Kind == WriteHostRecord || a.Kind == ClearHostRecord || a.Kind == WriteClaimSecret) {
		return // records and Secrets are not locked together with the host; without its consumerRef they move nothing
	}
	if h.live.consumer != f.Machine.UID {
		w.violated("1: %s by %s on %s, which is %q's", a.Kind, f.Machine.Name, h.name, h.live.consumerName)
	}
}

func (w *world) checkDeprovision(m *machine, f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	isForNextImage := w.served != nil && f.Machine.Status.Phase == v1alpha1.MachineDraining && f.Machine.Status.PowerOffRequestedAt != nil
	if !m.live.Deleting && !isForNextImage {
		w.violated("a host was deprovisioned although its Machine %s lives", m.live.Name)
	}
	if h.live.status.State == metal3.StateProvisioned {
		w.checkFence(h, !isForNextImage && f.IsDrainOver())
	}
}

// checkInstall: a revision that suits, on a host that nothing of an earlier attempt uses any more.
func (w *world) checkInstall(f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	if reason, _ := revisionProblem(f, f.Revision); reason != "" {
		w.violated("roll: %s is installed with %s: %s", f.Machine.Name, f.Revision.Name, reason)
	}
	// One that is requested once more, because its cleaning was enabled meanwhile, may have ended.
	isAgain := w.served != nil && h.live.imageURL == f.Revision.Image.URL && h.live.userData == f.Machine.Status.Attempt
	if h.hw.disk.complete && !isAgain {
		w.checkFence(h, false)
	}
}

// checkEvicted: the power goes when the pods went, or a release gave them their time.
func (w *world) checkEvicted(m *machine, f Facts) {
	n, ref := w.tenant.nodes[f.Machine.Name], f.Machine.Status.NodeRef
	if n == nil || ref == nil || n.uid != ref.UID || n.pods == 0 || f.Machine.Status.Phase == v1alpha1.MachineReleasing && w.now.Sub(m.entered) >= f.Timeouts.Draining {
		return
	}
	w.violated("fence: %s is powered off while %d pods run on it", f.Machine.Name, n.pods)
}

// checkRoll: a drain has a reason, a re-image is the next attempt on the same host, and a drain ends without one only while
// the machine runs.
func (w *world) checkRoll(m *machine, f Facts, d Decision, h *host) {
	from, s := m.live.Status, d.Status
	switch {
	case s.Phase == v1alpha1.MachineDraining && m.live.Spec.PowerOff:
	case s.Phase == v1alpha1.MachineDraining && NextRevision(m.live.Machine).IsZero():
		w.violated("roll: %s is drained and nothing else is wanted of it", m.live.Name)
	case s.Phase == v1alpha1.MachineDraining && !isInstallable(f.NextRevision.Name):
		w.violated("roll: %s is drained for %s, which it cannot have", m.live.Name, f.NextRevision.Name)
	case from.Phase != v1alpha1.MachineDraining:
	case s.Phase == v1alpha1.MachineProvisioning && (s.Attempt != from.Attempt+1 || *s.HostRef != *from.HostRef):
		w.violated("roll: %s goes from attempt %d on %v to %d on %v", m.live.Name, from.Attempt, from.HostRef, s.Attempt, s.HostRef)
	case s.Phase == v1alpha1.MachineProvisioning && m.live.Spec.PowerOff:
		w.violated("power-off: %s is installed while spec.powerOff is set", m.live.Name)
	case s.Phase == v1alpha1.MachineValidating && from.PowerOff != nil && h.live.consumer == m.live.UID:
	case s.Phase == v1alpha1.MachineValidating && (!h.live.online || h.live.consumer != m.live.UID):
		w.violated("roll: the roll of %s was called off after its host was asked to power off", m.live.Name)
	}
}

// checkPowerOn: what goes on is the Machine's own system, and nobody asks for it to be off. The boot that ended is remembered.
func (w *world) checkPowerOn(f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	if f.Machine.Spec.PowerOff || h.hw.disk.machine != f.Machine.UID || h.hw.disk.attempt != f.Machine.Status.Attempt {
		w.violated("power-off: %s is powered on for %s, with %s/%d on its disk", h.name, f.Machine.Name, h.hw.disk.name, h.hw.disk.attempt)
	}
	if !h.hw.on {
		h.hw.ended = bootName(h, h.hw.boot)
	}
}

// checkPoweredOff: whoever says that a server is off for spec.powerOff has asked its host to be off, and has no deadline. A status that is written late may say
// what was so before somebody changed the host by hand.
func (w *world) checkPoweredOff(m *machine) {
	s, h := m.live.Status, w.hostOf(m.live.Machine)
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	if w.late || ready == nil || ready.Reason != v1alpha1.ReasonPoweredOff || h.live.consumer != m.live.UID {
		return
	}
	if h.live.online || s.Deadline != nil || s.Phase != v1alpha1.MachineDraining {
		w.violated("power-off: %s is powered off in %s with deadline %v, and %s is online: %t", m.live.Name, s.Phase, s.Deadline, h.name, h.live.online)
	}
}

// checkFence: the machine is off and its Node object is gone.
func (w *world) checkFence(h *host, nodeMayRemain bool) {
	if h.hw.on {
		w.violated("fence: %s runs while its disk is given away", h.name)
	}
	if n := w.tenant.nodes[h.hw.disk.name]; n != nil && h.hw.disk.complete && n.owner == h.hw.disk.machine && !nodeMayRemain {
		w.violated("fence: the Node of %s exists while its disk is given away", h.name)
	}
}

// checkTouch: nothing is written over a system that has joined and runs.
func (w *world) checkTouch(h *host) {
	if h.hw.booted && h.hw.credential {
		w.violated("7: the disk of %s is written while its node runs", h.name)
	}
}

func (w *world) checkReturn(f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	if w.served != nil {
		w.checkServedReturn(h)
	} else if !isClean(h.live) || h.hw.disk.complete || h.live.imageURL != "" || h.live.spec.Machine != nil {
		w.violated("3: %s is returned to the pool and is not clean", h.name)
	}
}

func (w *world) checkDeleteNode(m *machine, h *host) {
	if w.tenant.nodes[m.live.Name].owner == "foreign" {
		w.violated("13: %s deletes the Node of a machine of the tenant's own", m.live.Name)
	}
	disk := h.hw.disk
	if h.hw.on && h.hw.booted && w.tenant.nodes[m.live.Name].isOf(disk) {
		w.violated("fence: Node %s is deleted while its machine runs", m.live.Name)
	}
}

// checkEntry looks at the truth when a phase is entered.
func (w *world) checkEntry(m *machine, f Facts, d Decision) {
	h := w.hostOf(f.Machine)
	w.checkRoll(m, f, d, h)
	s := m.live.Status
	switch d.Status.Phase {
	case v1alpha1.MachineJoining:
		disk := h.hw.disk
		if h.live.consumer != m.live.UID && h.live.consumer != "somebody" || !disk.complete || disk.machine != m.live.UID || disk.attempt != s.Attempt {
			w.violated("7: %s is Joining without its image on the disk of %s", m.live.Name, h.name)
		}
		if disk.revision != s.Revision || disk.image != revisions[s.Revision].Image.URL {
			w.violated("7: %s is Joining with %s on the disk of %s, not %s", m.live.Name, disk.revision, h.name, s.Revision)
		}
	case v1alpha1.MachineValidating:
		if n, ref := w.tenant.nodes[m.live.Name], d.Status.NodeRef; n != nil && ref != nil && ref.UID == n.uid && (n.owner != m.live.UID || n.attempt != s.Attempt) {
			w.violated("13: %s with attempt %d is bound to the Node that attempt %d of %s registered", m.live.Name, s.Attempt, n.attempt, n.owner)
		}
	case v1alpha1.MachineReady:
		v := s.Verdict
		if v == nil || v.Result != v1alpha1.CheckPass || v.NodeUID != d.Status.NodeRef.UID || v.BootID != f.Node.BootID {
			w.violated("2: %s is Ready without a verdict on this Node and boot", m.live.Name)
		} else if h.hw.ended != "" && v.BootID == h.hw.ended {
			w.violated("2: %s is Ready with a verdict on boot %s, which ended with its power-off", m.live.Name, v.BootID)
		}
		h.hw.ended = ""
	}
}

// checkStatus: whoever is not Ready says why, and no reason is ever lost.
func (w *world) checkStatus(m *machine) {
	s := m.live.Status
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Reason == "" || ready.Message == "":
		w.violated("4: %s in %s does not say why", m.live.Name, s.Phase)
	case ready.Status == "True" && s.Phase != v1alpha1.MachineReady:
		w.violated("4: %s in %s says Ready", m.live.Name, s.Phase)
	}
	settled := s.Phase == v1alpha1.MachinePending || s.Phase == v1alpha1.MachineReady || ready != nil && ready.Reason == v1alpha1.ReasonPoweredOff
	w.checkPoweredOff(m)
	if settled != (s.Deadline == nil) {
		w.violated("4: %s in %s has deadline %v", m.live.Name, s.Phase, s.Deadline)
	}
}

func (w *world) checkGone(m *machine) {
	for _, h := range w.hosts {
		if h.live.consumer == m.live.UID {
			w.violated("4: %s is gone and keeps %s", m.live.Name, h.name)
		}
	}
}

// checkHosts holds at every step.
func (w *world) checkHosts() {
	for i, h := range w.hosts {
		for _, other := range w.hosts[i+1:] {
			if h.live.consumer != "" && h.live.consumer != "somebody" && h.live.consumer == other.live.consumer {
				w.violated("1: %s has %s and %s", h.live.consumerName, h.name, other.name)
			}
		}
		w.checkErased(h)
		if h.hw.booted && !h.hw.disk.complete {
			w.violated("7: %s boots a disk that was not written completely", h.name)
		}
	}
}

package lifecycle

import (
	"slices"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// server is the hardware behind a host, with what its installer does to it.
type server struct {
	on        bool
	disk      disk
	attempt   *hardware.AttemptStatus
	operation hardware.Operation
	// work is whose installation the attempt is.
	work disk
	boot int
	// ended is the boot that a power-off for spec.powerOff ended, until its Machine is Ready again.
	ended string
	// booted: what is on the disk runs.
	booted bool
	// ironic, cleaning and leftBy are of a served world: what its installer does, how it cleans, and the tenant whose data is on the disk.
	ironic   ironicState
	cleaning metal3.AutomatedCleaningMode
	leftBy   string
	// isDark: the BMC of such a server does not answer, and its power is unknown.
	isDark bool
	// credential: the node has joined once and needs no token any more.
	credential bool
}

// disk is what is on it; the zero value is nothing.
type disk struct {
	machine  types.UID
	name     string
	attempt  int64
	revision string
	image    string
	tokenID  string
	complete bool
	// byCluster: kubelet was told no providerID.
	byCluster bool
}

// reconcileHost is one turn of the host's controller with the real planner.
func (w *world) reconcileHost(h *host) {
	if w.served != nil {
		w.operate(h)
		return
	}
	observed := h.cached
	f := hostplan.Facts{
		Clock: w.clock(), Timeouts: hostplan.DefaultTimeouts(), Spec: observed.spec, Record: observed.record, ErasePolicy: v1alpha1.EraseMetadata,
		Host: hostplan.Host{
			Generation: observed.generation, Paused: observed.paused, Online: observed.online, Claimed: observed.consumer != "",
			ConsumerUID: string(observed.consumer), HasImage: observed.imageURL != "", Retry: observed.retry, Status: observed.status,
		},
	}
	if w.happens(5) || w.isDark {
		f.Problem = &hostplan.Problem{Reason: "BMCUnreachable", Message: "no answer"}
	} else {
		power := hardware.PowerOff
		if h.hw.on {
			power = hardware.PowerOn
		}
		f.Observed = &hardware.Observation{Power: power, Attempt: h.hw.attempt}
	}
	f.Grant = &breaker.Answer{IsGranted: true}
	d := hostplan.Plan(f)
	w.logf("%s %s -> %s %s %s power %s gen %d", h.name, observed.status.State, d.Status.State, d.Action.Kind, d.Status.ErrorMessage, d.Record.Power.State, d.Record.Power.ObservedGeneration)
	// The record first, then the action, then the status, as host.Decision asks; each under the version observed.
	recorded := w.try(func() bool {
		if h.live.recordRV != observed.recordRV {
			return false
		}
		h.live.record = d.Record
		h.live.recordRV++
		return true
	})
	if !recorded {
		return
	}
	if d.Action.Kind != hostplan.ActionNone && !w.happens(5) {
		w.hardware(h, d.Action, observed)
	}
	w.try(func() bool {
		if h.live.rv != observed.rv {
			return false
		}
		if h.live.status != d.Status {
			h.live.status = d.Status
			h.live.rv++
		}
		return true
	})
}

// hardware does what the host's controller asks of the server.
func (w *world) hardware(h *host, a hostplan.Action, observed bmh) {
	s := &h.hw
	switch a.Kind {
	case hostplan.ActionSetPower:
		w.power(h, a.Power.Desired == hardware.PowerOn)
	case hostplan.ActionCancel:
		if s.attempt != nil && s.attempt.Number == a.Attempt.Number {
			s.attempt.State, s.attempt.Reason = hardware.AttemptFailed, hardware.ReasonCancelled
		} else {
			s.attempt = &hardware.AttemptStatus{Number: a.Attempt.Number, State: hardware.AttemptFailed, Reason: hardware.ReasonCancelled}
		}
		w.power(h, false)
	case hostplan.ActionInstall, hostplan.ActionErase:
		if s.attempt != nil && s.attempt.Number >= a.Attempt.Number {
			return
		}
		op := hardware.OpInstall
		s.work = disk{}
		if a.Kind == hostplan.ActionErase {
			op = hardware.OpErase
		} else if observed.spec.Machine != nil {
			s.work = disk{machine: observed.spec.Machine.UID, name: observed.spec.Machine.Name, attempt: observed.spec.Attempt, revision: observed.spec.Revision, image: a.Image.URL, byCluster: w.isTold(observed.spec.Machine.Name)}
		}
		w.checkTouch(h)
		w.power(h, false)
		s.operation = op
		s.attempt = &hardware.AttemptStatus{Number: a.Attempt.Number, State: hardware.AttemptRunning, Step: hardware.StepBooting}
	}
}

func (w *world) power(h *host, on bool) {
	if h.hw.on != on {
		w.logf("  power of %s: %t", h.name, on)
		h.hw.on, h.hw.booted = on, false
	}
}

// runServer lets a server go on by itself.
func (w *world) runServer(h *host) {
	a := h.hw.attempt
	switch {
	case w.isDark:
	case w.served != nil:
		w.runServed(h)
	case a != nil && a.State == hardware.AttemptRunning:
		w.runAttempt(h, a)
	default:
		w.runDisk(h)
	}
}

// runDisk boots what is on the disk, and lets it run.
func (w *world) runDisk(h *host) {
	s := &h.hw
	if !s.on {
		return
	}
	if !s.booted && s.disk.complete {
		s.booted = true
		s.boot++
	}
	if s.booted {
		w.runNode(h)
	}
}

func (w *world) runAttempt(h *host, a *hardware.AttemptStatus) {
	s := &h.hw
	if wanted := h.live.record.Wanted; wanted != nil && wanted.Number == a.Number && wanted.Outcome != "" {
		a.State, a.Reason, a.Message = hardware.AttemptFailed, hardware.ReasonDeadlineExceeded, "the installer's own deadline has passed too"
		return
	}
	s.on = true
	switch {
	case w.happens(10):
		a.State, a.Reason, a.Message = hardware.AttemptFailed, hardware.ReasonDiskError, "write failed"
	case a.Step == hardware.StepBooting && s.operation == hardware.OpInstall:
		a.Step = hardware.StepRegistered
	case a.Step == hardware.StepRegistered && !w.fetchDocuments(h, a):
	case a.Step == hardware.StepBooting, a.Step == hardware.StepRegistered:
		a.Step = hardware.StepWriting
		s.disk, s.credential = disk{}, false // the first MiB is gone
	case s.operation == hardware.OpErase:
		a.State = hardware.AttemptSucceeded
		w.power(h, false)
	default:
		a.State = hardware.AttemptSucceeded
		s.disk = s.work
		s.disk.complete = true
	}
}

// fetchDocuments is the agent that asks the boot service for its config drive. The service answers from the Secret that was written for this
// installation, and stores otherwise that the agent waits.
func (w *world) fetchDocuments(h *host, a *hardware.AttemptStatus) (isServed bool) {
	s, wanted := &h.hw, h.live.record.Wanted
	if wanted == nil || wanted.Number != a.Number {
		return false
	}
	if sec := w.secrets[h.name]; sec != nil && sec.tokenID != "" && sec.machine == s.work.machine && sec.attempt == s.work.attempt && sec.installation == a.Number {
		s.work.tokenID = sec.tokenID
		return true
	}
	if p := h.live.record.Progress(); p == nil || p.ConfigDriveAwaitedAt == nil {
		at := metav1.NewMicroTime(w.clock().Now)
		h.live.record.Attempt = &v1alpha1.HostAttempt{Number: a.Number, State: string(hardware.AttemptRunning), Step: string(hardware.StepRegistered), StepAt: &at, ConfigDriveAwaitedAt: &at}
		h.live.recordRV++
	}
	return false
}

// runNode is kubelet: with a token it joins, and from then on it keeps its Node.
func (w *world) runNode(h *host) {
	s := &h.hw
	t := w.tenant.tokens[s.disk.tokenID]
	valid := t != nil && t.expires.After(w.now)
	if !s.credential && !valid || !w.tenant.reachable {
		return
	}
	boot := bootName(h, s.boot)
	n := w.tenant.nodes[s.disk.name]
	switch {
	case n == nil:
		n = &node{uid: types.UID(w.uid("node")), owner: s.disk.machine, attempt: s.disk.attempt, systemUUID: h.uuid,
			bootID: boot, gated: true, pods: w.rng.IntN(3), kept: w.happens(30)}
		if !s.disk.byCluster {
			n.providerID = v1alpha1.ProviderID(n.owner, n.attempt)
		} else {
			n.installation = v1alpha1.InstallationLabel(n.owner, n.attempt)
		}
		w.tenant.nodes[s.disk.name] = n
		s.credential = true
	case n.isOf(s.disk) && n.bootID != boot:
		n.bootID, n.gated = boot, true
	}
}

// isTold: the documents of that Machine's attempt say that the tenant's cluster sets the providerID.
func (w *world) isTold(name string) bool {
	m := w.machineNamed(name)
	return m != nil && m.live.Status.ProviderID == v1alpha1.ProviderIDByCluster
}

// isOf: what is on that disk has registered the Node.
func (n *node) isOf(d disk) bool { return n.owner == d.machine && n.attempt == d.attempt }

// registerForeign is a machine of the tenant's own that registers under the name of a Machine.
func (w *world) registerForeign(name string) {
	if w.tenant.nodes[name] != nil || !w.tenant.reachable {
		return
	}
	w.tenant.nodes[name] = &node{uid: types.UID(w.uid("node")), owner: "foreign", systemUUID: "4c4c4544-0042-3010-8053-b8c04f3344ff", bootID: "foreign"}
}

// initialize is the cloud provider of a tenant's cluster that sets providerIDs.
func (w *world) initialize() {
	for name, n := range w.tenant.nodes {
		if w.tenant.byCluster && n.providerID == "" {
			n.providerID = "cloud://" + name
		}
	}
}

// bootName is the boot id of a server's boot.
func bootName(h *host, boot int) string { return h.name + string(rune('a'+boot%26)) }

// missKubelets is the tenant's API server: it misses a kubelet that has been silent for a minute, and the validation controller sees that.
func (w *world) missKubelets() {
	for _, m := range w.machines {
		n := w.tenant.nodes[m.live.Name]
		if n == nil || w.runs(m.live.Name, n.bootID) && !w.isDark {
			if n != nil {
				n.silentSince = time.Time{}
			}
			continue
		}
		if n.silentSince.IsZero() {
			n.silentSince = w.now
		}
		v := m.live.Status.Verdict
		if w.now.Sub(n.silentSince) >= time.Minute && w.tenant.reachable && v != nil && v.NodeUID == n.uid && v.Result == v1alpha1.CheckPass {
			failed := *v
			failed.Result, failed.Admitted, n.gated = v1alpha1.CheckFail, false, true
			m.live.Status.Verdict = &failed
			m.live.rv++
		}
	}
}

// runs: the boot of the Node of that name runs on some server.
func (w *world) runs(name, boot string) bool {
	return slices.ContainsFunc(w.hosts, func(h *host) bool { return h.hw.booted && h.hw.disk.name == name && bootName(h, h.hw.boot) == boot })
}

// judge is the validation controller: it passes a verdict on what it sees, now or later.
func (w *world) judge(m *machine) {
	s := &m.live.Status
	n := w.tenant.nodes[m.live.Name]
	if n == nil || !w.tenant.reachable || s.NodeRef == nil || n.uid != s.NodeRef.UID || w.happens(50) {
		return
	}
	result := v1alpha1.CheckPass
	if w.happens(20) || !n.silentSince.IsZero() && w.now.Sub(n.silentSince) >= time.Minute {
		result = v1alpha1.CheckFail
	}
	v := v1alpha1.Verdict{Result: result, Admitted: result == v1alpha1.CheckPass, NodeUID: n.uid, BootID: n.bootID, Revision: s.Revision, Rendering: s.Rendering}
	n.gated = !v.Admitted
	if s.Verdict == nil || s.Verdict.Result != v.Result || s.Verdict.NodeUID != v.NodeUID || s.Verdict.BootID != v.BootID {
		s.Verdict = &v
		m.live.rv++
	}
}

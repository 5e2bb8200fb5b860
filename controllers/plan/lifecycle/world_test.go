package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// world is a small reference of everything around the planners: an API server with resource versions, a tenant's cluster,
// servers with power and disks. It obeys no planner: what an action does is decided here.
type world struct {
	rng      *rand.Rand
	now      time.Time
	chaos    bool
	guards   guards
	machines []*machine
	hosts    []*host
	tenant   tenant
	secrets  map[string]*secret // by host
	pending  []func()           // effects that arrive late
	late     bool               // one of them arrives now
	nextUID  int
	broken   []string // what the invariants found
	timeouts Timeouts
	reached  map[v1alpha1.MachinePhase]bool
	trace    func(format string, args ...any)
}

// machine is a Machine object: live as the API server has it, cached as a manager last saw it.
type machine struct {
	live, cached object
	gone         bool
	// remains: an event said that the Node may be left behind.
	remains bool
}

type object struct {
	Machine
	rv int
}

// bmh is a BareMetalHost and its HostRecord.
type bmh struct {
	rv, recordRV int
	generation   int64
	consumer     types.UID
	consumerName string
	online       bool
	imageURL     string
	paused       bool
	retry        string
	status       hostplan.Status
	spec         v1alpha1.HostRecordSpec
	record       v1alpha1.HostRecordStatus
}

type host struct {
	name         string
	live, cached bmh
	hw           server
}

type tenant struct {
	reachable bool
	nodes     map[string]*node
	tokens    map[string]*token
}

type node struct {
	uid                       types.UID
	providerID, bootID        string
	gated, cordoned, labelled bool
	pods                      int
}

type token struct {
	machine types.UID
	expires time.Time
	// late: the request arrived after its sender had given it up; nobody knows of the token, and its time must end it.
	late bool
}

type secret struct {
	machine types.UID
	attempt int64
	tokenID string
}

const image = "http://images/one.raw.zst"

func newWorld(seed uint64, machines, hosts int, g guards) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), guards: g,
		secrets: map[string]*secret{}, tenant: tenant{reachable: true, nodes: map[string]*node{}, tokens: map[string]*token{}},
		timeouts: DefaultTimeouts(), reached: map[v1alpha1.MachinePhase]bool{},
	}
	for i := range hosts {
		h := &host{name: fmt.Sprintf("host-%d", i)}
		h.live.generation = 1
		h.live.status.State = hostplan.StateAvailable
		h.live.record.Power = &v1alpha1.HostPower{State: "Off", ObservedGeneration: 1, ObservedAt: metav1.NewMicroTime(w.now)}
		h.live.record.Inventory = &v1alpha1.HostInventory{SystemUUID: "dmi-" + h.name}
		h.cached = h.live
		w.hosts = append(w.hosts, h)
	}
	for i := range machines {
		w.addMachine(fmt.Sprintf("m%d", i))
	}
	return w
}

func (w *world) uid(prefix string) string {
	w.nextUID++
	return fmt.Sprintf("%s-%d", prefix, w.nextUID)
}

func (w *world) addMachine(name string) {
	m := &machine{}
	m.live.Machine = Machine{Namespace: "team", Name: name, UID: types.UID(w.uid("machine")), Generation: 1, Created: w.now}
	m.live.Spec.NodeTypeRef.Name, m.live.Spec.TenantClusterRef.Name = "h100", "research"
	m.cached = m.live
	w.machines = append(w.machines, m)
}

func (w *world) violated(format string, args ...any) {
	if len(w.broken) < 5 {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

// tell traces, for TestOneHistory.
func (w *world) tell(format string, args ...any) {
	if w.trace != nil {
		w.trace(w.now.Format("15:04:05 ")+format, args...)
	}
}

// happens is chance while there is chaos.
func (w *world) happens(percent int) bool { return w.chaos && w.rng.IntN(100) < percent }

// sync brings a manager's caches up to date, or during chaos sometimes not.
func (w *world) sync() {
	for _, m := range w.machines {
		if !w.happens(20) {
			m.cached = m.live
		}
	}
	for _, h := range w.hosts {
		if !w.happens(30) {
			h.cached = h.live
		}
	}
}

// facts are what a shell would observe for the Machine.
func (w *world) facts(m *machine) (Facts, *host, bmh) {
	f := Facts{
		Now: w.now, Timeouts: w.timeouts, Machine: m.cached.Machine,
		NodeType: NodeType{Found: true, Ready: true, Stable: "rev-1", Target: "rev-1"},
		Provider: Provider{Found: true, HostNamespace: "metal", Records: true, Erase: v1alpha1.EraseMetadata},
		Tenant:   Tenant{Found: true, Reachable: w.tenant.reachable, Reason: "TenantUnreachable", Message: "no answer", Version: "v1.37.0"},
	}
	f.Revision = Revision{Name: WantedRevision(f.Machine, f.NodeType), Image: v1alpha1.ExactImage{URL: image, Checksum: "sha256:00", Format: "raw.zst"}, Kubelet: "1.37.0"}
	h := w.hostOf(f.Machine)
	var seen bmh
	if h == nil && f.Machine.Status.HostRef == nil {
		f.Choice = w.place(f.Machine.UID)
	}
	if h != nil {
		seen = h.cached
		phase := f.Machine.Status.Phase
		if phase == v1alpha1.MachineClaiming || phase == v1alpha1.MachineReleasing || seen.consumer != f.Machine.UID {
			seen = h.live // the shell asks the API server itself
		}
		f.Host = hostFacts(h.name, seen, f.Machine.UID)
		if phase == v1alpha1.MachineClaiming {
			f.Host.Unfit = unfit(h.name, seen)
		}
		if s := w.secrets[h.name]; s != nil && s.machine == f.Machine.UID {
			f.Secret = Secret{Found: true, Attempt: s.attempt, TokenID: s.tokenID}
		}
	}
	if !w.tenant.reachable {
		return f, h, seen
	}
	if n := w.tenant.nodes[f.Machine.Name]; n != nil {
		f.Node = Node{Found: true, UID: n.uid, ProviderID: n.providerID, BootID: n.bootID, Unschedulable: n.cordoned, Furnished: n.labelled, Pods: make([]string, n.pods)}
	}
	for id, t := range w.tenant.tokens {
		if t.machine == f.Machine.UID && !(f.Secret.Found && f.Secret.TokenID == "") {
			f.Token = &Token{ID: id, Expires: t.expires}
		}
	}
	return f, h, seen
}

func (w *world) hostOf(m Machine) *host {
	for _, h := range w.hosts {
		if m.Status.HostRef != nil && h.name == m.Status.HostRef.Name || m.Status.HostRef == nil && h.live.consumer == m.UID {
			return h
		}
	}
	return nil
}

func hostFacts(name string, b bmh, uid types.UID) *Host {
	f := &Host{
		Namespace: "metal", Name: name, Generation: b.generation, Online: b.online, ImageURL: b.imageURL,
		State: string(b.status.State), Error: string(b.status.ErrorType), ErrorMessage: b.status.ErrorMessage,
		Paused: b.paused, PoweredOn: b.status.PoweredOn,
		Record: &Record{Spec: b.spec, Status: b.record},
	}
	switch b.consumer {
	case "":
	case uid:
		f.Consumer = ConsumerMine
	default:
		f.Consumer, f.ConsumerName = ConsumerOther, b.consumerName
	}
	return f
}

// placeable is the host as placement sees it.
func placeable(name string, b bmh) placement.HostFacts {
	h := &metal3api.BareMetalHost{}
	h.Name, h.Namespace, h.Labels = name, "metal", map[string]string{"gpu-model": "h100"}
	if b.consumer != "" {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Machine", Name: b.consumerName, UID: b.consumer}
	}
	if b.imageURL != "" {
		h.Spec.Image = &metal3api.Image{URL: b.imageURL}
	}
	if b.paused {
		h.Annotations = map[string]string{metal3api.PausedAnnotation: ""}
	}
	h.Spec.Online = b.online
	h.Status.ErrorType, h.Status.ErrorMessage = metal3api.ErrorType(b.status.ErrorType), b.status.ErrorMessage
	h.Status.OperationalStatus = metal3api.OperationalStatus(b.status.OperationalStatus)
	h.Status.PoweredOn = b.status.PoweredOn
	h.Status.Provisioning.State = metal3api.ProvisioningState(b.status.State)
	return placement.HostFacts{Host: h, Record: &v1alpha1.HostRecord{Spec: b.spec, Status: b.record}}
}

var wanted = placement.Request{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}}, Tenant: "team/research"}

// unfit asks placement about the one host.
func unfit(name string, b bmh) string {
	request := wanted
	request.HostName = name
	if d := placement.Choose(request, []placement.HostFacts{placeable(name, b)}); d.Host == "" {
		return d.Message
	}
	return ""
}

func isClean(b bmh) bool {
	return b.record.Installed == nil && (b.record.LastTenant == "" || b.record.Erased != nil)
}

func (w *world) place(uid types.UID) Choice {
	request, hosts := wanted, []placement.HostFacts{}
	request.MachineUID = uid
	for _, h := range w.hosts {
		hosts = append(hosts, placeable(h.name, h.cached))
	}
	d := placement.Choose(request, hosts)
	if d.Host == "" {
		return Choice{Reason: d.Reason, Message: d.Message}
	}
	return Choice{Host: types.NamespacedName{Namespace: "metal", Name: d.Host}}
}

// reconcile is one turn of a Machine's controller: facts, plan, act, one status write.
func (w *world) reconcile(m *machine) {
	if m.gone {
		return
	}
	f, h, seen := w.facts(m)
	d := plan(f, w.guards)
	w.tell("%s %s -> %s: action %v, waits for %q", m.live.Name, f.Machine.Status.Phase, d.Status.Phase, d.Action, d.Status.WaitingFor)
	if d.Action != nil {
		if d.Action.Kind == CreateToken && d.Action.TokenID == "" {
			d.Action.TokenID = w.uid("token") // the shell's random one
		}
		w.checkIntent(f, d)
		if !w.try(func() bool { return w.act(m, f, h, seen, *d.Action) }) {
			return // the shell reports the error and starts over
		}
	}
	rv := m.cached.rv
	if d.Action != nil && (d.Action.Kind == AddFinalizer || d.Action.Kind == RemoveFinalizer) {
		rv = m.live.rv
	}
	w.try(func() bool { return w.writeStatus(m, rv, f, d) })
}

// try lets an effect through, or loses it, or loses only the answer, or lets it arrive late. It says whether the caller was told
// of success.
func (w *world) try(effect func() bool) bool {
	switch {
	case w.happens(4):
		w.tell("  lost")
		return false
	case w.happens(4):
		w.tell("  answer lost")
		effect()
		return false
	case w.happens(4):
		w.tell("  late")
		w.pending = append(w.pending, func() { effect() })
		return false
	case w.happens(3):
		effect()
		return effect()
	default:
		return effect()
	}
}

func (w *world) writeStatus(m *machine, rv int, f Facts, d Decision) bool {
	if m.gone || m.live.rv != rv {
		return false
	}
	if d.Status.Phase != m.live.Status.Phase {
		w.checkEntry(m, f, d)
		w.reached[d.Status.Phase] = true
	}
	verdict := m.live.Status.Verdict
	m.live.Status = d.Status
	m.live.Status.Verdict = verdict
	m.live.rv++
	for _, e := range d.Events {
		m.remains = m.remains || e.Reason == v1alpha1.ReasonNodeRemains
	}
	w.checkStatus(m)
	return true
}

// act is what the shell's actions do to the API objects. Every write is under the version that was seen; no guard of
// the planner is repeated here, so that its absence shows.
func (w *world) act(m *machine, f Facts, h *host, seen bmh, a Action) bool {
	n := w.tenant.nodes[f.Machine.Name]
	nodeMatches := w.tenant.reachable && n != nil && n.uid == a.NodeUID
	switch a.Kind {
	case AddFinalizer:
		return w.onMachine(m, func() { m.live.Finalizer = true })
	case RemoveFinalizer:
		return w.onMachine(m, func() { m.live.Finalizer = false; m.gone = m.live.Deleting; w.checkGone(m) })
	case ClaimHost:
		if r := m.live.Status.HostRef; m.gone || r == nil || r.Name != h.name || m.live.Status.Phase != v1alpha1.MachineClaiming {
			return false // the shell reads the Machine once more before it claims
		}
		return w.onHost(h, seen, func() {
			w.checkClaim(m, h)
			h.live.consumer, h.live.consumerName = f.Machine.UID, f.Machine.Name
		})
	case PowerOff:
		return w.onHost(h, seen, func() { w.checkMine(f, h, a); h.live.online = false })
	case RequestInstall:
		return w.onHost(h, seen, func() { w.checkMine(f, h, a); h.live.imageURL, h.live.online = image, true })
	case Deprovision:
		return w.onHost(h, seen, func() { w.checkDeprovision(m, f, h, a); h.live.imageURL, h.live.online = "", false })
	case ReturnHost:
		return w.onHost(h, seen, func() { w.checkReturn(f, h, a); h.live.consumer, h.live.consumerName = "", "" })
	case WriteHostRecord:
		return w.onRecord(h, seen, func() { w.checkMine(f, h, a); h.live.spec = a.Record })
	case ClearHostRecord:
		return w.onRecord(h, seen, func() { w.checkMine(f, h, a); h.live.spec = v1alpha1.HostRecordSpec{} })
	case WriteClaimSecret:
		w.checkMine(f, h, a)
		w.secrets[h.name] = &secret{f.Machine.UID, f.Machine.Status.Attempt, a.TokenID}
	case ScrubSecret:
		w.secrets[h.name] = &secret{f.Machine.UID, f.Machine.Status.Attempt, ""}
	case DeleteClaimSecret:
		delete(w.secrets, h.name)
	case CreateToken, RenewToken:
		w.setToken(f, a)
	case DeleteToken:
		delete(w.tenant.tokens, a.TokenID)
	case FurnishNode:
		if nodeMatches {
			n.labelled = true
		}
	case Cordon:
		if nodeMatches {
			n.cordoned = true
		}
	case Evict:
		if nodeMatches {
			n.pods = max(0, n.pods-1)
		}
	case DeleteNode:
		if nodeMatches {
			w.checkDeleteNode(m, h)
			delete(w.tenant.nodes, f.Machine.Name)
		}
	}
	return true
}

func (w *world) setToken(f Facts, a Action) {
	if !w.tenant.reachable {
		return
	}
	if p := f.Machine.Status.Phase; p != v1alpha1.MachineProvisioning && p != v1alpha1.MachineJoining {
		w.violated("6: token: %s in phase %s", a.Kind, p)
	}
	if a.Expires.Sub(f.Now) > 15*time.Minute {
		w.violated("6: token lives longer than 15 minutes")
	}
	w.tenant.tokens[a.TokenID] = &token{machine: f.Machine.UID, expires: a.Expires, late: w.late}
}

func (w *world) onMachine(m *machine, change func()) bool {
	if m.gone || m.live.rv != m.cached.rv {
		return false
	}
	change()
	m.live.rv++
	return true
}

func (w *world) onHost(h *host, seen bmh, change func()) bool {
	if h.live.rv != seen.rv {
		return false
	}
	image, online, consumer := h.live.imageURL, h.live.online, h.live.consumer
	change()
	if image != h.live.imageURL || online != h.live.online || consumer != h.live.consumer {
		h.live.generation++
	}
	h.live.rv++
	return true
}

func (w *world) onRecord(h *host, seen bmh, change func()) bool {
	if h.live.recordRV != seen.recordRV {
		return false
	}
	change()
	h.live.recordRV++
	return true
}

// freeOrphans is what the shell does for hosts whose Machine is gone.
func (w *world) freeOrphans() {
	for _, h := range w.hosts {
		exists := slices.ContainsFunc(w.machines, func(m *machine) bool { return !m.gone && m.live.UID == h.live.consumer })
		if h.live.consumer != "" && Orphaned(exists, *hostFacts(h.name, h.live, "nobody")) {
			h.live.consumer, h.live.consumerName = "", ""
			h.live.rv++
		}
	}
}

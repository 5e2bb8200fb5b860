package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// world is a small reference of everything around the planners: an API server with resource versions, a tenant's cluster,
// servers with power and disks. It obeys no planner: what an action does is decided here.
type world struct {
	rng *rand.Rand
	now time.Time
	// clockOff is how far the manager's clock is off from now, and clockSet when it was set; zero: never.
	clockOff time.Duration
	clockSet time.Time
	chaos    bool
	// isDark is true while nothing is heard of any server: their switch or their power failed.
	isDark   bool
	edits    bool // spec.join.providerID changes
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
	rolls    int          // re-images that succeeded
	plans    int          // decisions that were made
	served   *servedWorld // nil: the hosts have HostRecords
	trace    func(format string, args ...any)
}

// machine is a Machine object: live as the API server has it, cached as a manager last saw it.
type machine struct {
	live, cached object
	gone         bool
	// remains: an event said that the Node may be left behind.
	remains bool
	// entered is when its phase began, in truth.
	entered time.Time
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
	installation *v1alpha1.Installation
	paused       bool
	retry        string
	status       hostplan.Status
	spec         v1alpha1.HostRecordSpec
	record       v1alpha1.HostRecordStatus
	servedHost
}

type host struct {
	name, uuid   string
	live, cached bmh
	hw           server
	operator     operator
}

type tenant struct {
	reachable bool
	// byCluster: its own cloud provider sets providerIDs.
	byCluster bool
	nodes     map[string]*node
	tokens    map[string]*token
}

type node struct {
	uid                types.UID
	providerID, bootID string
	// owner and attempt are the truth of who registered it, and when.
	owner           types.UID
	attempt         int64
	systemUUID      string
	installation    string
	gated, labelled bool
	// cordoned by whomever; ours: by a Machine's controller.
	cordoned, ours bool
	pods           int
	// silentSince: its boot runs no more since then.
	silentSince time.Time
	// kept: a disruption budget lets no pod go.
	kept bool
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
	// installation is the host's attempt that it was written for.
	installation int64
	tokenID      string
	revision     string
	// late: the request that wrote it arrived after its sender had given it up.
	late bool
}

// revisions are what a Machine can be asked to be. The first and the third differ in user data only; the others must never be
// installed.
var revisions = map[string]Revision{
	"rev-1":    {Image: imageA, Kubelet: "1.37.0"},
	"rev-2":    {Image: imageB, Kubelet: "1.37.0"},
	"rev-3":    {Image: imageA, Kubelet: "1.36.2"},
	"rev-gone": {Problem: "it does not exist"},
	"rev-new":  {Image: imageB, Kubelet: "1.38.0"},
	"rev-dra":  {Image: imageB, Kubelet: "1.37.0", DRA: true},
}

// revisionNames are what may be wanted of a Machine; some name another rendering of a revision.
var revisionNames = append(slices.Sorted(maps.Keys(revisions)), "rev-1/second", "rev-3/first", "rev-3/second")

// isInstallable: a person may want it of a Machine and expect to get it.
func isInstallable(revision string) bool {
	return revision == "rev-1" || revision == "rev-2" || revision == "rev-3"
}

var (
	imageA = v1alpha1.ExactImage{URL: "http://images/a.raw.zst", Checksum: "sha256:0a", Format: "raw.zst"}
	imageB = v1alpha1.ExactImage{URL: "http://images/b.raw.zst", Checksum: "sha256:0b", Format: "raw.zst"}
)

// revisionOf reads revision or revision/rendering; every revision has a rendering called first.
func revisionOf(name string) Revision {
	named := rendered(name)
	r := revisions[named.Revision]
	r.Name, r.Rendering = named.Revision, cmp.Or(named.Rendering, "first")
	return r
}

func rendered(name string) v1alpha1.RenderedRevision {
	revision, rendering, _ := strings.Cut(name, "/")
	return v1alpha1.RenderedRevision{Revision: revision, Rendering: rendering}
}

// text is what rendered reads.
func text(r v1alpha1.RenderedRevision) string {
	return strings.TrimSuffix(r.Revision+"/"+r.Rendering, "/")
}

func newWorld(seed uint64, machines, hosts int, g guards) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), guards: g,
		secrets: map[string]*secret{}, tenant: tenant{reachable: true, nodes: map[string]*node{}, tokens: map[string]*token{}},
		timeouts: DefaultTimeouts(), reached: map[v1alpha1.MachinePhase]bool{},
	}
	for i := range hosts {
		h := &host{name: fmt.Sprintf("host-%d", i), uuid: fmt.Sprintf("4c4c4544-0042-3010-8053-b8c04f3344%02d", i)}
		h.live.generation = 1
		h.live.status.State = metal3.StateAvailable
		h.live.record.Power = &v1alpha1.HostPower{State: "Off", ObservedGeneration: 1, ObservedAt: metav1.NewMicroTime(w.now)}
		h.live.record.Inventory = &v1alpha1.HostInventory{SystemUUID: h.uuid}
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
	m.live.Machine = Machine{Namespace: "team", Name: name, UID: types.UID(w.uid("machine")), Generation: 1, Created: w.clock().Now}
	m.live.Spec.NodeTypeRef.Name, m.live.Spec.TenantClusterRef.Name = "h100", "research"
	m.cached = m.live
	w.setTenant(m, len(w.machines))
	w.machines = append(w.machines, m)
}

func (w *world) violated(format string, args ...any) {
	w.logf("VIOLATED "+format, args...)
	if len(w.broken) < 5 {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

// logf writes a line of the trace of TestOneHistory.
func (w *world) logf(format string, args ...any) {
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
		Clock: w.clock(), Timeouts: w.timeouts, Machine: m.cached.Machine,
		NodeType: NodeType{Found: true, Ready: true, Stable: rendered("rev-1"), Target: rendered("rev-1")},
		Provider: Provider{Found: true, HostNamespace: "metal", HasRecords: w.served == nil, Erase: v1alpha1.EraseMetadata},
		Tenant:   Tenant{Found: true, Reachable: w.tenant.reachable, Reason: "TenantUnreachable", Message: "no answer", Version: "v1.37.0", ClusterUID: w.clusterUID(m.cached.Machine)},
	}
	if w.tenant.byCluster {
		f.Tenant.ProviderID = v1alpha1.ProviderIDByCluster
	}
	f.Revision = revisionOf(text(CurrentRevision(f.Machine, f.NodeType)))
	if next := NextRevision(f.Machine); !next.IsZero() {
		f.NextRevision = revisionOf(text(next))
	}
	h := w.hostOf(f.Machine)
	var observed bmh
	if h == nil && f.Machine.Status.HostRef == nil {
		f.Placement = w.place(f.Machine)
	}
	if h != nil {
		observed = h.cached
		isLive := w.readsLive(f.Machine.Status)
		if isLive || observed.consumer != f.Machine.UID {
			observed = h.live // the shell asks the API server itself
		}
		if f.Host = hostFacts(h.name, observed, f.Machine.UID); !isLive {
			f.Host.ObservedGeneration, f.Host.Manageable = nil, nil // the cache has no conditions
		}
		if f.Machine.Status.Phase == v1alpha1.MachineClaiming {
			f.Host.ClaimProblem = claimProblem(w.placementRequestOf(f.Machine), h.name, observed)
		}
		if s := w.secrets[w.claimKey(h, f)]; s != nil && s.machine == f.Machine.UID {
			f.Secret = Secret{Found: true, Attempt: s.attempt, HostAttempt: s.installation, TokenID: s.tokenID}
		}
	}
	if !w.tenant.reachable {
		return f, h, observed
	}
	w.observeTenant(&f)
	return f, h, observed
}

// clock is the manager's, which may be off from the true time.
func (w *world) clock() watched.Clock {
	c := watched.Clock{Now: w.now.Add(w.clockOff)}
	if !w.clockSet.IsZero() {
		c.Since = w.clockSet.Add(w.clockOff)
	}
	return c
}

// setClock sets the manager's clock by so much off the true time.
func (w *world) setClock(off time.Duration) {
	if w.clockOff != off {
		w.clockOff, w.clockSet = off, w.now
	}
}

// observeTenant reads the Node in the phases in which there may be one, and the token.
func (w *world) observeTenant(f *Facts) {
	phase, draining := f.Machine.Status.Phase, false
	switch phase {
	case v1alpha1.MachineReleasing, v1alpha1.MachineDraining:
		draining = true
		fallthrough
	case v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady:
		if n := w.tenant.nodes[f.Machine.Name]; n != nil {
			f.Node = Node{Found: true, UID: n.uid, ProviderID: n.providerID, SystemUUID: n.systemUUID, Installation: n.installation, BootID: n.bootID, Unschedulable: n.cordoned, CordonedByIngot: n.ours}
			if !n.labelled {
				f.Node.Missing.Labels = []string{"team"}
			}
			if draining && n.cordoned {
				f.Node.Pods = make([]string, n.pods)
			}
			if n.kept && n.pods > 0 {
				f.Node.Budgets = []string{"team/budget"}
			}
		}
	}
	if !f.CanHaveToken() {
		return
	}
	scrubbed := f.Secret.Found && f.Secret.TokenID == "" && f.Secret.Attempt == f.Machine.Status.Attempt
	for _, id := range slices.Sorted(maps.Keys(w.tenant.tokens)) {
		if t := w.tenant.tokens[id]; t.machine == f.Machine.UID && !scrubbed && (f.Token == nil || id == f.Secret.TokenID) {
			f.Token = &Token{ID: id, Expires: t.expires.Add(w.clockOff)}
		}
	}
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
		State: b.status.State, Error: string(b.status.ErrorType),
		Paused: b.paused, PoweredOn: b.status.PoweredOn, Installation: b.installation,
		Record: &HostRecord{Spec: b.spec, Status: b.record},
	}
	if b.isServed {
		b.addServed(f)
	}
	switch b.consumer {
	case "":
	case uid:
		f.Consumer = ConsumerMine
	default:
		f.Consumer = ConsumerOther
	}
	return f
}

// placeable is the host as placement sees it.
func placeable(name string, b bmh) placement.HostFacts {
	h := &metal3.BareMetalHost{}
	h.Name, h.Namespace, h.Labels = name, "metal", map[string]string{"gpu-model": "h100"}
	if b.consumer != "" {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Machine", Name: b.consumerName, UID: b.consumer}
	}
	if b.imageURL != "" {
		h.Spec.Image = &metal3.Image{URL: b.imageURL}
	}
	if b.paused {
		h.Annotations = map[string]string{metal3.PausedAnnotation: ""}
	}
	h.Spec.Online = b.online
	h.Status.ErrorType, h.Status.ErrorMessage = b.status.ErrorType, b.status.ErrorMessage
	h.Status.OperationalStatus = b.status.OperationalStatus
	h.Status.PoweredOn = b.status.PoweredOn
	h.Status.Provisioning.State = b.status.State
	if b.isServed {
		return b.servedPlaceable(h)
	}
	return placement.HostFacts{Host: h, Record: &v1alpha1.HostRecord{Spec: b.spec, Status: b.record}}
}

var placementRequest = placement.Request{
	NodeType: v1alpha1.NodeTypeSpec{HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}}},
	Provider: v1alpha1.NodeProviderSpec{HostNamespace: "metal"}, Tenant: "team/research", TenantClusterUID: "cluster-1",
}

// claimProblem asks placement about the one host.
func claimProblem(request placement.Request, name string, b bmh) string {
	request.HostName = name
	if d := placement.Choose(request, []placement.HostFacts{placeable(name, b)}); d.Host == "" {
		return d.Message
	}
	return ""
}

func isClean(b bmh) bool {
	return b.record.Installed == nil && (b.record.LastTenant == "" || b.record.Erased != nil)
}

func (w *world) place(m Machine) Placement {
	request, hosts := w.placementRequestOf(m), []placement.HostFacts{}
	request.MachineUID = m.UID
	for _, h := range w.hosts {
		hosts = append(hosts, placeable(h.name, h.cached))
	}
	d := placement.Choose(request, hosts)
	if d.Host == "" {
		return Placement{Reason: d.Reason, Message: d.Message}
	}
	return Placement{Host: types.NamespacedName{Namespace: "metal", Name: d.Host}}
}

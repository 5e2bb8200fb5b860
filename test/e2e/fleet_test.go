package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/invariants"
)

// pollInterval is the time between two listings.
const pollInterval = 150 * time.Millisecond

// observation is what the API says of one server, of the Machine that is asked about and of its Node; nil where there is none.
type observation struct {
	machine *v1alpha1.Machine
	host    *metal3.BareMetalHost
	record  *v1alpha1.HostRecord
	node    *corev1.Node
}

// installation is one attempt of a Machine.
type installation struct {
	machine types.UID
	attempt int64
}

// fleet lists the objects again and again for all tests that wait, and records what must not happen twice.
type fleet struct {
	management, tenant client.Client
	watch              *invariants.Watcher

	mu       sync.Mutex
	updated  chan struct{}
	machines map[string]*v1alpha1.Machine
	hosts    map[string]*metal3.BareMetalHost
	records  map[string]*v1alpha1.HostRecord
	nodes    map[string]*corev1.Node
	fault    error
	// began and succeeded are the host attempts of each installation.
	began, succeeded map[installation]map[int64]bool
	// gated are the Nodes that were seen behind their gate, since the last forgetGates.
	gated map[types.UID]bool
}

func newFleet(management, tenant client.Client, watch *invariants.Watcher) *fleet {
	return &fleet{
		management: management, tenant: tenant, watch: watch, updated: make(chan struct{}),
		began: map[installation]map[int64]bool{}, succeeded: map[installation]map[int64]bool{}, gated: map[types.UID]bool{},
	}
}

// follow lists the objects until the context ends.
func (f *fleet) follow(ctx context.Context) {
	for ctx.Err() == nil {
		f.list(ctx)
		invariants.WaitForEvents(ctx, pollInterval)
	}
}

func (f *fleet) list(ctx context.Context) {
	var machines v1alpha1.MachineList
	var hosts metal3.BareMetalHostList
	var records v1alpha1.HostRecordList
	for _, l := range []client.ObjectList{&machines, &hosts, &records} {
		if err := f.management.List(ctx, l); err != nil {
			f.tell(func() { f.fault = err })
			return
		}
	}
	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var nodes corev1.NodeList
	_ = f.tenant.List(soon, &nodes) // a tenant that is away has no Nodes to see
	broken := f.watch.Check(ctx)
	f.tell(func() {
		f.fault = broken
		f.machines, f.hosts, f.records, f.nodes = byName(machines.Items), byName(hosts.Items), byName(records.Items), byName(nodes.Items)
		f.remember()
	})
}

func (f *fleet) tell(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.updated)
	f.updated = make(chan struct{})
}

func byName[T any, P interface {
	*T
	client.Object
}](items []T) map[string]P {
	out := map[string]P{}
	for i := range items {
		out[P(&items[i]).GetName()] = &items[i]
	}
	return out
}

func (f *fleet) remember() {
	for _, r := range f.records {
		if w := r.Status.Wanted; w != nil && w.Operation == "Install" {
			key := installation{w.MachineUID, w.MachineAttempt}
			add(f.began, key, w.Number)
			if w.Outcome == v1alpha1.AttemptSucceeded {
				add(f.succeeded, key, w.Number)
			}
		}
	}
	for _, n := range f.nodes {
		if isGated(n) {
			f.gated[n.UID] = true
		}
	}
}

func add(to map[installation]map[int64]bool, key installation, number int64) {
	if to[key] == nil {
		to[key] = map[int64]bool{}
	}
	to[key][number] = true
}

func (f *fleet) forgetGates() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gated = map[types.UID]bool{}
}

// attempts is how many host attempts the installation began and how many succeeded.
func (f *fleet) attempts(m *v1alpha1.Machine) (began, succeeded int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := installation{m.ClaimUID(), m.Status.Attempt}
	return len(f.began[key]), len(f.succeeded[key])
}

func (f *fleet) observe(name, server string) (observation, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return observation{f.machines[name], f.hosts[server], f.records[server], f.nodes[name]}, f.updated, f.fault
}

// await waits until the API says so. The error tells what it said last.
func (f *fleet) await(ctx context.Context, limit time.Duration, name, server, what string, ok func(observation) bool) (observation, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		v, next, err := f.observe(name, server)
		if err == nil && ok(v) {
			return v, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return v, errors.Join(fmt.Errorf("%s: not within %s: %s", what, limit, v), err)
		}
	}
}

// String is for failures.
func (v observation) String() string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m := v.machine; m == nil {
		say("no Machine")
	} else {
		say("Machine is %s (attempt %d, waits for %q)", m.Status.Phase, m.Status.Attempt, m.Status.WaitingFor)
		for _, c := range m.Status.Conditions {
			say("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		if m.Status.Verdict != nil {
			for _, c := range m.Status.Verdict.Checks {
				if c.Result != v1alpha1.CheckPass {
					say("check %s %s: expected %s, observed %s", c.Name, c.Result, c.Expected, c.Observed)
				}
			}
		}
	}
	if h := v.host; h != nil {
		say("host is %s, powered on %v, error %q", h.Status.Provisioning.State, h.Status.PoweredOn, h.Status.ErrorMessage)
	}
	if v.record != nil && v.record.Status.Wanted != nil {
		w := v.record.Status.Wanted
		say("attempt %d %s %q, %s %s; kept of it: %+v; %d failures", w.Number, w.Operation, w.Outcome, w.Reason, w.Message, v.record.Status.Progress(), v.record.Status.Failures)
	}
	if v.node != nil {
		say("Node %s gated %v", v.node.UID, isGated(v.node))
	}
	return "\n    " + strings.Join(out, "\n    ")
}

func isGated(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == gateKey })
}

func (v observation) phase() v1alpha1.MachinePhase {
	if v.machine == nil {
		return ""
	}
	return v.machine.Status.Phase
}

func (v observation) condition(name string) metav1.Condition {
	if v.machine != nil {
		if c := meta.FindStatusCondition(v.machine.Status.Conditions, name); c != nil {
			return *c
		}
	}
	return metav1.Condition{}
}

// isReady: the Machine is, and its Node has no gate.
func (v observation) isReady() bool {
	return v.phase() == v1alpha1.MachineReady && v.condition(v1alpha1.ConditionReady).Status == metav1.ConditionTrue && v.node != nil && !isGated(v.node)
}

// is says whether a condition is False with the reason.
func (v observation) is(condition, reason string) bool {
	c := v.condition(condition)
	return c.Status == metav1.ConditionFalse && c.Reason == reason
}

// step is where the host's attempt is.
func (v observation) step() string {
	if v.record == nil || !v.record.Status.Wanted.IsOpen() || v.record.Status.Progress() == nil {
		return ""
	}
	return v.record.Status.Progress().Step
}

// isBack: the host is in the pool again: off, erased, nobody's.
func (v observation) isBack() bool {
	h, r := v.host, v.record
	return v.machine == nil && h != nil && h.Status.Provisioning.State == metal3.StateAvailable && h.Spec.ConsumerRef == nil && !h.Status.PoweredOn &&
		r != nil && r.Status.Erased != nil && r.Status.Installed == nil && r.Spec.Machine == nil
}

// wasGated says whether the Node was seen behind its gate since the last forgetGates.
func (f *fleet) wasGated(n *corev1.Node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gated[n.UID]
}

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

const (
	// maxInUse is the largest number of entries in status.inUse.
	maxInUse = 1000
	// maxInUseChosen is the largest number with which a further Machine is chosen. The rest is for classes of which claims take devices after that.
	maxInUseChosen = 900
	// claimsInterval is how long to wait until the claims are looked at again: a Rollout is not told of their changes.
	claimsInterval = 15 * time.Second
)

// Tenants are the tenants that share the clusters of the Machines. The zero value: no cluster is shared.
type Tenants struct {
	// Held are the devices that claims hold on the nodes of Machines. Where it lacks a Machine, none are held or the claims of its cluster could not be read.
	Held map[types.NamespacedName][]Held
	// Budgets are the classes that have a maxUnavailable.
	Budgets map[Class]DeviceBudget
	// Elsewhere are the devices on the nodes that Rollouts of other NodeTypes take away.
	Elsewhere map[Class]Taken
	// Unreadable says why the claims of a cluster that has Budgets cannot be read; empty: they can. The Machines of that cluster are blocked.
	Unreadable string
}

// Class is a DeviceClass of a shared cluster.
type Class struct{ Cluster, Name string }

// Held are the devices of a class that claims hold on one node, and the claims.
type Held struct {
	DeviceClass     string
	Devices, Claims int
}

// DeviceBudget is how many devices of a class may be unavailable at once, and the Entitlement that says so, namespace/name.
type DeviceBudget struct {
	Limit       int
	Entitlement string
}

// Taken are devices of a class on the nodes that Rollouts take away. Yielding are those of them on nodes that are not started, of a Rollout that lets this one
// go first where both have chosen a Machine at the same time.
type Taken struct{ Devices, Yielding int }

// NewElsewhere returns what Rollouts of other NodeTypes take away, for the Rollout of that name and NodeType. A Machine that is missing or being deleted does
// not count. clusterOf returns what Machine.Cluster is.
//
// A Rollout that is superseded counts until the one after it has begun, which takes over its counts.
func NewElsewhere(name, nodeType string, rollouts []v1alpha1.Rollout, machines map[types.NamespacedName]*v1alpha1.Machine, clusterOf func(*v1alpha1.Machine) string) map[Class]Taken {
	found := map[useKey]v1alpha1.DevicesInUse{}
	yields := map[types.NamespacedName]bool{}
	for i := range rollouts {
		r := &rollouts[i]
		if r.Spec.NodeTypeRef.Name == nodeType || !isCounted(r, rollouts) {
			continue
		}
		for _, use := range r.Status.InUse {
			key := useKey{parseName(use.Machine), use.DeviceClass}
			m := machines[key.machine]
			if m == nil || m.DeletionTimestamp != nil {
				continue
			}
			observed := NewMachine(r.Name, r.Spec.Target(), m, watched.Clock{})
			before, isKnown := yields[key.machine]
			yields[key.machine] = r.Name > name && !isUnavailable(&observed) && (before || !isKnown)
			use.Devices = max(use.Devices, found[key].Devices)
			found[key] = use
		}
	}
	out := map[Class]Taken{}
	for key, use := range found {
		class := Class{clusterOf(machines[key.machine]), key.class}
		taken := out[class]
		taken.Devices += int(use.Devices)
		if yields[key.machine] {
			taken.Yielding += int(use.Devices)
		}
		out[class] = taken
	}
	return out
}

// isCounted reports whether what a Rollout has in use counts.
func isCounted(r *v1alpha1.Rollout, all []v1alpha1.Rollout) bool {
	if r.Status.Phase != v1alpha1.RolloutSuperseded {
		return !r.Status.Phase.IsFinal()
	}
	return !slices.ContainsFunc(all, func(o v1alpha1.Rollout) bool {
		hasBegun := o.Status.Phase != "" && o.Status.Phase != v1alpha1.RolloutPending
		return o.Spec.NodeTypeRef.Name == r.Spec.NodeTypeRef.Name && hasBegun && revisionrollout.IsNewer(o.Name, r.Name)
	})
}

// useKey identifies an entry of status.inUse.
type useKey struct {
	machine types.NamespacedName
	class   string
}

// heldBack is a class of which too many devices would be unavailable if a Machine were moved.
type heldBack struct {
	machine             *Machine
	class               string
	held, taken         int
	budget              DeviceBudget
	isExceededByOneNode bool
}

// inheritInUse adds what the previous Rollout has in use to status.inUse until this Rollout has begun.
//
// Without it: v2-1 drains a, on which a tenant held 4 devices of at most 4. The NodeType is set back, and v1-2 knows nothing of them: the claims are gone. It
// starts b too, and 8 devices are unavailable.
func (p *planner) inheritInUse() {
	if p.isBeginning() && p.facts.Previous != nil {
		p.status.InUse = slices.Concat(p.status.InUse, p.facts.Previous.InUse)
	}
}

// updateInUse removes what the Machines that are done had in use, and adds what claims have taken since on those on their way.
func (p *planner) updateInUse() {
	p.recordedUse, p.inUse, p.taken = map[useKey]int{}, map[useKey]v1alpha1.DevicesInUse{}, map[Class]int{}
	for _, use := range p.facts.Rollout.Status.InUse {
		p.recordedUse[useKey{parseName(use.Machine), use.DeviceClass}] = int(use.Devices)
	}
	for _, use := range p.status.InUse {
		if m := p.named[parseName(use.Machine)]; m != nil && p.isOut(m) && p.guards.mustKeepUse(p, m) {
			p.addUse(m, use)
		}
	}
	for _, name := range p.status.InProgress {
		if m := p.named[parseName(name)]; m != nil && m.Installed != p.facts.Rollout.To {
			p.recordUse(m)
		}
	}
}

// isOut reports whether the Machine is on its way, or not back yet: an undo has ended its drain, or it has to be taken over from the previous Rollout.
func (p *planner) isOut(m *Machine) bool {
	return p.inProgress[m.key()] || p.guards.isUnavailable(m) || p.inherited[m.key()] && !m.Labeled
}

// recordUse adds to status.inUse what claims hold on the Machine's node now.
func (p *planner) recordUse(m *Machine) {
	for _, h := range p.facts.Tenants.Held[m.key()] {
		p.addUse(m, v1alpha1.DevicesInUse{Machine: m.key().String(), DeviceClass: h.DeviceClass, Devices: int32(h.Devices), Claims: int32(h.Claims)})
	}
}

// addUse adds an entry, or raises the counts of the one that is there. They are never lowered: claims leave because their node is drained.
func (p *planner) addUse(m *Machine, use v1alpha1.DevicesInUse) {
	key := useKey{m.key(), use.DeviceClass}
	known, found := p.inUse[key]
	if !found && len(p.inUse) >= maxInUse {
		return
	}
	use.Devices, use.Claims = max(use.Devices, known.Devices), max(use.Claims, known.Claims)
	p.inUse[key] = use
	p.taken[Class{m.Cluster, use.DeviceClass}] += int(use.Devices - known.Devices)
}

// writeInUse sets status.inUse. A Rollout that is Done has taken nothing away that is not back, except where a person gave it up.
func (p *planner) writeInUse() {
	p.status.InUse = slices.SortedFunc(maps.Values(p.inUse), func(a, b v1alpha1.DevicesInUse) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.DeviceClass, b.DeviceClass))
	})
	if p.status.Phase == v1alpha1.RolloutDone {
		p.status.InUse = nil
	}
}

// hasHeldDevices reports whether claims hold devices on the Machine's node.
func (p *planner) hasHeldDevices(m *Machine) bool { return len(p.facts.Tenants.Held[m.key()]) > 0 }

// canRecordUse reports whether status.inUse has room for what claims hold on the Machine's node.
func (p *planner) canRecordUse(m *Machine) bool {
	held := len(p.facts.Tenants.Held[m.key()])
	return held == 0 || len(p.inUse) == 0 || len(p.inUse)+held <= maxInUseChosen
}

// isUseRecorded implements the guard of that name.
func (p *planner) isUseRecorded(m *Machine) bool {
	return !slices.ContainsFunc(p.facts.Tenants.Held[m.key()], func(h Held) bool {
		return p.recordedUse[useKey{m.key(), h.DeviceClass}] < h.Devices
	})
}

// hasTenantRoom implements the guard of that name.
func (p *planner) hasTenantRoom(m *Machine) bool { return p.heldBackBy(m) == nil }

// heldBackBy returns a class of which too many devices would be unavailable if the Machine were moved; nil: there is none. A Machine that is being drained
// already, whoever asked for that, costs nothing.
func (p *planner) heldBackBy(m *Machine) *heldBack {
	if isRequested(m) {
		return nil
	}
	for _, h := range p.facts.Tenants.Held[m.key()] {
		class := Class{m.Cluster, h.DeviceClass}
		budget, found := p.facts.Tenants.Budgets[class]
		if !found {
			continue
		}
		elsewhere := p.facts.Tenants.Elsewhere[class]
		taken := p.taken[class] - int(p.inUse[useKey{m.key(), h.DeviceClass}].Devices) + elsewhere.Devices
		// Two Rollouts that have each chosen a Machine at the same time would wait for each other.
		if p.inProgress[m.key()] {
			taken -= elsewhere.Yielding
		}
		if h.Devices > 0 && taken+h.Devices > budget.Limit {
			return &heldBack{machine: m, class: h.DeviceClass, held: h.Devices, taken: taken, budget: budget, isExceededByOneNode: h.Devices > budget.Limit}
		}
	}
	return nil
}

// recordHeldBack records that the Machine waits because of devices that are in use, if it does.
func (p *planner) recordHeldBack(m *Machine) {
	if by := p.heldBackBy(m); by != nil {
		p.heldBack = append(p.heldBack, by)
		p.requeueAfter(claimsInterval)
	}
}

// heldBackText says which classes keep how many Machines from being moved, and who must do what; empty: none do. For each class it names one Machine: first
// one on which more devices are held than may be unavailable, because that one does not come by itself.
func (p *planner) heldBackText() string {
	if len(p.heldBack) == 0 {
		return ""
	}
	slices.SortFunc(p.heldBack, func(a, b *heldBack) int {
		return cmp.Or(
			cmp.Compare(a.machine.Cluster, b.machine.Cluster), cmp.Compare(a.class, b.class), compareTrueFirst(a.isExceededByOneNode, b.isExceededByOneNode),
			compareByName(a.machine, b.machine),
		)
	})
	waiting := len(p.heldBack)
	first := slices.CompactFunc(slices.Clone(p.heldBack), func(a, b *heldBack) bool { return a.machine.Cluster == b.machine.Cluster && a.class == b.class })
	var texts []string
	for _, by := range first[:min(len(first), maxNames)] {
		texts = append(texts, by.text())
	}
	return fmt.Sprintf("%d wait for devices that are in use: %s", waiting, strings.Join(texts, "; ")) + omittedText(len(first))
}

func (by *heldBack) text() string {
	if by.isExceededByOneNode {
		return fmt.Sprintf("class %s: %s held on %s and at most %d may be unavailable: the tenant frees claims there, or raise maxUnavailable of the class in Entitlement %s",
			by.class, devicesText(by.held), by.machine.Node, by.budget.Limit, by.budget.Entitlement)
	}
	return fmt.Sprintf("class %s: %s held on %s, %d are unavailable until other Machines are Ready, and at most %d may be: wait for those or mend them, or raise maxUnavailable of the class in Entitlement %s",
		by.class, devicesText(by.held), by.machine.Node, by.taken, by.budget.Limit, by.budget.Entitlement)
}

func devicesText(n int) string {
	if n == 1 {
		return "1 device is"
	}
	return fmt.Sprintf("%d devices are", n)
}

// inUseText says which devices are in use on the Machine's node, for the history; empty: none are.
func (p *planner) inUseText(m *Machine) string {
	var texts []string
	for _, h := range p.facts.Tenants.Held[m.key()] {
		texts = append(texts, fmt.Sprintf("%s: %d", h.DeviceClass, h.Devices))
	}
	if len(texts) == 0 {
		return ""
	}
	return ", devices in use there: " + joinNames(texts)
}

// maxConditionMessage is how long the message of a condition may be that names claims of tenants, in bytes.
const maxConditionMessage = 4096

// setTenantsCondition sets the condition TenantsHaveRoom, or removes it where there is nothing to say.
func (p *planner) setTenantsCondition() {
	tenants := &p.facts.Tenants
	if p.decision.Done || len(tenants.Budgets) == 0 {
		meta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.ConditionTenantsHaveRoom)
		return
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionTenantsHaveRoom, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTenantsHaveRoom,
		Message: "no Machine waits for devices that are in use", LastTransitionTime: metav1.NewTime(p.facts.Now),
	}
	switch {
	case tenants.Unreadable != "":
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonClaimsUnreadable, tenants.Unreadable
		p.requeueAfter(claimsInterval)
	case len(p.heldBack) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonDevicesHeld, p.heldBackText()
	}
	c.Message = input.Line(c.Message, maxConditionMessage)
	meta.SetStatusCondition(&p.status.Conditions, c)
}

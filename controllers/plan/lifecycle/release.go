package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle/facts"
)

// evictionRound is how often pods that remain are asked to leave, hostRound how often a power-off or an erase is looked at.
const (
	evictionRound = 5 * time.Second
	hostRound     = 30 * time.Second
)

// releasing gives the host back, step by step.
func (p *planner) releasing() {
	f := p.f
	switch {
	case f.Token != nil && f.Tenant.Reachable:
		// First of all: from now on nothing of this Machine joins.
		p.do(DeleteToken).TokenID = f.Token.ID
		p.d.Again = true
		p.hold("", v1alpha1.ReasonEvicting, "", "the bootstrap token is being deleted")
	case p.g.hostIsMine(f):
		p.returnHost()
	case f.Tenant.Reachable || f.Machine.Status.Attempt == 0:
		p.hold("", v1alpha1.ReasonDeletingNode, "", "no host is left to be returned")
	default:
		p.waitForTenant()
	}
}

func (p *planner) returnHost() {
	f := p.f
	switch {
	case f.Host.ImageURL != "" && f.MayHaveBooted() && !p.fence():
	case f.Host.ImageURL != "":
		p.do(Deprovision)
		p.hold("", v1alpha1.ReasonErasing, "the host to be erased", "host "+p.hostName()+" is being deprovisioned")
	case !p.g.hostIsBack(f):
		p.reportErase()
	case f.NodeOfMine() && f.Tenant.Reachable && p.g.powerIsOff(f):
		// It registered between the request to erase and the power-off.
		p.do(DeleteNode).NodeUID = f.Node.UID
		p.hold("", v1alpha1.ReasonDeletingNode, "", "Node "+f.Machine.Name+" is being deleted")
	default:
		p.giveBack()
	}
}

// fence stops the machine and takes its Node out of the cluster, and tells when both are done: cordon, evict, power
// off, have that confirmed, delete the Node. Only behind it may a disk be touched. That the power-off is begun is written
// before it is asked for: a roll that is called off meanwhile must see it. It does not begin with the step into the phase,
// since nobody looked for the Node's pods before.
func (p *planner) fence() bool {
	switch {
	case !p.f.PowerOffBegun() && (!p.evicted() || p.entering):
		if p.reason == "" {
			p.hold("", v1alpha1.ReasonEvicting, "", "the node is being emptied")
		}
	case p.f.Host.Online:
		p.hold("", v1alpha1.ReasonPoweringOff, "", "host "+p.hostName()+" is being powered off")
		if p.d.Again = !p.f.PowerOffBegun(); !p.d.Again {
			p.do(PowerOff)
		}
	case !p.g.powerIsOff(p.f):
		p.reportPowerOff()
	case p.g.nodeIsGone(p.f):
		return true
	case p.f.Tenant.Reachable:
		p.do(DeleteNode).NodeUID = p.f.Node.UID
		p.d.Again = true
		p.hold("", v1alpha1.ReasonDeletingNode, "", "Node "+p.f.Machine.Name+" is being deleted")
	case p.f.Machine.Status.Phase == v1alpha1.MachineReleasing && p.f.DrainOver():
		return true // the Node object remains; leave says so
	default:
		p.waitForTenant()
	}
	return false
}

// evicted tells whether the pods left, or had their time to.
func (p *planner) evicted() bool {
	f := p.f
	switch {
	case f.Machine.Status.Phase == v1alpha1.MachineReleasing && f.DrainOver():
		return true
	case !f.Tenant.Reachable:
		p.waitForTenant()
		return false
	case !f.NodeOfMine():
		return true
	case !f.Node.Unschedulable:
		p.do(Cordon).NodeUID = f.Node.UID
		p.d.Again = true
		p.hold("", v1alpha1.ReasonEvicting, "", "Node "+f.Machine.Name+" is being cordoned")
		return false
	case len(f.Node.Pods) > 0:
		p.do(Evict).NodeUID = f.Node.UID
		p.eviction()
		return false
	default:
		return true
	}
}

func (p *planner) waitForTenant() {
	if p.f.Machine.Status.Phase == v1alpha1.MachineDraining {
		p.after(time.Minute)
		p.hold("", v1alpha1.ReasonWaitingForTenant, "the tenant's API server", tenantTrouble(p.f)+"; the roll waits for it")
		return
	}
	until := p.f.Entered().Add(p.f.Timeouts.Draining)
	p.after(min(time.Minute, max(until.Sub(p.f.Now), time.Second)))
	p.hold("", v1alpha1.ReasonEvicting, "the tenant's API server",
		fmt.Sprintf("%s; the release goes on without it at %s", tenantTrouble(p.f), until.UTC().Format(time.RFC3339)))
}

func (p *planner) reportPowerOff() {
	p.after(hostRound)
	reason, message := p.hostTrouble()
	if reason == "" {
		reason, message = v1alpha1.ReasonPoweringOff, "the BMC has not confirmed the power-off of "+p.hostName()
	}
	p.hold("", reason, "the confirmed power-off", message+"; nothing touches its disk before"+p.wayOut())
}

// wayOut tells of a release that is late how a server is given up that cannot be mended.
func (p *planner) wayOut() string {
	if !p.f.Overdue() {
		return ""
	}
	return "; mend that, or give the server up as it is: annotate its BareMetalHost with baremetalhost.metal3.io/detached and delete it"
}

func (p *planner) reportErase() {
	p.after(hostRound)
	reason, message := p.hostTrouble()
	switch {
	case reason == "":
		p.hold("", v1alpha1.ReasonErasing, "the host to be erased", "host "+p.hostName()+" is "+p.f.Host.State+p.step())
	case p.f.Host.Error != "":
		p.hold("", v1alpha1.ReasonEraseFailed, "the host to be erased", message+"; the host stays out of the pool"+p.wayOut())
	default:
		p.hold("", reason, "the host to be erased", message)
	}
}

// giveBack empties what was written for the claim, and last of all the claim: whoever claims next finds nothing of it.
func (p *planner) giveBack() {
	p.hold("", v1alpha1.ReasonErasing, "", "host "+p.hostName()+" is clean and goes back to the pool")
	p.d.Again = true
	switch {
	case p.f.Host.Record != nil && p.f.Host.Record.Spec.Machine != nil:
		p.do(ClearHostRecord)
	case p.f.Secret.Found:
		p.do(DeleteClaimSecret)
	default:
		p.do(ReturnHost)
	}
}

// leave ends the Machine's life. When its Node may remain, that is told before the Machine can be gone.
func (p *planner) leave() {
	m := p.f.Machine
	if !p.f.NodeOfMine() && (p.f.Tenant.Reachable || m.Status.NodeRef == nil) {
		p.do(RemoveFinalizer)
		p.hold("", v1alpha1.ReasonDeletingNode, "", "released")
		return
	}
	message := fmt.Sprintf("Node %s may remain in the tenant's cluster: delete it there with kubectl delete node %s", m.Name, m.Name)
	p.hold("", v1alpha1.ReasonNodeRemains, "", message)
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonNodeRemains {
		p.do(RemoveFinalizer)
		return
	}
	p.event(true, v1alpha1.ReasonNodeRemains, message)
	p.d.Again = true
}

// Orphaned tells whether a host that a Machine claimed may be freed although no Machine is there to return it: a claim
// that arrived after its Machine was gone. A host that was asked for an image is left to people.
func Orphaned(machineExists bool, h Host) bool {
	recorded := h.Record != nil && h.Record.Spec.Machine != nil
	return !machineExists && h.Consumer == facts.ConsumerOther && h.ImageURL == "" && !recorded &&
		(h.State == facts.StateAvailable || h.State == facts.StateReady)
}

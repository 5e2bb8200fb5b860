package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// look is how often a Machine that waits for something unseen is looked at again.
const look = 5 * time.Minute

// work is what a phase does while none of its edges holds; last is the edge to the end of life, when that one holds.
func (p *planner) work(last *edge) {
	switch p.f.Machine.Status.Phase {
	case v1alpha1.MachinePending:
		p.pending()
	case v1alpha1.MachineClaiming:
		p.claiming()
	case v1alpha1.MachineProvisioning:
		p.provisioning()
	case v1alpha1.MachineJoining:
		p.joining()
	case v1alpha1.MachineValidating, v1alpha1.MachineReady:
		p.living()
	case v1alpha1.MachineDraining:
		p.draining()
	case v1alpha1.MachineReleasing:
		if last != nil {
			p.leave()
			return
		}
		p.releasing()
	}
}

func (p *planner) pending() {
	if !p.f.Machine.Finalizer {
		p.do(AddFinalizer)
		p.d.Again = true
	}
	if reason, message := p.obstacle(); reason != "" {
		p.hold(v1alpha1.ConditionClaimed, reason, "", message)
	} else if p.f.Choice.Host.Name == "" && p.f.Choice.Reason != "" {
		p.hold(v1alpha1.ConditionClaimed, p.f.Choice.Reason, "a host that can be claimed", p.f.Choice.Message)
	} else {
		p.hold(v1alpha1.ConditionClaimed, v1alpha1.ReasonClaiming, "", "a host is being chosen")
	}
	p.after(look)
}

func (p *planner) claiming() {
	if reason, message := p.obstacle(); reason != "" {
		p.hold(v1alpha1.ConditionClaimed, reason, "", message)
		p.after(look)
		return
	}
	p.do(ClaimHost)
	p.d.Again = true
	p.hold(v1alpha1.ConditionClaimed, v1alpha1.ReasonClaiming, "", "host "+p.hostName()+" is being claimed")
}

// keepsHost tells whether the host is still this Machine's, and says so when it is not.
func (p *planner) keepsHost() bool {
	if p.g.hostIsMine(p.f) {
		return true
	}
	whose := "was deleted"
	if p.f.Host != nil {
		whose = "is no longer this Machine's"
		if p.f.Host.ConsumerName != "" {
			whose = "is " + p.f.Host.ConsumerName + "'s now"
		}
	}
	p.hold(v1alpha1.ConditionClaimed, v1alpha1.ReasonHostLost, "",
		fmt.Sprintf("host %s %s; nothing more is done to it: delete this Machine", p.hostName(), whose))
	if p.f.Tenant.Reachable {
		p.tokenRight()
	}
	return false
}

func (p *planner) provisioning() {
	if !p.keepsHost() || !p.hostAnswers() {
		return
	}
	if p.g.imageIsOnDisk(p.f) {
		// Only what the revision refers to is missing; the disk is written.
		p.hold(v1alpha1.ConditionProvisioned, v1alpha1.ReasonWaitingForNodeType, "", p.f.Revision.Problem)
		p.after(look)
		return
	}
	if p.prepared() {
		p.reportInstallation()
	}
}

// prepared makes everything that the installation needs, in the order in which one needs the other, and asks for it.
func (p *planner) prepared() bool {
	requested := p.f.ImageRequested()
	if !requested && p.lacksSomething() {
		return false
	}
	p.beforeWriting(nil)
	switch {
	case p.f.Revision.Problem == "" && !p.recordWritten(), p.f.Tenant.Reachable && !p.tokenRight():
		return false
	case p.secretWritten():
	case !p.f.Tenant.Reachable || p.f.Revision.Problem != "" || p.f.Token == nil:
		return true
	default:
		p.do(WriteClaimSecret).TokenID = p.f.Token.ID
		p.d.Again = true
		return false
	}
	if !requested {
		p.do(RequestInstall)
		return false
	}
	return true
}

// lacksSomething: what an installation stands on cannot be used now.
func (p *planner) lacksSomething() bool {
	reason, message := p.g.unsuited(p.f, p.f.Revision)
	if reason == "" {
		return false
	}
	p.hold(v1alpha1.ConditionProvisioned, reason, "", message)
	p.after(time.Minute)
	return true
}

func (p *planner) recordWritten() bool {
	if !p.f.Provider.Records {
		return true
	}
	if p.f.Host.Record == nil {
		p.hold(v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "", "host "+p.hostName()+" has no HostRecord yet: its controller makes it")
		p.after(look)
		return false
	}
	want := p.wantedRecord()
	if sameRecordSpec(p.f.Host.Record.Spec, want) {
		return true
	}
	p.do(WriteHostRecord).Record = want
	p.d.Again = true
	return false
}

func (p *planner) wantedRecord() v1alpha1.HostRecordSpec {
	m, image := p.f.Machine, p.f.Revision.Image
	return v1alpha1.HostRecordSpec{
		Machine:  &v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID},
		Tenant:   m.Namespace + "/" + m.Spec.TenantClusterRef.Name,
		Revision: m.Status.Revision, Attempt: m.Status.Attempt, Image: &image, Erase: p.f.Provider.Erase,
	}
}

func sameRecordSpec(a, b v1alpha1.HostRecordSpec) bool {
	return a.Machine != nil && *a.Machine == *b.Machine && a.Tenant == b.Tenant && a.Revision == b.Revision &&
		a.Attempt == b.Attempt && a.Image != nil && *a.Image == *b.Image && a.Erase == b.Erase
}

// tokenRight keeps the bootstrap token as it must be now, and tells whether it is.
func (p *planner) tokenRight() bool {
	token, limits := p.f.Token, p.f.Timeouts
	if !p.g.tokenMayLive(p.f) {
		if token == nil {
			return true
		}
		p.do(DeleteToken).TokenID = token.ID
		return false
	}
	var action *Action
	switch {
	case token == nil && p.secretWritten() && p.f.Secret.TokenID == "":
		return true // scrubbed: the node has joined, and the Machine was read from an older state
	case token == nil && p.secretWritten():
		// What the disk holds must work again: another token would not help.
		action = p.do(CreateToken)
		action.TokenID = p.f.Secret.TokenID
	case token == nil && p.f.Machine.Status.Phase == v1alpha1.MachineJoining:
		return true
	case token == nil:
		action = p.do(CreateToken)
	case token.Expires.Sub(p.f.Now) <= limits.TokenRenew:
		action = p.do(RenewToken)
		action.TokenID = token.ID
	default:
		p.after(token.Expires.Sub(p.f.Now) - limits.TokenRenew)
		return true
	}
	action.Expires = p.f.Now.Add(limits.Token)
	p.d.Again = true
	return false
}

// secretWritten: the claim Secret is of this attempt.
func (p *planner) secretWritten() bool {
	return p.f.Secret.Found && p.f.Secret.Attempt == p.f.Machine.Status.Attempt
}

func (p *planner) joining() {
	if !p.keepsHost() {
		return
	}
	if !p.f.Tenant.Reachable {
		p.hold(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForTenant, "", tenantTrouble(p.f))
		p.after(time.Minute)
		return
	}
	p.tokenRight()
	if p.f.NodeOfMine() {
		// An earlier attempt's, that came back when this one failed at first. Its disk is overwritten: nothing runs as it.
		p.do(DeleteNode).NodeUID = p.f.Node.UID
		p.d.Again = true
		p.hold(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForNode, "", "Node "+p.f.Machine.Name+" of an earlier attempt is being deleted")
		return
	}
	if p.f.Node.Found {
		p.hold(v1alpha1.ConditionJoined, v1alpha1.ReasonNodeConflict, "", p.conflict())
		p.after(time.Minute)
		return
	}
	message := fmt.Sprintf("Node %s has not registered: look at the console of %s, and there at journalctl -u kubelet and -u cloud-final", p.f.Machine.Name, p.hostName())
	if p.f.Overdue() {
		message += "; its bootstrap token is deleted, so a kubelet without a certificate can join no more: delete this Machine for another try"
	}
	p.hold(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForNode, "Node "+p.f.Machine.Name, message)
}

func (p *planner) conflict() string {
	return fmt.Sprintf("Node %s exists in the tenant's cluster with providerID %q, this Machine's would be %q: delete that Node, or this Machine",
		p.f.Machine.Name, p.f.Node.ProviderID, p.f.Machine.ProviderID())
}

// living is the work on a Machine whose Node joined: what the join needed goes, what its NodeType gives the Node comes.
func (p *planner) living() {
	if !p.keepsHost() {
		return
	}
	if p.f.Machine.Status.Phase == v1alpha1.MachineValidating {
		p.reportVerdict()
	}
	p.tidy()
}

func (p *planner) reportVerdict() {
	reason, message := p.verdictProblem()
	switch left := p.untilChecksTell(); {
	case !p.f.NodeOfThisAttempt():
		p.hold(v1alpha1.ConditionJoined, reason, p.waitingCheck(), message)
	case left > 0 && p.g.hostIsMine(p.f):
		p.after(left)
		p.hold("", v1alpha1.ReasonChecksWaiting, "the first checks", "Node "+p.f.Machine.Name+" has joined and is being checked")
	default:
		p.hold("", reason, p.waitingCheck(), message)
	}
}

// firstChecks is how long what a new Node lacks is not worth telling: kubelet and device plugins come up one after the other.
const firstChecks = 5 * time.Second

// untilChecksTell is how long that still is; a check that has failed for good is told at once.
func (p *planner) untilChecksTell() time.Duration {
	m := p.f.Machine.Status
	at := len(m.Timeline) - 1
	if at < 1 || m.Timeline[at-1].Phase != v1alpha1.MachineJoining || m.Verdict != nil && m.Verdict.Result == v1alpha1.CheckFail {
		return 0
	}
	return m.Timeline[at].At.Add(firstChecks).Sub(p.f.Now)
}

func (p *planner) tidy() {
	switch {
	case !p.f.Tenant.Reachable:
		p.after(look)
	case p.f.Token != nil:
		p.do(DeleteToken).TokenID = p.f.Token.ID
		p.d.Again = true
	case p.f.Secret.Found && p.f.Secret.TokenID != "" && p.f.Revision.Problem == "":
		p.do(ScrubSecret)
		p.d.Again = true
	case p.f.NodeOfThisAttempt() && p.f.Node.Cordoned:
		// A request to cordon it arrived after its roll was called off.
		p.do(Uncordon).NodeUID = p.f.Node.UID
		p.d.Again = true
	case p.f.NodeOfThisAttempt() && !p.f.Node.Furnished:
		p.do(FurnishNode).NodeUID = p.f.Node.UID
	}
}

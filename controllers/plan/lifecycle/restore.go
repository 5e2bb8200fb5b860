package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// RestoredClaim is a host whose object was created again from a backup, and whose consumerRef names a Machine that exists.
type RestoredClaim struct {
	Now      time.Time
	Timeouts Timeouts
	// Machine is that Machine, with its own uid.
	Machine Machine
	// Host is the host; its Consumer is not read.
	Host Host
	// ClaimUID is the uid that the consumerRef names.
	ClaimUID types.UID
	// Installation is what the host's annotation says; nil: it has none. InstallationProblem says why it cannot be read.
	Installation        *v1alpha1.Installation
	InstallationProblem string
	// OwnsRecord is true when this host's HostRecord is there and is owned by
	// the object that exists now.
	OwnsRecord bool
	// OtherHosts are further hosts, as namespace/name, whose consumerRef names the Machine.
	OtherHosts []string
	// Provider is the NodeProvider of the host.
	Provider Provider
	// Revision is what the annotation says is installed. It is read where the HostRecord is empty.
	Revision Revision
	// Tenant is the Machine's TenantCluster. Node is the Node of the Machine's name, and NodeRevision is what its label ingot.dev/revision says.
	Tenant       Tenant
	Node         Node
	NodeRevision string
}

// RestoreActionKind names what is done about a restored host.
type RestoreActionKind string

// The actions on restored hosts.
const (
	// LeaveRestored leaves the host to the rules for the hosts of Machines that are gone: nothing was begun for the claim.
	LeaveRestored RestoreActionKind = "LeaveRestored"
	// AwaitRestored waits for what the message names.
	AwaitRestored RestoreActionKind = "AwaitRestored"
	// ReportUnmatched reports that host and Machine do not belong together.
	ReportUnmatched RestoreActionKind = "ReportUnmatched"
	// FinalizeRestored adds the finalizer, which backup tools drop.
	FinalizeRestored RestoreActionKind = "FinalizeRestored"
	// RecordRestored writes RestoreAction.Installation into the host's annotation: its Node proves that the installation is complete.
	RecordRestored RestoreActionKind = "RecordRestored"
	// RebuildRecord writes RestoreAction.Record into a HostRecord that is empty: the backup has none, or the garbage collector deleted it.
	RebuildRecord RestoreActionKind = "RebuildRecord"
	// TakeOver writes RestoreAction.Status, with which the Machine has the host.
	TakeOver RestoreActionKind = "TakeOver"
	// ConfirmHost writes into the host's annotation that the object is known. Its controller works on it from then on.
	ConfirmHost RestoreActionKind = "ConfirmHost"
)

// RestoreAction is at most one write.
type RestoreAction struct {
	Kind RestoreActionKind
	// Message is for AwaitRestored and ReportUnmatched.
	Message string
	// Installation is for RecordRestored.
	Installation *v1alpha1.Installation
	// Record is for RebuildRecord.
	Record v1alpha1.HostRecordSpec
	// Status is for TakeOver.
	Status v1alpha1.MachineStatus
}

// PlanRestore decides whether a Machine takes over the host that names it after a restore that gave every object a new uid. It does where the
// host's own annotation, its claim, its HostRecord, the Machine and the Node agree. Where they do not, host and Machine say so and stay as they are.
// Without it: every Machine has another uid than its host, all hosts belong to nobody, and the fleet is either lost to its Machines or
// installed again under its tenants.
func PlanRestore(c RestoredClaim) RestoreAction {
	if c.Installation == nil && c.InstallationProblem == "" && !c.isBegun() {
		return RestoreAction{Kind: LeaveRestored}
	}
	if !c.Machine.Finalizer && !c.Machine.Deleting {
		return RestoreAction{Kind: FinalizeRestored}
	}
	for _, problem := range []func(RestoredClaim) string{
		RestoredClaim.installationProblem, RestoredClaim.machineProblem, RestoredClaim.statusProblem, RestoredClaim.recordProblem, RestoredClaim.deletionProblem,
	} {
		if message := problem(c); message != "" {
			return RestoreAction{Kind: ReportUnmatched, Message: message}
		}
	}
	if blocked := c.waitOrRefuse(); blocked.Kind != "" {
		return blocked
	}
	switch {
	case c.isProvenByNode():
		proven := *c.Installation
		proven.State = v1alpha1.InstallationComplete
		return RestoreAction{Kind: RecordRestored, Installation: &proven}
	case c.hasLostRecord():
		return RestoreAction{Kind: RebuildRecord, Record: c.lostRecord()}
	case c.isTakenOver():
		return RestoreAction{Kind: ConfirmHost}
	}
	return RestoreAction{Kind: TakeOver, Status: c.status()}
}

// waitOrRefuse returns what the Machine waits for before it can be compared with its Node, or that it differs from it; the zero value: neither.
func (c RestoredClaim) waitOrRefuse() RestoreAction {
	switch {
	case !c.Provider.Found:
		return RestoreAction{Kind: AwaitRestored, Message: "no NodeProvider has the namespace of host " + c.hostName() + ": restore it"}
	case c.Provider.HasRecords && !c.OwnsRecord:
		// Without it: the host counts as known while its HostRecord still belongs to the earlier object, and nobody takes that over any more.
		return RestoreAction{Kind: AwaitRestored, Message: "the HostRecord of host " + c.hostName() + " is not taken over yet"}
	case c.hasLostRecord() && c.Revision.Problem != "":
		return RestoreAction{Kind: AwaitRestored, Message: "the HostRecord of host " + c.hostName() + " is lost, and is made again from revision " + c.Installation.Revision + ": " + c.Revision.Problem}
	case c.Machine.Deleting:
	case !c.Tenant.Reachable:
		// An older backup is told from its Node alone. Without it: the Machine takes over a host that was installed again since, and deletes
		// the Node that runs there as one of an earlier attempt.
		return RestoreAction{Kind: AwaitRestored, Message: "the tenant's API server must say which Node runs on host " + c.hostName() + ", and does not answer: " + c.Tenant.Message}
	default:
		if message := c.nodeProblem(); message != "" {
			return RestoreAction{Kind: ReportUnmatched, Message: message}
		}
	}
	return RestoreAction{}
}

// isTakenOver reports whether the status says already that the Machine has the host.
func (c RestoredClaim) isTakenOver() bool {
	identity := c.Machine.Status.InstallationUID
	if identity == "" {
		identity = c.Machine.UID
	}
	return identity == c.ClaimUID && c.hasStatus()
}

func (c RestoredClaim) hostName() string { return c.Host.Namespace + "/" + c.Host.Name }

// isBegun reports whether anything was requested of the host for its claim.
func (c RestoredClaim) isBegun() bool {
	return c.Host.ImageURL != "" || c.Host.Record != nil && c.Host.Record.Spec.Machine != nil
}

// whatToDo ends the message of a host and a Machine that do not belong together.
func (c RestoredClaim) whatToDo() string {
	return "; nothing is powered off, erased or installed. If the backup is wrong, restore host, HostRecord and Machine from the one that is right; " +
		"to give up what runs there, delete this Machine and release the host as kubectl ingot hosts says"
}

// installationProblem compares the annotation with the claim.
func (c RestoredClaim) installationProblem() string {
	i := c.Installation
	switch {
	case c.InstallationProblem != "":
		return "restored host " + c.hostName() + " names this Machine: " + c.InstallationProblem + c.whatToDo()
	case i == nil && c.Host.ImageURL == "":
		// Only a release of an earlier version leaves the HostRecord in the same way, and then the disks are not to be installed.
		return fmt.Sprintf("restored host %s names this Machine and has neither an image nor the annotation %s: the backup was made before the installation was requested of the host, "+
			"or it is of an earlier version of Ingot and a release%s", c.hostName(), v1alpha1.AnnotationInstallation, c.whatToDo())
	case i == nil:
		return fmt.Sprintf("restored host %s names this Machine and has no annotation %s, which says what is installed: the backup is of an earlier version of Ingot%s",
			c.hostName(), v1alpha1.AnnotationInstallation, c.whatToDo())
	case i.Machine.Namespace != c.Machine.Namespace || i.Machine.Name != c.Machine.Name || i.Machine.UID != c.ClaimUID:
		return fmt.Sprintf("restored host %s names this Machine with uid %s in its consumerRef and was installed for Machine %s/%s with uid %s%s",
			c.hostName(), c.ClaimUID, i.Machine.Namespace, i.Machine.Name, i.Machine.UID, c.whatToDo())
	case len(c.OtherHosts) > 0:
		return fmt.Sprintf("restored hosts %s and %s name this Machine, which can have one%s", c.hostName(), strings.Join(c.OtherHosts, ", "), c.whatToDo())
	}
	return ""
}

// machineProblem compares what never changes of a Machine. Without it: a tenant makes a Machine of the name of one that is in no backup any more,
// for another cluster, and gets the server with what the other cluster's pods left there.
func (c RestoredClaim) machineProblem() string {
	tenant := c.Machine.Namespace + "/" + c.Machine.Spec.TenantClusterRef.Name
	switch i := c.Installation; {
	case i.Tenant != tenant:
		return fmt.Sprintf("restored host %s was installed for TenantCluster %s, and this Machine is of %s%s", c.hostName(), i.Tenant, tenant, c.whatToDo())
	case i.NodeType != c.Machine.Spec.NodeTypeRef.Name:
		return fmt.Sprintf("restored host %s was installed as NodeType %s, and this Machine is of %s%s", c.hostName(), i.NodeType, c.Machine.Spec.NodeTypeRef.Name, c.whatToDo())
	}
	return ""
}

// statusProblem compares the Machine's status, where the backup has one, with the host's.
func (c RestoredClaim) statusProblem() string {
	s, i := c.Machine.Status, c.Installation
	if !c.hasStatus() {
		return ""
	}
	// The attempt is written into the status before anything is requested of the host.
	isNext := s.Phase == v1alpha1.MachineProvisioning && s.Attempt == i.Attempt+1
	switch ref := s.HostRef; {
	case ref == nil || ref.Namespace != c.Host.Namespace || ref.Name != c.Host.Name:
		return fmt.Sprintf("restored host %s names this Machine, whose own status names another host or none%s", c.hostName(), c.whatToDo())
	case s.Attempt != i.Attempt && !isNext:
		return fmt.Sprintf("restored host %s has attempt %d of this Machine, whose own status is of attempt %d%s", c.hostName(), i.Attempt, s.Attempt, c.whatToDo())
	case s.Attempt == i.Attempt && s.Installed() != i.Installed():
		return fmt.Sprintf("restored host %s has revision %s and rendering %s of this Machine, whose own status has %s and %s%s",
			c.hostName(), i.Revision, i.Rendering, s.Revision, s.Rendering, c.whatToDo())
	}
	return ""
}

func (c RestoredClaim) hasStatus() bool { return c.Machine.Status.Attempt > 0 }

// recordProblem compares the HostRecord with the annotation. Without it: the backup was made between the write of the HostRecord, which asks for
// attempt 2, and that of the host; the Machine comes back with attempt 1, and its running node is installed again.
func (c RestoredClaim) recordProblem() string {
	if !c.Provider.HasRecords {
		return ""
	}
	i := c.Installation
	if c.hasLostRecord() && c.canRebuildRecord() {
		return ""
	}
	if c.Host.Record == nil || c.Host.Record.Spec.Machine == nil {
		return fmt.Sprintf("restored host %s names this Machine, and its HostRecord is missing or empty: delete an empty one and restore that of the backup%s", c.hostName(), c.whatToDo())
	}
	spec, s := c.Host.Record.Spec, c.Machine.Status
	isExpected := spec.Attempt == i.Attempt || c.hasStatus() && s.Phase == v1alpha1.MachineProvisioning && spec.Attempt == s.Attempt
	if spec.Machine.UID != c.ClaimUID || !isExpected || spec.Tenant != i.Tenant {
		return fmt.Sprintf("the HostRecord of restored host %s asks for attempt %d of the Machine with uid %s, and the host has attempt %d of the one with uid %s%s",
			c.hostName(), spec.Attempt, spec.Machine.UID, i.Attempt, i.Machine.UID, c.whatToDo())
	}
	return ""
}

// hasLostRecord reports whether the host's controller has made the HostRecord anew or is about to.
func (c RestoredClaim) hasLostRecord() bool {
	return c.Provider.HasRecords && (c.Host.Record == nil || c.Host.Record.Spec.Machine == nil)
}

// canRebuildRecord reports whether the annotation is enough to make the HostRecord again: the image is on the disk, and the Machine keeps it.
// Without it: the backup is restored with the owner references of the earlier objects, the garbage collector deletes the HostRecords before anybody
// owns them, and no Machine of the fleet gets its host again. Of an installation that goes on and of a release nobody but the record knows enough.
func (c RestoredClaim) canRebuildRecord() bool {
	return c.Installation.State == v1alpha1.InstallationComplete && !c.Machine.Deleting && (!c.hasStatus() || c.Machine.Status.Attempt == c.Installation.Attempt)
}

// lostRecord returns the spec of the HostRecord that the installation had. Which cluster the Node joined is known only where it is there.
func (c RestoredClaim) lostRecord() v1alpha1.HostRecordSpec {
	m := c.Machine
	m.UID, m.Status.Revision, m.Status.Attempt = c.ClaimUID, c.Installation.Revision, c.Installation.Attempt
	spec := scope{Facts: Facts{Machine: m, Host: &c.Host, Provider: c.Provider, Revision: c.Revision, Tenant: Tenant{UID: c.Tenant.UID}}}.desiredRecord()
	if c.nodeAttempt() == c.Installation.Attempt {
		spec.TenantClusterUID = c.Tenant.ClusterUID
	}
	return spec
}

// deletionProblem finds a release that the backup has half of: a restored Machine is not being deleted, whatever it was. And it finds a deletion
// that the backup does not have. Without it: the objects are restored with the owner references of the backup, the garbage collector deletes every
// Machine whose owner has another uid, and the fleet is erased.
func (c RestoredClaim) deletionProblem() string {
	wasReleasing := c.Installation.State == v1alpha1.InstallationReleasing || c.Machine.Status.Phase == v1alpha1.MachineReleasing
	isOff := c.Installation.State == v1alpha1.InstallationComplete && (!c.Host.Online || c.Host.ImageURL == "")
	switch {
	case wasReleasing && !c.Machine.Deleting:
		return fmt.Sprintf("this Machine was being deleted when the backup was made, and host %s was being released: delete the Machine again, and the release goes on; until then nothing is powered off, erased or installed", c.hostName())
	case c.Machine.Deleting && !wasReleasing:
		return fmt.Sprintf("this Machine is being deleted and was not when the backup of host %s was made: the Machine goes, and the host runs on and reports %s", c.hostName(), v1alpha1.ReasonMachineGone)
	case isOff && !c.hasStatus() && !c.Machine.Spec.PowerOff && !c.isRolled():
		return fmt.Sprintf("the backup of host %s has it powered off by Ingot, and nothing says why: a release or a roll had begun. Delete this Machine to have the host released, or set spec.powerOff of the Machine and clear it again to have it powered on", c.hostName())
	}
	return ""
}

// isRolled reports whether spec names another revision or rendering than what was installed.
func (c RestoredClaim) isRolled() bool {
	asked := c.Machine.Spec.Asked()
	return asked.Revision != "" && asked != c.Installation.Installed() && (asked.Revision != c.Installation.Revision || asked.Rendering != "")
}

// nodeProblem finds a Node that is younger than the backup. Without it: the backup is of a Machine that was being installed; it has joined since,
// its tenant runs pods there, and the installation goes on over them.
func (c RestoredClaim) nodeProblem() string {
	if c.Installation.ProviderID == v1alpha1.ProviderIDByCluster {
		return c.serverNodeProblem()
	}
	attempt := c.nodeAttempt()
	isNewer := attempt > c.Installation.Attempt ||
		attempt == c.Installation.Attempt && c.hasStatus() && c.Machine.Status.Phase == v1alpha1.MachineProvisioning
	if !isNewer {
		return ""
	}
	return fmt.Sprintf("the backup is older than the Node: it has attempt %d of this Machine as %s, and Node %s runs attempt %d%s",
		c.Installation.Attempt, c.Installation.State, c.Machine.Name, attempt, c.whatToDo())
}

// isProvenByNode reports whether the Node of the attempt shows that its image was written, which the backup does not know yet. Where the backup has
// the status of an installation that goes on, nodeProblem tells a person.
func (c RestoredClaim) isProvenByNode() bool {
	return c.Installation.State == v1alpha1.InstallationRequested && !c.Machine.Deleting && nodeidentity.AttemptOf(c.Node.ProviderID, c.ClaimUID) == c.Installation.Attempt
}

// nodeOwner compares the Node with the installation of the annotation.
func (c RestoredClaim) nodeOwner() nodeidentity.Finding {
	i := c.Installation
	installed := v1alpha1.MachineStatus{Attempt: i.Attempt, SystemUUID: i.SystemUUID, ProviderID: i.ProviderID}
	return Facts{Machine: Machine{UID: c.ClaimUID, Status: installed}, Node: c.Node}.nodeOwner()
}

// nodeAttempt returns the attempt of the Node, and 0 where there is none or it is another's.
func (c RestoredClaim) nodeAttempt() int64 {
	if attempt := nodeidentity.AttemptOf(c.Node.ProviderID, c.ClaimUID); attempt > 0 || c.nodeOwner().Owner != nodeidentity.ThisAttempt {
		return attempt
	}
	return c.Installation.Attempt
}

// serverNodeProblem finds a Node that may be younger than the backup, where the cluster sets providerIDs: then nothing of the Node tells its attempt. One of
// another revision is younger; and while the backup has an installation that goes on, any Node of the server may be the one that it ended in.
func (c RestoredClaim) serverNodeProblem() string {
	i, found := c.Installation, c.nodeOwner()
	isComplete := i.State != v1alpha1.InstallationRequested
	switch {
	case !c.Node.Found || found.Owner == nodeidentity.Another:
		return ""
	case isComplete && found.Owner == nodeidentity.ThisAttempt && (c.NodeRevision == "" || c.NodeRevision == i.Revision):
		return ""
	case isComplete && found.Owner == nodeidentity.EarlierAttempt:
		return ""
	case found.Message == "":
		found.Message = fmt.Sprintf("its label %s says %q", v1alpha1.LabelRevision, c.NodeRevision)
	}
	return fmt.Sprintf("the backup has attempt %d of this Machine as %s with revision %s, and Node %s of its server may be of a later one: %s%s",
		i.Attempt, i.State, i.Revision, c.Machine.Name, found.Message, c.whatToDo())
}

// status returns the status of a Machine that has its host again: that of the backup or, without one, what the annotation proves. A node that had
// joined is Joining for a moment: its Node is there, and its verdict is made anew behind the gate, which evicts nothing.
func (c RestoredClaim) status() v1alpha1.MachineStatus {
	p := planner{scope: scope{Facts: Facts{Clock: watched.Clock{Now: c.Now}, Timeouts: c.Timeouts, Machine: c.Machine}}}
	p.d.Status = *c.Machine.Status.DeepCopy()
	s, i := &p.d.Status, c.Installation
	if c.ClaimUID != c.Machine.UID {
		s.InstallationUID = c.ClaimUID
	}
	if c.hasStatus() {
		return *s
	}
	s.HostRef = &v1alpha1.NamespacedReference{Namespace: c.Host.Namespace, Name: c.Host.Name}
	s.Revision, s.Rendering, s.Attempt, s.SystemUUID = i.Revision, i.Rendering, i.Attempt, i.SystemUUID
	s.ProviderID = i.ProviderID
	switch {
	case c.Machine.Deleting:
		p.enterPhase(v1alpha1.MachineReleasing)
	case i.State == v1alpha1.InstallationComplete:
		p.enterPhase(v1alpha1.MachineJoining)
	default:
		p.enterPhase(v1alpha1.MachineProvisioning)
	}
	return *s
}

// Unmatched returns the status of a Machine that does not take its restored host over, or not yet.
func (c RestoredClaim) Unmatched(a RestoreAction) v1alpha1.MachineStatus {
	p := planner{scope: scope{Facts: Facts{Clock: watched.Clock{Now: c.Now}, Machine: c.Machine}}}
	p.d.Status = *c.Machine.Status.DeepCopy()
	reason := v1alpha1.ReasonRestoreUnmatched
	if a.Kind == AwaitRestored {
		reason = v1alpha1.ReasonRestoreWaiting
	}
	p.applyReport(report{condition: v1alpha1.ConditionClaimed, reason: reason, waitingFor: "", message: a.Message})
	p.setCondition(v1alpha1.ConditionReady, "False", reason, a.Message)
	return p.d.Status
}

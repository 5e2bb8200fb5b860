package lifecycle

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// canHaveRegistered reports whether what this attempt installed was started, so that its kubelet may have registered a Node. It need not have
// been seen. Without it: a server boots while the tenant's API server does not answer to Ingot, and its Machine is deleted. The kubelet, which
// reaches that API server, registers; the Machine goes without a word about the Node, which stays for ever.
func (s scope) canHaveRegistered() bool {
	if s.Machine.Status.NodeRef != nil {
		return true
	}
	t := s.Machine.Status.Timeline
	for i := len(t) - 1; i >= 0 && t[i].Phase != v1alpha1.MachineProvisioning; i-- {
		if t[i].Phase == v1alpha1.MachineJoining {
			return true
		}
	}
	return false
}

// remainingNodes returns the Nodes of earlier Machines that the HostRecord names and, if the Node of this Machine may be left, that one.
func (s scope) remainingNodes() []v1alpha1.ReleasedNode {
	spec := s.Host.Record.Spec
	isGone := s.Tenant.Reachable && !s.hasOwnNode()
	if isGone || spec.NodeRemains == nil && !s.hasRemainingNode() {
		return spec.RemainingNodes
	}
	return v1alpha1.WithRemainingNode(spec.RemainingNodes, s.nodeOfMachine(spec.Tenant))
}

// releasedNode returns the Node that may be left when a host without a HostRecord is returned; nil: none is. It is written to the host itself.
// Without it: a baremetal-operator's host is released while the tenant's cluster does not answer, and the only word about the Node is an event.
func (s scope) releasedNode() *v1alpha1.ReleasedNode {
	if s.Host.Record != nil || !s.hasRemainingNode() {
		return nil
	}
	node := s.nodeOfMachine(s.Machine.Namespace + "/" + s.Machine.Spec.TenantClusterRef.Name)
	return &node
}

// nodeOfMachine returns what is written down of the Node of this Machine. The cluster that has it is the one of the HostRecord, where there is one:
// the TenantCluster may lead to another by now.
func (s scope) nodeOfMachine(tenant string) v1alpha1.ReleasedNode {
	node := v1alpha1.ReleasedNode{Tenant: tenant, ClusterUID: s.Tenant.ClusterUID, Name: s.Machine.Name, MachineUID: s.Machine.UID, Since: metav1.NewMicroTime(s.Now)}
	if r := s.Host.Record; r != nil {
		node.ClusterUID = r.Spec.TenantClusterUID
	}
	if r := s.Machine.Status.NodeRef; r != nil {
		node.UID = r.UID
	}
	return node
}

// Remaining is a Node that may have been left when its host was released, with what is known of it now.
type Remaining struct {
	// Clock is the time of the decision.
	watched.Clock
	// Entry is what the HostRecord says of the Node.
	Entry v1alpha1.ReleasedNode
	// HostMachine is the uid of the Machine that has the host; empty: none has.
	HostMachine types.UID
	// Tenant is the TenantCluster of the Entry.
	Tenant Tenant
	// Node is the object of its name, as the tenant's API server returned it. It is unknown while the tenant is not Reachable.
	Node Node
}

// RemainingAction is what is done about a Node that may have been left.
type RemainingAction string

// The actions on Nodes that may have been left.
const (
	// KeepRemaining does nothing now.
	KeepRemaining RemainingAction = "Keep"
	// KeepUnproven does nothing and says that the Node of that name may be the one that remained: a person must look at it.
	KeepUnproven RemainingAction = "KeepUnproven"
	// KeepElsewhere does nothing and says that the TenantCluster leads to another cluster now: a person must look for the Node in the first one.
	KeepElsewhere RemainingAction = "KeepElsewhere"
	// DeleteRemaining deletes the Node whose uid was observed.
	DeleteRemaining RemainingAction = "Delete"
	// ForgetRemaining removes the entry from the HostRecord.
	ForgetRemaining RemainingAction = "Forget"
)

// forgetTime is how long a Node is remembered whose TenantCluster does not exist, or leads to another cluster: nobody can tell whether it was removed.
const forgetTime = 30 * 24 * time.Hour

// PlanRemaining decides about one Node that may have been left. It is deleted only when it is proven to be of the Machine that was released,
// and when no Machine of that uid has the host. Without the first: the tenant has given its name to another machine, and the Node of that one is
// deleted under its pods. Without the second: the entry was written, and the release goes on; the server is not erased yet.
func PlanRemaining(r Remaining) RemainingAction {
	switch {
	case !r.Tenant.Found && r.isOld():
		return ForgetRemaining
	case !r.Tenant.Reachable || r.HostMachine == r.Entry.MachineUID:
		return KeepRemaining
	case r.IsElsewhere():
		return r.planElsewhere()
	case !r.Node.Found:
		return ForgetRemaining
	case !r.isOfMachine() && r.isUnproven():
		return KeepUnproven
	case !r.isOfMachine():
		return ForgetRemaining
	case r.Node.Undeletable != "":
		return KeepRemaining
	}
	return DeleteRemaining
}

func (r Remaining) isOld() bool { return r.Elapsed(r.Entry.Since.Time) >= forgetTime }

func (r Remaining) planElsewhere() RemainingAction {
	if r.isOld() {
		return ForgetRemaining
	}
	return KeepElsewhere
}

// IsElsewhere reports whether the cluster that answers is not known to be the one in which the Node was left, and does not have the very Node. Without
// it: the kubeconfig of a TenantCluster comes to lead to another cluster, its Machines are deleted, that cluster is accepted and has no such Node. The
// entry is removed as settled, and the Node stays in the first cluster for ever.
func (r Remaining) IsElsewhere() bool {
	return r.Entry.ClusterUID != "" && r.Entry.ClusterUID != r.Tenant.ClusterUID && !(r.Node.Found && r.isOfMachine())
}

// isOfMachine reports whether the Node is the one that remained.
func (r Remaining) isOfMachine() bool {
	return r.Entry.UID != "" && r.Node.UID == r.Entry.UID || nodeidentity.IsOfMachine(r.Node.identity(), r.Entry.MachineUID)
}

// isUnproven reports whether nothing tells of which Machine the Node is: its uid was never recorded, and its providerID is not Ingot's, as in a
// vCluster, whose cloud provider sets it. Without it: the host of a Machine that is gone is released, the entry has no uid, the Node of that Machine is
// taken for another one's, the entry is removed as settled, and nobody learns that the Node stays for ever.
func (r Remaining) isUnproven() bool {
	return r.Entry.UID == "" && !strings.HasPrefix(r.Node.ProviderID, v1alpha1.ProviderIDPrefix)
}

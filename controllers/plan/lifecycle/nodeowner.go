package lifecycle

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/identity"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
)

// nodeOwner says whose the Node is. It is Unknown while there is none.
func (f Facts) nodeOwner() nodeidentity.Finding {
	if !f.Node.Found {
		return nodeidentity.Finding{Owner: nodeidentity.Unknown}
	}
	find := f.findOwner
	if find == nil {
		find = nodeidentity.Of
	}
	return find(f.nodeClaim(), f.Node.identity())
}

// identity is what tells whose the Node is.
func (n Node) identity() nodeidentity.Node {
	return nodeidentity.Node{UID: n.UID, ProviderID: n.ProviderID, SystemUUID: n.SystemUUID, Installation: n.Installation}
}

// nodeClaim returns what is known of the Machine's Node. Until this attempt has told its system UUID, the one that was read before is the server's too.
// Without it: the server's earlier system has registered again while the attempt failed, the Machine is deleted, and its Node stays for ever.
func (f Facts) nodeClaim() nodeidentity.Claim {
	c := nodeidentity.ClaimOf(f.Machine.UID, f.Machine.Status)
	if c.SystemUUID == "" && f.hasHost() {
		c.SystemUUID = f.Host.systemUUID()
	}
	return c
}

// systemUUID is what an agent read on the host; empty: none has, or it is not known.
func (h *Host) systemUUID() string {
	if h.Record == nil || h.Record.Status.Seen() == nil {
		return ""
	}
	return h.Record.Status.Seen().SystemUUID
}

// hasOwnNode reports whether the Node is this Machine's, of this attempt or of an earlier one.
func (f Facts) hasOwnNode() bool { return f.nodeOwner().Owner.IsMachines() }

// hasNodeOfThisAttempt reports whether the Node was registered by what this attempt installed.
func (f Facts) hasNodeOfThisAttempt() bool {
	return f.Tenant.Reachable && f.nodeOwner().Owner == nodeidentity.ThisAttempt
}

// hasEarlierNode reports whether the Node was registered before this attempt, by this Machine or on its server.
func (f Facts) hasEarlierNode() bool { return f.nodeOwner().Owner == nodeidentity.EarlierAttempt }

// identityProblem says why the Node of a further installation could not be known; empty: it can be. A host whose agent has not told its system UUID yet tells it
// with the installation.
func identityProblem(f Facts) string {
	if f.Tenant.ProviderID != v1alpha1.ProviderIDByCluster {
		return ""
	}
	needs := fmt.Sprintf("spec.join.providerID of %s is %s, so a Node is known by its server's system UUID, ", tenantName(f), v1alpha1.ProviderIDByCluster)
	switch {
	case f.Provider.Found && !f.Provider.HasRecords:
		return needs + "which no agent of Ingot's reads on hosts of a metal3 NodeProvider: use a redfish or ironic one, or set it to " + string(v1alpha1.ProviderIDByIngot)
	case f.Host != nil && f.Host.systemUUID() != "" && identity.SystemUUID(f.Host.systemUUID()) == "":
		return needs + fmt.Sprintf("and host %s/%s has %s, which its maker gave to others too: give it one of its own in its firmware, have it inspected again, or set it to %s",
			f.Host.Namespace, f.Host.Name, f.Host.systemUUID(), v1alpha1.ProviderIDByIngot)
	}
	return ""
}

// nodeProblem returns why a Node of the Machine's name is not its own.
func (s scope) nodeProblem() (reason, message string) {
	found := s.nodeOwner()
	reason = v1alpha1.ReasonNodeConflict
	if found.Owner == nodeidentity.Unknown {
		reason = v1alpha1.ReasonServerUnidentified
	}
	return reason, fmt.Sprintf("Node %s of the tenant's cluster is not this installation's: %s: delete that Node, or this Machine", s.Machine.Name, found.Message)
}

package lifecycle

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// obstacle is the first reason why no host may be claimed, whatever hosts there are.
func (s situation) obstacle() (reason, message string) {
	nt, m := s.NodeType, s.Machine
	name := "NodeType " + m.Spec.NodeTypeRef.Name
	switch {
	case !nt.Found:
		return v1alpha1.ReasonWaitingForNodeType, name + " does not exist: create it, or delete this Machine"
	case !nt.Ready && nt.Reason == "":
		return v1alpha1.ReasonWaitingForNodeType, name + " is new, and its controller has not looked at it yet"
	case !nt.Ready:
		return v1alpha1.ReasonWaitingForNodeType, fmt.Sprintf("%s is not Ready, %s: %s", name, nt.Reason, nt.Message)
	case s.Revision.Name == "":
		return v1alpha1.ReasonWaitingForNodeType, name + " has no stable revision yet"
	case !s.Provider.Found && s.Revision.Problem == "":
		return v1alpha1.ReasonWaitingForNodeType, "the NodeProvider of " + name + " does not exist"
	}
	return s.guards.unsuited(s.Facts, s.Revision)
}

// rollObstacle is the first reason why a roll to the revision that is wanted must not begin.
func (s situation) rollObstacle() (reason, message string) {
	if reason, message = s.guards.unsuited(s.Facts, s.Next); reason != "" {
		return reason, message
	}
	switch s.Machine.Status.Phase {
	case v1alpha1.MachineValidating, v1alpha1.MachineReady:
		// The power-off would not be confirmed, and the pods would have left in vain.
		return s.hostTrouble()
	default:
		return "", ""
	}
}

// hostTrouble is why the host's controller does not go on.
func (s situation) hostTrouble() (reason, message string) {
	h := s.Host
	switch {
	case h.Paused:
		return v1alpha1.ReasonHostPaused, "host " + s.hostName() + " is paused: remove its annotation baremetalhost.metal3.io/paused"
	case h.Detached:
		return v1alpha1.ReasonHostDetached, "host " + s.hostName() + " is detached: remove its annotation baremetalhost.metal3.io/detached"
	case h.Error != "" && h.ErrorReason != "":
		return h.ErrorReason, "host " + s.hostName() + ": " + h.ErrorMessage
	case h.Error != "":
		return v1alpha1.ReasonHostError, fmt.Sprintf("host %s reports a %s: %s", s.hostName(), h.Error, h.ErrorMessage)
	default:
		return "", ""
	}
}

// unsuited is why a revision must not be installed for the Machine's tenant now.
func unsuited(f Facts, r Revision) (reason, message string) {
	switch {
	case r.Problem != "":
		return v1alpha1.ReasonWaitingForNodeType, "revision " + r.Name + ": " + r.Problem
	case !f.Tenant.Found || !f.Tenant.Reachable:
		return v1alpha1.ReasonWaitingForTenant, tenantTrouble(f)
	case f.Tenant.Deleting:
		return v1alpha1.ReasonWaitingForTenant, tenantName(f) + " is being deleted and takes no further nodes: delete this Machine"
	}
	if problem := VersionSkewProblem(r.Kubelet, f.Tenant.Version); problem != "" {
		return v1alpha1.ReasonVersionSkew, problem
	}
	if r.DRA && !f.Tenant.ServesDRA {
		return v1alpha1.ReasonDRANotServed, fmt.Sprintf("revision %s advertises its GPUs by a DRA driver, and the API server of %s (%s) does not serve "+
			"resource.k8s.io/v1: upgrade it to Kubernetes 1.34 or newer, or use a presentation that a device plugin advertises", r.Name, tenantName(f), f.Tenant.Version)
	}
	return "", ""
}

func tenantName(f Facts) string {
	return "TenantCluster " + f.Machine.Namespace + "/" + f.Machine.Spec.TenantClusterRef.Name
}

func tenantTrouble(f Facts) string {
	switch {
	case !f.Tenant.Found && f.Machine.Deleting:
		return tenantName(f) + " does not exist"
	case !f.Tenant.Found:
		return tenantName(f) + " does not exist: create it, or delete this Machine"
	}
	return fmt.Sprintf("%s cannot be used: %s: %s", tenantName(f), f.Tenant.Reason, f.Tenant.Message)
}

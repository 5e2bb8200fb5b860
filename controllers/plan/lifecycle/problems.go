package lifecycle

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// referenceProblem returns the first reason why the Machine may claim no host at all, whatever hosts there are.
func (s scope) referenceProblem() (reason, message string) {
	nt, m := s.NodeType, s.Machine
	name := "NodeType " + m.Spec.NodeTypeRef.Name
	switch {
	case !nt.Found:
		return v1alpha1.ReasonWaitingForNodeType, name + " does not exist: create it, or " + m.RemovalAdvice()
	case !nt.Ready && nt.Reason == "":
		return v1alpha1.ReasonWaitingForNodeType, name + " is new, and its controller has not looked at it yet"
	case !nt.Ready:
		return v1alpha1.ReasonWaitingForNodeType, fmt.Sprintf("%s is not Ready, %s: %s", name, nt.Reason, nt.Message)
	case s.Revision.Name == "":
		return v1alpha1.ReasonWaitingForNodeType, name + " has no stable revision yet"
	case !s.Provider.Found && s.Revision.Problem == "":
		return v1alpha1.ReasonWaitingForNodeType, "the NodeProvider of " + name + " does not exist"
	}
	return s.guards.revisionProblem(s.Facts, s.Revision)
}

// rollProblem returns the first reason why a roll to the next revision must not begin.
func (s scope) rollProblem() (reason, message string) {
	if s.Machine.Spec.PowerOff {
		return v1alpha1.ReasonPoweredOff, "spec.powerOff is set, and no roll begins before it is cleared: " + s.powerOnHint()
	}
	if reason, message = s.guards.revisionProblem(s.Facts, s.NextRevision); reason != "" {
		return reason, message
	}
	if s.isNeverPoweredOff() {
		return v1alpha1.ReasonPowerOffDisabled, s.neverPoweredOffMessage()
	}
	switch s.Machine.Status.Phase {
	case v1alpha1.MachineValidating, v1alpha1.MachineReady:
		// With this problem the BMC would not confirm the power-off, and the node would be drained for nothing.
		return s.hostProblem()
	default:
		return "", ""
	}
}

// revisionProblem returns the reason why a revision must not be installed for the Machine's tenant now.
func revisionProblem(f Facts, r Revision) (reason, message string) {
	switch {
	case r.JoinProblem != "":
		return v1alpha1.ReasonKubeletUnsupported, "revision " + r.Name + ", " + tenantName(f) + ": " + r.JoinProblem
	case f.Tenant.JoinProblem != "":
		return v1alpha1.ReasonWaitingForTenant, tenantProblem(f)
	case r.Problem != "":
		return v1alpha1.ReasonWaitingForNodeType, "revision " + r.Name + ": " + r.Problem
	case f.Provider.BootProblem != "":
		return v1alpha1.ReasonBootAddressWrong, f.Provider.BootProblem
	case r.ImageProblem != "":
		return r.ImageReason, r.ImageProblem
	}
	return revisionProblemOfTenant(f, r)
}

// revisionProblemOfTenant is the part of revisionProblem that the tenant's cluster decides.
func revisionProblemOfTenant(f Facts, r Revision) (reason, message string) {
	switch {
	case !f.Tenant.Found || !f.Tenant.Reachable:
		return v1alpha1.ReasonWaitingForTenant, tenantProblem(f)
	case f.Tenant.Deleting:
		return v1alpha1.ReasonWaitingForTenant, tenantName(f) + " is being deleted and takes no further nodes: " + f.Machine.RemovalAdvice()
	}
	if problem := identityProblem(f); problem != "" {
		return v1alpha1.ReasonServerUnidentified, problem
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

// VersionSkewProblem says why a kubelet of the given version must not join an API server of the given version; empty: it may.
// A kubelet must not be newer than the API server, and at most three minor versions older
// (kubernetes.io/releases/version-skew-policy).
func VersionSkewProblem(kubelet, apiServer string) string {
	k, err := version.ParseGeneric(kubelet)
	if err != nil {
		return fmt.Sprintf("the image's kubelet version %q is not a version: correct spec.software.kubelet in a new OSImage", kubelet)
	}
	s, err := version.ParseGeneric(apiServer)
	if err != nil {
		return fmt.Sprintf("the tenant's API server says version %q, which is not a version", apiServer)
	}
	switch {
	case k.Major() != s.Major() || k.Minor() > s.Minor():
		return fmt.Sprintf("the image's kubelet %s is newer than the tenant's API server %s: use an older image or upgrade the tenant", kubelet, apiServer)
	case s.Minor()-k.Minor() > 3:
		return fmt.Sprintf("the image's kubelet %s is more than three minor versions older than the tenant's API server %s: use a newer image", kubelet, apiServer)
	default:
		return ""
	}
}

func tenantName(f Facts) string {
	return "TenantCluster " + f.Machine.Namespace + "/" + f.Machine.Spec.TenantClusterRef.Name
}

// canTakeNode reports whether another node can be given what it needs to join. A TenantCluster whose join was edited to one that is refused can be used
// for all else. Without the difference: that edit has released nodes powered off without a drain and left in the tenant's cluster.
func (f Facts) canTakeNode() bool { return f.Tenant.Reachable && f.Tenant.JoinProblem == "" }

// tenantProblem says why the tenant's cluster cannot be used, or takes no further nodes.
func tenantProblem(f Facts) string {
	switch {
	case !f.Tenant.Found && f.Machine.Deleting:
		return tenantName(f) + " does not exist"
	case !f.Tenant.Found:
		return tenantName(f) + " does not exist: create it, or " + f.Machine.RemovalAdvice()
	case f.Tenant.Reachable:
		return fmt.Sprintf("%s takes no further nodes: %s: %s", tenantName(f), v1alpha1.ReasonJoinUnsupported, f.Tenant.JoinProblem)
	}
	return fmt.Sprintf("%s cannot be used: %s: %s", tenantName(f), f.Tenant.Reason, f.Tenant.Message)
}

// verdictProblem returns the reason why a Machine that had a Node is not Ready.
func (s scope) verdictProblem() (reason, message string) {
	v, m := s.Machine.Status.Verdict, s.Machine
	switch {
	case !s.hasHost():
		return v1alpha1.ReasonHostLost, "host " + s.hostName() + " is no longer this Machine's"
	case s.isServerOff():
		return v1alpha1.ReasonServerOff, s.serverOffMessage()
	case !s.Tenant.Reachable:
		return v1alpha1.ReasonWaitingForTenant, tenantProblem(s.Facts)
	case !s.Node.Found:
		return v1alpha1.ReasonNodeLost, "Node " + m.Name + " was deleted in the tenant's cluster: restart kubelet on it, and it registers again"
	case !s.hasNodeOfThisAttempt():
		return s.nodeProblem()
	case !s.hasVerdictOfNode():
		return v1alpha1.ReasonChecksWaiting, "Node " + m.Name + " has not been judged yet"
	case v.BootID != s.Node.BootID:
		return v1alpha1.ReasonNodeRebooted, "Node " + m.Name + " booted since it was judged"
	case !s.guards.isBootAfterPowerOff(s.Facts):
		return v1alpha1.ReasonChecksWaiting, "Node " + m.Name + " has not reported since its server was powered on again"
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason, c.Message
	} else if v.Result != v1alpha1.CheckPass {
		return v1alpha1.ReasonChecksWaiting, "a check does not pass: " + s.decidingCheck()
	}
	return v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for validation.settle"
}

// isPublishedByValidation reports whether the validation controller publishes an event of that reason, about the same Machine, with its verdict.
func (s scope) isPublishedByValidation(reason string) bool {
	if reason == v1alpha1.ReasonNodeRebooted {
		return true
	}
	c := meta.FindStatusCondition(s.Machine.Status.Conditions, v1alpha1.ConditionValidated)
	return s.hasVerdictOfNode() && c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
}

// decidingCheck describes the first check that decides the verdict, in a few words: nvidia.com/gpu: 7 of 8.
func (s scope) decidingCheck() string {
	if v := s.Machine.Status.Verdict; v != nil && s.hasNodeOfThisAttempt() && v.NodeUID == s.Node.UID {
		for _, c := range v.Checks {
			if c.Result == v.Result && c.Result != v1alpha1.CheckPass {
				return strings.TrimPrefix(c.Name, "resource/") + ": " + observedOfExpected(c)
			}
		}
	}
	return ""
}

// observedOfExpected describes what a check observed and expected. Numbers read as 7 of 8.
func observedOfExpected(c v1alpha1.Check) string {
	if c.Observed == "" {
		return "nothing seen, expected " + c.Expected
	}
	if _, err := resource.ParseQuantity(c.Observed); err == nil {
		return c.Observed + " of " + c.Expected
	}
	return c.Observed + ", expected " + c.Expected
}

package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

const (
	// rereadAfter is how often the kubeconfig is read again: Secrets are not watched.
	rereadAfter = time.Minute
	// rereadSoon is how often it is read again while it cannot be used.
	rereadSoon = 10 * time.Second
)

// report sets the status to what was observed.
func report(after *v1alpha1.TenantCluster, obs observation, access *tenantaccess.Access, problem error, now time.Time) step.Outcome {
	after.Status.ObservedGeneration = after.Generation
	after.Status.Machines = int32(len(obs.machines))
	if access != nil {
		// The last known version stays while the tenant is lost, because the version skew of images is checked with it.
		after.Status.Version = access.Version
		if access.ClusterUID != "" {
			after.Status.ClusterUID = access.ClusterUID
		}
		if found := join.FindDNS(join.Sources(access.DNS)); len(found.Addresses) > 0 || found.Domain != "" {
			after.Status.ClusterDNS = &found
		}
	}
	status, reason, message := readyCondition(after, problem)
	if access != nil && status == metav1.ConditionTrue {
		status, reason, message = withJoin(after, obs.script, access, reason, message)
	}
	reportServingCertificates(after, access, now)
	if reason == v1alpha1.ReasonClusterChanged {
		message += joined(obs.machines)
	}
	if obs.deleting {
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonMachinesRemain, remaining(obs.machines, problem)
		if len(obs.machines) == 0 {
			reason, message = v1alpha1.ReasonEntitlementsRemain, "it is being deleted and kept, with its kubeconfig, for the Entitlements that have objects in it: "+strings.Join(obs.entitlements, ", ")+
				"; delete them: it goes when the last one has, at the latest ten minutes after its own deletion where the cluster does not answer"
		}
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionReady, status, reason, message)
	if status == metav1.ConditionTrue || reason == v1alpha1.ReasonJoinUnsupported {
		return step.Wait("the kubeconfig may change", rereadAfter)
	}
	return step.Wait(message, rereadSoon)
}

// reportServingCertificates says whether the requests for serving certificates can be seen and approved.
func reportServingCertificates(after *v1alpha1.TenantCluster, access *tenantaccess.Access, now time.Time) {
	const condition = v1alpha1.ConditionServingCertificatesApproved
	if !after.Spec.MustApproveServingCertificates() {
		meta.RemoveStatusCondition(&after.Status.Conditions, condition)
		return
	}
	status, reason, message := metav1.ConditionUnknown, v1alpha1.ReasonRequestsUnwatched, "the API server cannot be used now: see the condition Ready"
	switch {
	case access == nil:
	case len(access.ServingRequests.Denied) > 0:
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonApprovalRightsMissing
		message = "the kubeconfig's user may not " + strings.Join(access.ServingRequests.Denied, ", ") + ", so the kubelets of nodes get no serving certificate from Ingot, and logs and exec fail there: " +
			"an administrator of the tenant's cluster applies what ingot tenant add --serving-certificates --tenant-side prints, or approves the requests"
	case access.ServingRequests.Problem != "":
		status, message = metav1.ConditionFalse, access.ServingRequests.Problem
	case access.ServingRequests.Watched:
		status, reason, message = metav1.ConditionTrue, v1alpha1.ReasonApprovingRequests, "requests for serving certificates are approved when their names are those of their Machine"
	default:
		message = "the requests have not been read yet"
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, condition, status, reason, message)
}

func readyCondition(tenant *v1alpha1.TenantCluster, problem error) (metav1.ConditionStatus, string, string) {
	var typed *tenantaccess.Error
	switch {
	case errors.As(problem, &typed):
		return metav1.ConditionFalse, typed.Reason, typed.Err.Error()
	case problem != nil:
		return metav1.ConditionFalse, v1alpha1.ReasonTenantUnreachable, problem.Error()
	}
	if tenant.Status.ClusterUID == "" {
		return metav1.ConditionTrue, v1alpha1.ReasonClusterUnknown, clusterUnknown
	}
	return metav1.ConditionTrue, v1alpha1.ReasonReady, "the API server answers and its Nodes are watched"
}

// endpoint returns what nodes are given.
func endpoint(tenant *v1alpha1.TenantCluster, access *tenantaccess.Access) string {
	return cmp.Or(tenant.Spec.Join.Endpoint(), access.Server)
}

// withJoin returns why nodes cannot join, or else the reason, and the message with what the owner must know although nothing is refused for it.
func withJoin(after *v1alpha1.TenantCluster, script join.Script, access *tenantaccess.Access, reason, message string) (metav1.ConditionStatus, string, string) {
	if why := join.Problem(after.Spec.Join, endpoint(after, access), access.CA); why != "" {
		return metav1.ConditionFalse, v1alpha1.ReasonJoinUnsupported, why
	}
	if refused, why := join.ScriptProblem(after, script); refused != "" {
		return metav1.ConditionFalse, refused, why
	}
	remarks := join.Remarks(after, endpoint(after, access), join.Sources(access.DNS))
	if text := clockRemark(access.ClockAhead); text != "" {
		remarks = append(remarks, text)
	}
	if len(remarks) > 0 {
		message += ". To be looked at: " + strings.Join(remarks, ". ")
	}
	return metav1.ConditionTrue, reason, message
}

// clockRemark says that the tenant's clock differs from the management cluster's; empty: it does not. Nothing is decided by a tenant's clock, but what its own
// controllers decide.
func clockRemark(ahead time.Duration) string {
	direction := "ahead of"
	switch {
	case ahead == 0:
		return ""
	case ahead < 0:
		direction = "behind"
	}
	return fmt.Sprintf("its clock is %s %s the management cluster's: bootstrap tokens are made to end by it, and certificates may be refused; set both by one source of time", ahead.Abs(), direction)
}

// clusterUnknown is the message of ClusterUnknown. A Role in a namespace gives the right to get that Namespace.
const clusterUnknown = "the API server answers and its Nodes are watched; which cluster it is is not known, because the kubeconfig's user may not get the Namespace kube-system: " +
	"so a host goes back to this tenant by its name alone, and only where this TenantCluster is older than the installation. An administrator of that cluster allows it: " +
	"kubectl create role ingot-identity -n kube-system --verb=get --resource=namespaces && kubectl create rolebinding ingot-identity -n kube-system --role=ingot-identity --user=USER"

// maxNamed is how many Machines a message names. The others are counted.
const maxNamed = 8

// nameMachines names Machines, and the NodePools that would make them again.
func nameMachines(machines []v1alpha1.Machine) (names, pools string) {
	var named, of []string
	for i := range machines {
		if i < maxNamed {
			named = append(named, machines[i].Name)
		}
		if pool := machines[i].Labels[v1alpha1.LabelNodePool]; pool != "" && !slices.Contains(of, pool) {
			of = append(of, pool)
		}
	}
	names = strings.Join(named, ", ")
	if more := len(machines) - len(named); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	slices.Sort(of)
	return names, strings.Join(of, ", ")
}

// joined returns the end of the message of a TenantCluster behind which another cluster answers: which Machines keep it from being accepted, and what
// to scale first. The NodePools make no Machine meanwhile.
func joined(machines []v1alpha1.Machine) string {
	names, pools := nameMachines(slices.DeleteFunc(slices.Clone(machines), func(m v1alpha1.Machine) bool { return !canHaveJoined(m) }))
	if names == "" {
		return ""
	}
	text := ". The Machines: " + names
	if pools != "" {
		text += "; to be scaled to 0 first: NodePool " + pools
	}
	return text
}

// remaining returns the message of a TenantCluster that is being deleted: which Machines refer to it, and what to do.
func remaining(machines []v1alpha1.Machine, problem error) string {
	held, pools := nameMachines(machines)
	what := "delete them"
	if pools != "" {
		what = "delete NodePool " + pools + " and what Machines are left"
	}
	message := fmt.Sprintf("it is being deleted and kept, with its kubeconfig, for the Machines that refer to it: %s; %s, and it goes when the last one has", held, what)
	if problem != nil {
		_, reason, why := readyCondition(nil, problem)
		message += fmt.Sprintf(". Meanwhile they cannot be drained: %s: %s", reason, why)
	}
	return message
}

package nodepool

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/step"
)

// report sets the status. It counts the Machines as they were before this reconcile created or deleted any. The events of these changes
// start the next reconcile.
func report(after *v1alpha1.NodePool, obs observation, now time.Time) {
	status := &after.Status
	status.ObservedGeneration = after.Generation
	status.Replicas, status.ReadyReplicas, status.UpToDateReplicas = 0, 0, 0
	status.PlacedReplicas = int32(obs.placed())
	status.Selector = labels.Set{v1alpha1.LabelNodePool: after.Name}.String()
	for i := range obs.machines {
		m := &obs.machines[i]
		if m.DeletionTimestamp != nil {
			continue
		}
		status.Replicas++
		if isReady(m) {
			status.ReadyReplicas++
		}
		if isUpToDate(m, obs.nodeType) {
			status.UpToDateReplicas++
		}
	}
	set := func(condition string, is metav1.ConditionStatus, reason, message string) {
		step.SetCondition(&status.Conditions, after.Generation, now, condition, is, reason, message)
	}
	is, reason, message := placedCondition(after, obs)
	set(v1alpha1.ConditionPlaced, is, reason, message)
	if is == metav1.ConditionTrue || reason == v1alpha1.ReasonScaling {
		is, reason, message = readyCondition(after, obs)
	}
	set(v1alpha1.ConditionReady, is, reason, message)
}

// missing returns the reason why no Machine of the pool can be made. It is empty when one can.
func (obs *observation) missing() (reason, message string) {
	tenant := "TenantCluster " + obs.pool.Namespace + "/" + obs.pool.Spec.TenantClusterRef.Name
	switch {
	case obs.nodeType == nil:
		return v1alpha1.ReasonNodeTypeNotFound, fmt.Sprintf("spec.nodeTypeRef names the NodeType %s, which does not exist: no Machine is created", obs.pool.Spec.NodeTypeRef.Name)
	case obs.nodeType.DeletionTimestamp != nil:
		return v1alpha1.ReasonNodeTypeDeleting, fmt.Sprintf(
			"NodeType %s is being deleted and kept for the Machines that use it: no Machine is created; delete this NodePool, or make it again for another NodeType", obs.nodeType.Name)
	case obs.tenant == nil:
		return v1alpha1.ReasonTenantNotFound, tenant + " does not exist: no Machine is created before it does"
	case obs.tenant.DeletionTimestamp != nil:
		return v1alpha1.ReasonTenantDeleting, tenant + " is being deleted and takes no further nodes: no Machine is created; delete this NodePool or scale it to 0"
	case isClusterChanged(obs.tenant):
		return v1alpha1.ReasonClusterChanged, tenant + " leads to another cluster than the one that its Machines joined: no Machine is created; restore its kubeconfig, or scale this " +
			"NodePool to 0 for the other cluster to be accepted: its condition Ready says more"
	}
	if problem := obs.joinProblem(); problem != "" {
		return v1alpha1.ReasonKubeletUnsupported, tenant + ": " + problem + ": no Machine is created"
	}
	return "", ""
}

// joinProblem returns why a new Machine cannot join as the TenantCluster says; empty: it can, or what it would be is not known yet.
func (obs *observation) joinProblem() string {
	if obs.revision == nil {
		return ""
	}
	return join.SettingsProblem(obs.tenant.Spec.Join, v1alpha1.KubeletMembers(obs.revision.Spec.Kubelet))
}

// isClusterChanged reports whether another cluster answers behind the TenantCluster than the one that its Machines joined. Without it: a Machine is deleted,
// as the TenantCluster advises, the pool makes another one, whose host is installed for a cluster that cannot be used, and none is ever the last.
func isClusterChanged(tenant *v1alpha1.TenantCluster) bool {
	c := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClusterChanged
}

// placedCondition returns status, reason and message of the condition Placed.
func placedCondition(pool *v1alpha1.NodePool, obs observation) (metav1.ConditionStatus, string, string) {
	if reason, message := obs.missing(); reason != "" {
		return metav1.ConditionFalse, reason, message
	}
	wanted, placed := replicas(pool), int(pool.Status.PlacedReplicas)
	if placed >= wanted {
		return metav1.ConditionTrue, v1alpha1.ReasonPlaced, fmt.Sprintf("all %d Machines have a host", wanted)
	}
	if refusal := obs.quotaRefusal(); refusal != "" {
		return metav1.ConditionFalse, v1alpha1.ReasonQuotaExceeded, fmt.Sprintf("%d Machines are asked for, and %d have a host: %s", wanted, placed, refusal)
	}
	text := fmt.Sprintf("%d Machines are asked for, %d have a host, and %d hosts are free", wanted, placed, obs.free)
	if obs.free > 0 {
		return metav1.ConditionFalse, v1alpha1.ReasonScaling, text
	}
	h := obs.hosts
	return metav1.ConditionFalse, v1alpha1.ReasonNoHostAvailable, fmt.Sprintf(
		"%s; NodeType %s selects %d, of which %d are claimed and %d in error: one Machine waits for the next host, and others are created when there are more; free or register hosts, or scale this NodePool to %d",
		text, pool.Spec.NodeTypeRef.Name, h.Matching, h.Claimed, h.Error, placed)
}

// readyCondition returns status, reason and message of the condition Ready of a pool whose Machines have hosts or are about to.
func readyCondition(pool *v1alpha1.NodePool, obs observation) (metav1.ConditionStatus, string, string) {
	wanted, have, up := replicas(pool), int(pool.Status.Replicas), int(pool.Status.ReadyReplicas)
	is, reason, text := metav1.ConditionFalse, v1alpha1.ReasonScaling, fmt.Sprintf("%d Machines are asked for, %d exist, %d are Ready", wanted, have, up)
	if have == wanted && up == wanted {
		is, reason, text = metav1.ConditionTrue, v1alpha1.ReasonReady, fmt.Sprintf("all %d Machines are Ready", wanted)
	}
	if unknown := obs.count(isUnknown); have > wanted && wanted > 0 && unknown > 0 {
		text += fmt.Sprintf("; of %d nothing is known yet, and which ones are deleted is decided when it is", unknown)
	}
	if unseen := obs.count(isWaitingForTenant); unseen > 0 {
		reason, text = v1alpha1.ReasonWaitingForTenant, text+fmt.Sprintf(
			"; %d of them are known as they were last seen: TenantCluster %s/%s cannot be used, and its condition Ready says why", unseen, pool.Namespace, pool.Spec.TenantClusterRef.Name)
		if is == metav1.ConditionTrue {
			is = metav1.ConditionUnknown
		}
	}
	return is, reason, text
}

// isWaitingForTenant reports whether the Machine needs its tenant's cluster, which cannot be used. One that was Ready stays so meanwhile.
func isWaitingForTenant(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Reason == v1alpha1.ReasonWaitingForTenant
}

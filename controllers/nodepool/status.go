package nodepool

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// report sets the status. It counts the Machines as they were before this reconcile created or deleted any. The events of these changes
// start the next reconcile.
func report(after *v1alpha1.NodePool, obs observation, now time.Time) {
	status := &after.Status
	status.ObservedGeneration = after.Generation
	status.Replicas, status.ReadyReplicas, status.UpToDateReplicas = 0, 0, 0
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
	is, reason, message := readyCondition(after, obs)
	step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionReady, is, reason, message)
}

// readyCondition returns status, reason and message of the condition Ready.
func readyCondition(pool *v1alpha1.NodePool, obs observation) (metav1.ConditionStatus, string, string) {
	wanted := replicas(pool)
	if obs.nodeType == nil {
		return metav1.ConditionFalse, v1alpha1.ReasonNodeTypeNotFound,
			fmt.Sprintf("spec.nodeTypeRef names the NodeType %s, which does not exist: no Machine is created", pool.Spec.NodeTypeRef.Name)
	}
	if obs.nodeType.DeletionTimestamp != nil {
		return metav1.ConditionFalse, v1alpha1.ReasonNodeTypeDeleting,
			fmt.Sprintf("NodeType %s is being deleted and kept for the Machines that use it: no Machine is created; delete this NodePool, or make it again for another NodeType", obs.nodeType.Name)
	}
	have, up := int(pool.Status.Replicas), int(pool.Status.ReadyReplicas)
	if have == wanted && up == wanted {
		return metav1.ConditionTrue, v1alpha1.ReasonReady, fmt.Sprintf("all %d Machines are Ready", wanted)
	}
	return metav1.ConditionFalse, v1alpha1.ReasonScaling, fmt.Sprintf("%d Machines are asked for, %d exist, %d are Ready", wanted, have, up)
}

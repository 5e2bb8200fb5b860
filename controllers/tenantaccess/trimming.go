package tenantaccess

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownPrefix begins the annotations that are kept.
const ownPrefix = "ingot.dev/"

// trimNode keeps what identity, verdict and gate need. A Node of a busy cluster shrinks from tens of kilobytes to a
// few, and a heartbeat changes nothing that is kept but the resourceVersion.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimMeta(&node.ObjectMeta)
	kept := corev1.NodeStatus{
		Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable, Conditions: node.Status.Conditions,
		Addresses: node.Status.Addresses, NodeInfo: node.Status.NodeInfo,
	}
	for i := range kept.Conditions {
		kept.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	node.Status = kept
	return node, nil
}

func trimSlice(object any) (any, error) {
	if slice, ok := object.(*resourcev1.ResourceSlice); ok {
		trimMeta(&slice.ObjectMeta)
		trimDevices(&slice.Spec)
	}
	return object, nil
}

func trimMeta(meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	for key := range meta.Annotations {
		if !strings.HasPrefix(key, ownPrefix) {
			delete(meta.Annotations, key)
		}
	}
}

package v1alpha1_test

import (
	"fmt"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAGateHasNoKeyThatSomebodyElseManages(t *testing.T) {
	definition := definitions(t)["NodeType"]
	for key, managed := range map[string]bool{
		"node.kubernetes.io/unschedulable": true, "node.kubernetes.io/not-ready": true, "kubernetes.io/gate": true, "any.sub.kubernetes.io/gate": true,
		"node.cloudprovider.kubernetes.io/uninitialized": true, "node-role.kubernetes.io/control-plane": true,
		"scheduling.k8s.io/gate": true, "node.cluster.x-k8s.io/uninitialized": true, "karpenter.sh/disrupted": true, "karpenter.k8s.aws/gate": true,
		"cloud.google.com/gke-quick-remove": true, "eks.amazonaws.com/gate": true, "ebs.csi.aws.com/agent-not-ready": true, "kubernetes.azure.com/scalesetpriority": true,
		"node.cilium.io/agent-not-ready": true, "cni.istio.io/not-ready": true,
		"nvidia.com/gpu": true, "nvidia.com/mig.config": true, "k8s.device.nvidia.com/gate": true, "amd.com/gpu": true, "gpu.amd.com/gate": true, "amd-dcm": true, "gpu.intel.com/gate": true,
		"aws-node-termination-handler/spot-itn": true, "ToBeDeletedByClusterAutoscaler": true, "DeletionCandidateOfClusterAutoscaler": true,
		v1alpha1.DefaultGateTaintKey: false, "example.com/gate": false, "gate": false, "notnvidia.com/gate": false, "kubernetes.io.example.com/gate": false, "mykubernetes.io/gate": false,
	} {
		if got := v1alpha1.IsManagedTaintKey(key); got != managed {
			t.Errorf("%s is managed: %v", key, got)
		}
		found := definition.admit(t, object(t, examples["NodeType"], fmt.Sprintf("{spec: {gate: {taintKey: %s}}}", key)), nil)
		if (len(found) > 0) != managed {
			t.Errorf("taintKey %s: the definition says %v", key, found)
		}
	}
}

// An object of an earlier version stays as it is and can be changed.
func TestANodeTypeThatHasAManagedKeyCanBeChanged(t *testing.T) {
	const before = "{spec: {gate: {taintKey: nvidia.com/gpu}}}"
	definition := definitions(t)["NodeType"]
	if found := definition.admit(t, object(t, examples["NodeType"], "{spec: {gate: {taintKey: nvidia.com/gpu}, displayName: changed}}"), object(t, examples["NodeType"], before)); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
}

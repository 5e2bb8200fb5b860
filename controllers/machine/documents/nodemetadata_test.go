package documents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
)

func TestANodeHasIngotsLabelsAndTheLabelsAndTaintsOfItsNodeType(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	full := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}, Spec: v1alpha1.NodeTypeSpec{
		Zone: "hall-1", Node: &v1alpha1.NodeMetadata{Labels: map[string]string{"team": "research"}, Taints: []corev1.Taint{taint}},
	}}
	bare := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100"}}
	known := map[string]string{v1alpha1.LabelNodeType: "h100", v1alpha1.LabelMachineUID: "uid", v1alpha1.LabelRevision: "h100-4be1"}
	if diff := cmp.Diff(known, documents.NodeLabels(bare, "uid", "h100-4be1")); diff != "" {
		t.Error(diff)
	}
	if got := documents.NodeTaints(bare); got != nil {
		t.Errorf("taints %v", got)
	}
	known[v1alpha1.LabelZone], known["team"] = "hall-1", "research"
	if diff := cmp.Diff(known, documents.NodeLabels(full, "uid", "h100-4be1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.Taint{taint}, documents.NodeTaints(full)); diff != "" {
		t.Error(diff)
	}
	documents.NodeLabels(full, "uid", "h100-4be1")["team"] = "other"
	if full.Spec.Node.Labels["team"] != "research" {
		t.Error("the NodeType's labels are not a copy")
	}
}

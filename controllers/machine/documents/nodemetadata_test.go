package documents_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
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
	if diff := cmp.Diff(known, documents.NodeLabels(bare, nil, "uid", "h100-4be1")); diff != "" {
		t.Error(diff)
	}
	if got := documents.NodeTaints(bare); got != nil {
		t.Errorf("taints %v", got)
	}
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "server-04", Labels: map[string]string{"rack": "r7"}}}
	known[v1alpha1.LabelZone], known["team"], known["ingot.dev/host"], known["ingot.dev/rack"] = "hall-1", "research", "server-04", "r7"
	if diff := cmp.Diff(known, documents.NodeLabels(full, host, "uid", "h100-4be1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.Taint{taint}, documents.NodeTaints(full)); diff != "" {
		t.Error(diff)
	}
	documents.NodeLabels(full, host, "uid", "h100-4be1")["team"] = "other"
	for name, want := range map[string]int{strings.Repeat("x", 63): 4, strings.Repeat("x", 64): 3} {
		if got := documents.NodeLabels(bare, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}, "uid", "h100-4be1"); len(got) != want {
			t.Errorf("a host's name of %d letters: %v", len(name), got)
		}
	}
	if full.Spec.Node.Labels["team"] != "research" {
		t.Error("the NodeType's labels are not a copy")
	}
}

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRemainingNodes on a BareMetalHost without a HostRecord, such as one of a metal3 provider, has the Nodes that may be left in the clusters of
// earlier tenants, as JSON of type []ReleasedNode. Whoever has deleted them there removes it.
const AnnotationRemainingNodes = "ingot.dev/remaining-nodes"

// WithRemainingNode adds a Node to the list. The oldest one gives way when the list is full.
func WithRemainingNode(nodes []ReleasedNode, added ReleasedNode) []ReleasedNode {
	var out []ReleasedNode
	for _, n := range nodes {
		if n.MachineUID != added.MachineUID {
			out = append(out, n)
		}
	}
	out = append(out, added)
	return out[max(len(out)-MaxRemainingNodes, 0):]
}

// RemainingNodesOf reads AnnotationRemainingNodes. What cannot be read counts as absent.
func RemainingNodesOf(host metav1.Object) (nodes []ReleasedNode) {
	if json.Unmarshal([]byte(host.GetAnnotations()[AnnotationRemainingNodes]), &nodes) != nil {
		return nil
	}
	return nodes
}

// AddRemainingNode adds a Node to AnnotationRemainingNodes.
func AddRemainingNode(host *metav1.ObjectMeta, added ReleasedNode) error {
	text, err := json.Marshal(WithRemainingNode(RemainingNodesOf(host), added))
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(host, AnnotationRemainingNodes, string(text))
	return nil
}

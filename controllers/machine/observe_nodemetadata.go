package machine

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// nodeMetadata is the labels and taints that a Node lacks of those that its NodeType sets.
type nodeMetadata struct {
	labels map[string]string
	taints []corev1.Taint
}

// missingNodeMetadata compares the Node with its NodeType. It returns nothing while the NodeType is not known.
func (obs *observation) missingNodeMetadata(node *corev1.Node) nodeMetadata {
	lacking := nodeMetadata{labels: map[string]string{}}
	if obs.nodeType == nil {
		return lacking
	}
	for key, value := range documents.NodeLabels(obs.nodeType, obs.host, string(obs.machine.ClaimUID()), obs.facts.Revision.Name) {
		if node.Labels[key] != value {
			lacking.labels[key] = value
		}
	}
	for _, want := range documents.NodeTaints(obs.nodeType) {
		found := false
		for i := range node.Spec.Taints {
			have := &node.Spec.Taints[i]
			found = found || have.MatchTaint(&want) && have.Value == want.Value
		}
		if !found {
			lacking.taints = append(lacking.taints, want)
		}
	}
	return lacking
}

// observeNodeMetadata returns the keys of the labels and taints that the Node lacks and, where they were placed on it before, who removed them.
func (obs *observation) observeNodeMetadata(ctx context.Context, node *corev1.Node) lifecycle.NodeMetadata {
	lacking := obs.missingNodeMetadata(node)
	missing := lifecycle.NodeMetadata{Labels: slices.Sorted(maps.Keys(lacking.labels))}
	for i := range lacking.taints {
		missing.Taints = append(missing.Taints, lacking.taints[i].Key)
	}
	if p := obs.machine.Status.NodeMetadata; len(missing.Labels)+len(missing.Taints) > 0 && p != nil && p.NodeUID == node.UID {
		missing.Writer = obs.readMetadataWriter(ctx, node, missing)
	}
	return missing
}

// readMetadataWriter returns who wrote what is missing last. It reads the Node from the tenant's API server, because the cache has no managed
// fields. A name that cannot be read is only missing in a message.
func (obs *observation) readMetadataWriter(ctx context.Context, cached *corev1.Node, missing lifecycle.NodeMetadata) string {
	var node corev1.Node
	if err := obs.access.Client.Get(ctx, client.ObjectKeyFromObject(cached), &node); err != nil {
		ctrl.LoggerFrom(ctx).Info("The Node whose labels or taints were removed cannot be read", "Node", cached.Name, "error", input.Line(err.Error(), maxQuoted))
		return ""
	}
	writer := ""
	for _, key := range missing.Labels {
		if writer = contest.LastWriter(node.ManagedFields, "f:metadata", "f:labels", "f:"+key); writer != "" {
			break
		}
	}
	if writer == "" && len(missing.Taints) > 0 {
		writer = contest.LastWriter(node.ManagedFields, "f:spec", "f:taints")
	}
	return writer
}

// maxQuoted limits what is quoted of a tenant's answer, in bytes.
const maxQuoted = 128

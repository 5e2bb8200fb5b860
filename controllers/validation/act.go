package validation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// act does what was decided about the gate and the cordon.
func (r *Reconciler) act(ctx context.Context, obs observation, decision verdict.Decision) error {
	if decision.Gate == verdict.KeepGate && decision.Cordon == verdict.KeepCordon {
		return nil
	}
	patch, err := nodePatch(obs.node, obs.nodeType.Gate.Key(), decision)
	if err != nil {
		return err
	}
	target := &corev1.Node{}
	target.Name = obs.node.Name
	if err := obs.tenant.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s the gate of Node %s: %w", decision.Gate, obs.node.Name, err)
	}
	if decision.Gate == verdict.KeepGate {
		return nil
	}
	gateActions.WithLabelValues(string(decision.Gate), decision.Reason).Inc()
	return nil
}

// guardUnjudgedNode places the gate on a node that booted or registered while its expectation is not known. The Decision is the zero value if
// nothing is known of the node or of its gate.
func (r *Reconciler) guardUnjudgedNode(ctx context.Context, obs observation, m *v1alpha1.Machine) (verdict.Decision, error) {
	if obs.node == nil || !obs.gateKnown {
		return verdict.Decision{PlacedGate: m.Status.Gate}, nil
	}
	decision := verdict.GuardUnjudged(obs.input(serverclock.Of(r.Clock), m))
	if decision.Reason == "" {
		decision.Reason = obs.unjudged.reason
	}
	return decision, r.act(ctx, obs, decision)
}

// nodePatch replaces the Node's taints and its cordon as was decided. It holds for the very object that was judged: with another uid or
// resourceVersion the API server answers with a conflict.
func nodePatch(node *corev1.Node, key string, decision verdict.Decision) ([]byte, error) {
	meta, spec := map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion}, map[string]any{}
	if decision.Gate != verdict.KeepGate {
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
			return t.Key == key && t.Effect == corev1.TaintEffectNoSchedule
		})
		if decision.Gate == verdict.PlaceGate {
			taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		spec["taints"] = taints
	}
	switch decision.Cordon {
	case verdict.CordonNode:
		spec["unschedulable"], meta["annotations"] = true, map[string]any{v1alpha1.AnnotationGateCordoned: "true"}
	case verdict.UncordonNode:
		meta["annotations"] = map[string]any{v1alpha1.AnnotationGateCordoned: nil}
		if _, isDrained := node.Annotations[v1alpha1.AnnotationCordoned]; !isDrained {
			spec["unschedulable"] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("make the patch of the gate: %w", err)
	}
	return patch, nil
}

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
)

// act does what was decided about the gate.
func (r *Reconciler) act(ctx context.Context, obs observation, decision verdict.Decision) error {
	if decision.Gate == verdict.KeepGate {
		return nil
	}
	patch, err := taintPatch(obs.node, obs.nodeType.Gate.Key(), decision.Gate)
	if err != nil {
		return err
	}
	target := &corev1.Node{}
	target.Name = obs.node.Name
	if err := obs.tenant.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s the gate of Node %s: %w", decision.Gate, obs.node.Name, err)
	}
	gateActions.WithLabelValues(string(decision.Gate), decision.Reason).Inc()
	return nil
}

// placeGateOnUnjudgedNode places the gate on a node that booted or registered while its expectation is not known.
func (r *Reconciler) placeGateOnUnjudgedNode(ctx context.Context, obs observation, m *v1alpha1.Machine) error {
	if obs.node == nil || !obs.gateKnown || !verdict.MustPlaceGate(obs.input(r.Clock.Now(), m)) {
		return nil
	}
	return r.act(ctx, obs, verdict.Decision{Gate: verdict.PlaceGate, Reason: obs.unjudged.reason})
}

// taintPatch replaces the Node's taints. It holds for the very object that was judged: with another uid or
// resourceVersion the API server answers with a conflict.
func taintPatch(node *corev1.Node, key string, action verdict.GateAction) ([]byte, error) {
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return t.Key == key && t.Effect == corev1.TaintEffectNoSchedule
	})
	if action == verdict.PlaceGate {
		taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return nil, fmt.Errorf("make the patch of the gate: %w", err)
	}
	return patch, nil
}

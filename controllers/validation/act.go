package validation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
)

// act does what was decided about the gate, what the Node says about it, and the cordon, in one request.
func (r *Reconciler) act(ctx context.Context, obs observation, m *v1alpha1.Machine, decision verdict.Decision) error {
	if decision.Gate == verdict.KeepGate && decision.Cordon == verdict.KeepCordon && decision.GateReason == nil {
		return nil
	}
	where := fmt.Sprintf("pods that do not tolerate the taint %s wait until every check has passed: see the condition Validated of Machine %s/%s in the management cluster, or kubectl ingot why -n %[2]s %[3]s there",
		obs.nodeType.Gate.Key(), m.Namespace, m.Name)
	patch, err := r.nodePatch(obs.node, obs.nodeType.Gate.Key(), where, decision)
	if err != nil {
		return err
	}
	target := &corev1.Node{}
	target.Name = obs.node.Name
	if err := obs.tenant.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s the gate of Node %s: %w", decision.Gate, obs.node.Name, err)
	}
	if g := decision.GateReason; g != nil && g.IsNew {
		r.publishGateReason(ctx, obs, *g, where)
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
	if decision.Gate == verdict.PlaceGate {
		decision.GateReason = verdict.NewGateReason(obs.node, decision.Reason, cmp.Or(decision.Message, obs.unjudged.message), true)
	}
	return decision, r.act(ctx, obs, m, decision)
}

// publishGateReason publishes an event on the Node, which those see who look at their pods' Node in the tenant's cluster. One that is refused is only missing.
func (r *Reconciler) publishGateReason(ctx context.Context, obs observation, g verdict.GateReason, where string) {
	now, typ := metav1.NewTime(r.Clock.Now()), corev1.EventTypeNormal
	if g.IsWarning {
		typ = corev1.EventTypeWarning
	}
	err := obs.tenant.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: obs.node.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: obs.node.Name, UID: obs.node.UID},
		Type:           typ, Reason: g.Reason, Message: input.Line(g.Note(where), step.MaxNote), Source: corev1.EventSource{Component: "ingot"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("An event on a Node is not published", "Node", obs.node.Name, "reason", g.Reason, "error", input.Line(err.Error(), maxLogged))
	}
}

// nodePatch replaces the Node's taints, what it says about the gate, and its cordon as was decided. It holds for the very object that was judged: with another uid or
// resourceVersion the API server answers with a conflict.
func (r *Reconciler) nodePatch(node *corev1.Node, key, where string, decision verdict.Decision) ([]byte, error) {
	annotations, spec := map[string]any{}, map[string]any{}
	meta := map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": annotations}
	value := ""
	if g := decision.GateReason; g != nil {
		value, annotations[v1alpha1.AnnotationGate] = g.Reason, nil
		if g.Reason != "" {
			annotations[v1alpha1.AnnotationGate] = g.Text(r.Clock.Now(), where)
		}
	}
	if decision.Gate != verdict.KeepGate || value != "" {
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
			return t.Key == key && t.Effect == corev1.TaintEffectNoSchedule
		})
		if decision.Gate != verdict.LiftGate {
			taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
		}
		spec["taints"] = taints
	}
	switch decision.Cordon {
	case verdict.CordonNode:
		spec["unschedulable"], annotations[v1alpha1.AnnotationGateCordoned] = true, "true"
	case verdict.UncordonNode:
		annotations[v1alpha1.AnnotationGateCordoned] = nil
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

package verdict

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// keptOff names, as namespace/name, the DaemonSets that would put a pod on the node if they tolerated the gate.
func keptOff(sets []appsv1.DaemonSet, node *corev1.Node, gate string) []string {
	var out []string
	for i := range sets {
		pod := corev1.Pod{Spec: sets[i].Spec.Template.Spec}
		fits, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(node)
		// An affinity that cannot be parsed fits no node: the scheduler says the same.
		if err == nil && fits && !tolerates(pod.Spec.Tolerations, gate) {
			out = append(out, sets[i].Namespace+"/"+sets[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// tolerates says whether a toleration covers the gate, whose taint has no value and the effect NoSchedule.
func tolerates(tolerations []corev1.Toleration, gate string) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return t.Key == "" || t.Key == gate
		case t.Operator == "" || t.Operator == corev1.TolerationOpEqual:
			return t.Key == gate && t.Value == ""
		default:
			return false
		}
	})
}

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Roles of a vendor's DaemonSets, as their names and images tell them.
const (
	roleDRA          = "dra"
	roleDevicePlugin = "device-plugin"
)

// suspects names, as namespace/name, the DaemonSets that fit the node and whose names or images speak of the vendor of a
// resource or driver, and of the role. It guesses, and serves messages only.
func suspects(in Input, ofVendor, role string) []string {
	var out []string
	for i := range in.DaemonSets {
		set := &in.DaemonSets[i]
		pod := corev1.Pod{Spec: set.Spec.Template.Spec}
		fits, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(in.Node)
		if err != nil || !fits {
			continue
		}
		texts := []string{set.Name}
		for _, c := range pod.Spec.Containers {
			texts = append(texts, c.Image)
		}
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, vendor(ofVendor)) }) &&
			slices.ContainsFunc(texts, func(t string) bool { return speaksOf(t, role) }) {
			out = append(out, set.Namespace+"/"+set.Name)
		}
	}
	slices.Sort(out)
	return out
}

// vendor is nvidia for the resource nvidia.com/gpu and the driver gpu.nvidia.com.
func vendor(name string) string {
	domain, _, _ := strings.Cut(name, "/")
	labels := strings.Split(domain, ".")
	return labels[max(0, len(labels)-2)]
}

// speaksOf: the role is there as words, so that hydra is no dra.
func speaksOf(text, role string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Contains("-"+strings.Join(words, "-")+"-", "-"+role+"-")
}

// named continues a sentence with names, a few of them.
func named(sets []string) string {
	if len(sets) == 0 {
		return ""
	}
	return " (DaemonSet " + few(sets) + ")"
}

// few lists the first names, and how many more there are.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

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

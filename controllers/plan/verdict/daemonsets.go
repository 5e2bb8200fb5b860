package verdict

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The roles of a vendor's DaemonSets, as they occur in names and images.
const (
	roleDRA          = "dra"
	roleDevicePlugin = "device-plugin"
)

// likelyDaemonSets returns, as namespace/name, the DaemonSets that fit the node and whose name or image contains the role and the
// vendor of the resource or driver. This is a guess for messages; no result depends on it.
func likelyDaemonSets(in Input, ofVendor, role string) []string {
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
			slices.ContainsFunc(texts, func(t string) bool { return hasRole(t, role) }) {
			out = append(out, set.Namespace+"/"+set.Name)
		}
	}
	slices.Sort(out)
	return out
}

// vendor returns the vendor of a resource or driver: nvidia for nvidia.com/gpu and for gpu.nvidia.com.
func vendor(name string) string {
	domain, _, _ := strings.Cut(name, "/")
	labels := strings.Split(domain, ".")
	return labels[max(0, len(labels)-2)]
}

// hasRole reports whether the text contains the words of the role: hydra does not contain dra.
func hasRole(text, role string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Contains("-"+strings.Join(words, "-")+"-", "-"+role+"-")
}

// daemonSetsText returns the names in brackets, to continue a sentence; empty if there are none.
func daemonSetsText(sets []string) string {
	if len(sets) == 0 {
		return ""
	}
	return " (DaemonSet " + joinNames(sets) + ")"
}

// joinNames lists the first names, and says how many are omitted.
func joinNames(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// blockedDaemonSets returns, as namespace/name, the DaemonSets that would run a pod on the node if they tolerated the gate.
func blockedDaemonSets(sets []appsv1.DaemonSet, node *corev1.Node, gate string) []string {
	var out []string
	for i := range sets {
		pod := corev1.Pod{Spec: sets[i].Spec.Template.Spec}
		fits, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(node)
		// An affinity that cannot be parsed fits no node: the scheduler says the same.
		if err == nil && fits && !IsTolerated(pod.Spec.Tolerations, gate) {
			out = append(out, sets[i].Namespace+"/"+sets[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// IsTolerated reports whether one of the tolerations matches the gate, a taint with the effect NoSchedule. Its value changes, so a toleration must have the
// operator Exists.
func IsTolerated(tolerations []corev1.Toleration, gate string) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return t.Key == "" || t.Key == gate
		default:
			return false
		}
	})
}

// addGateHint names the tenant's DaemonSets that the gate itself keeps off the node, in the first check that may not pass because
// a pod does not run. It replaces the hint of that check, which does not help before these pods run.
func addGateHint(in Input, all []v1alpha1.Check) {
	blocked := blockedDaemonSets(in.DaemonSets, in.Node, in.Gate)
	i := slices.IndexFunc(all, needsPod)
	if len(blocked) == 0 || i < 0 || !HasGate(in.Node, in.Gate) {
		return
	}
	all[i].Hint = fmt.Sprintf("DaemonSets that fit this node and do not tolerate the gate %s, so that they cannot run: %s: add the toleration {key: %s, operator: Exists, effect: NoSchedule} to those that the node needs",
		in.Gate, joinNames(blocked), in.Gate)
}

// needsPod reports whether a check may not pass because a pod does not run. A driver that publishes anything does run.
func needsPod(c v1alpha1.Check) bool {
	if c.Result == v1alpha1.CheckPass {
		return false
	}
	return c.Name == CheckReady || strings.HasPrefix(c.Name, PrefixResource) || strings.HasPrefix(c.Name, PrefixSlices) && c.Observed == ""
}

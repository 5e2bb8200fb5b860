package tenant

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

// checkDaemonSets finds DaemonSets that the gate would keep off a new node.
func (t *tenant) checkDaemonSets(ctx context.Context) {
	const topic = "DaemonSets"
	sets, err := t.api.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.add(levelNote, topic, "cannot be read: %v", err)
		return
	}
	troubled := false
	for _, gate := range t.requirements.gateKeys() {
		var others []string
		for i := range sets.Items {
			set := &sets.Items[i]
			if verdict.IsTolerated(set.Spec.Template.Spec.Tolerations, gate) {
				continue
			}
			troubled = true
			name := set.Namespace + "/" + set.Name
			if need := purpose(&set.Spec.Template.Spec); need != "" {
				t.add(levelMend, "DaemonSet "+name, "%s, and does not tolerate the gate: add to its pods the toleration {key: %s, operator: Exists, effect: NoSchedule}", need, gate)
			} else {
				others = append(others, name)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			t.add(levelNote, topic, "run on a new node only after its verdict, since they do not tolerate the gate %s: %s", gate, strings.Join(others, ", "))
		}
	}
	if !troubled {
		t.add(levelOK, topic, "all %d tolerate the gate", len(sets.Items))
	}
	if !slices.ContainsFunc(sets.Items, func(s appsv1.DaemonSet) bool { return purpose(&s.Spec.Template.Spec) == forGPUs }) {
		t.add(levelNote, topic, "none looks like GPU software: nodes with GPUs are admitted only once a device plugin, an operator or a DRA driver runs on them")
	}
}

// What a node needs DaemonSets for before it can be admitted.
const (
	forNetwork = "gives nodes their network, without which they never become Ready"
	forGPUs    = "looks like GPU software, without which nodes do not advertise their GPUs"
)

// vendors are parts of the names of GPU software's images and node labels.
var vendors = []string{"nvidia", "amd.com", "rocm", "k8s-device-plugin"}

// purpose says what a node needs the pods for before it can be admitted; empty: nothing.
func purpose(pod *corev1.PodSpec) string {
	for _, v := range pod.Volumes {
		// CNI plugins put their configuration there (kubernetes.io/docs, network plugins).
		if v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/etc/cni/net.d") {
			return forNetwork
		}
	}
	names := make([]string, 0, len(pod.Containers))
	for i := range pod.Containers {
		names = append(names, pod.Containers[i].Image)
	}
	for key := range pod.NodeSelector {
		names = append(names, key)
	}
	for _, name := range names {
		if slices.ContainsFunc(vendors, func(v string) bool { return strings.Contains(name, v) }) {
			return forGPUs
		}
	}
	return ""
}

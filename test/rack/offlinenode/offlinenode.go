package offlinenode

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/machine"
	"github.com/ingot-dev/ingot/test/rack/operator"
	"github.com/ingot-dev/ingot/test/rack/software"
)

// Result is the state of the node when nothing changes any more.
type Result struct {
	// Node is the Node as it is registered; nil: kubelet did not start, and Problems say why.
	Node *corev1.Node
	// Slices are the ResourceSlices of the node.
	Slices []resourcev1.ResourceSlice
	// Problems are the errors of pods and of the machine.
	Problems []string
}

// maxRounds is enough for labels that depend on other labels.
const maxRounds = 12

// Run runs the pods of the DaemonSets on the machine until nothing changes. kubelet must have read the machine's disk.
func Run(ctx context.Context, m *machine.Machine, k *kubelet.Kubelet, cluster *operator.Cluster) Result {
	s := run{machine: m, cluster: cluster, node: k.FinalNode(nil)}
	labels := s.node.Labels
	for range maxRounds {
		before := maps.Clone(labels)
		maps.Copy(labels, cluster.OperatorLabels(labels))
		s.devices, s.result = map[corev1.ResourceName]kubelet.Devices{}, Result{}
		s.node.Labels = labels
		s.runPods(ctx)
		if maps.Equal(before, labels) {
			break
		}
	}
	node := k.FinalNode(s.devices)
	node.Labels = labels
	s.result.Node = node
	return s.result
}

// run is the state of one Run.
type run struct {
	machine *machine.Machine
	cluster *operator.Cluster
	node    *corev1.Node
	devices map[corev1.ResourceName]kubelet.Devices
	result  Result
}

// runPods runs every pod once, those that change the machine first.
func (s *run) runPods(ctx context.Context) {
	sets := slices.Clone(s.cluster.DaemonSets)
	slices.SortStableFunc(sets, func(a, b appsv1.DaemonSet) int {
		return cmp.Compare(software.Order(podOf(a, s.node.Name)), software.Order(podOf(b, s.node.Name)))
	})
	for _, set := range sets {
		pod := podOf(set, s.node.Name)
		if !s.canRun(pod) {
			continue
		}
		host := software.Host{Machine: s.machine, Permitted: s.cluster.Permitted, Node: s.node}
		result, err := host.Run(ctx, pod, s.cluster.ConfigMapReader(set.Namespace))
		if err != nil {
			s.result.Problems = append(s.result.Problems, fmt.Sprintf("%s/%s: %v", set.Namespace, set.Name, err))
		}
		maps.Copy(s.node.Labels, result.Labels)
		if err != nil {
			continue
		}
		maps.Copy(s.devices, result.Devices)
		if result.Driver != "" {
			s.addSlices(result)
		}
	}
}

func podOf(set appsv1.DaemonSet, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Spec.NodeName = node
	return pod
}

// canRun reports whether a pod of a DaemonSet can run on the node.
func (s *run) canRun(pod *corev1.Pod) bool {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(s.node)
	if err != nil || !matches {
		return false
	}
	_, refused := scheduling.FindMatchingUntoleratedTaint(klog.Background(), s.node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false)
	return !refused
}

// addSlices adds ResourceSlices with the devices of a driver.
func (s *run) addSlices(result software.Result) {
	parts := result.Published.Slices()
	for i, spec := range parts {
		spec.Driver, spec.NodeName = result.Driver, &s.node.Name
		spec.Pool = resourcev1.ResourcePool{Name: s.node.Name, Generation: 1, ResourceSliceCount: int64(len(parts))}
		s.result.Slices = append(s.result.Slices, resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%s-%s", i, result.Driver, s.node.Name)}, Spec: spec})
	}
}

package tenantaccess

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The most that is kept of the parts of an object whose number no API limits. Feature discovery sets about 150 labels on a GPU node.
const (
	maxLabels    = 512
	maxResources = 128
	maxTaints    = 128
	maxOwners    = 16
	// maxFinalizers is of those that a message names.
	maxFinalizers = 8
	// maxText is the limit of the other texts, in bytes. The verdict shows an observed value that is longer than an expected one as
	// different from it.
	maxText = 1024
	// maxQuantity is the limit of the memory of one quantity.
	maxQuantity = 256
)

// The limits of the API server on the parts of labels and on the names of resources: a prefix of 253 characters, a slash and a name
// of 63.
const (
	maxKey   = 253 + 1 + 63
	maxValue = 63
)

// ownPrefix is the prefix of Ingot's labels.
const ownPrefix = "ingot.dev/"

// keptAnnotations are the annotations of Nodes that are read.
var keptAnnotations = []string{v1alpha1.AnnotationCordoned, v1alpha1.AnnotationGateCordoned, v1alpha1.AnnotationGate, v1alpha1.AnnotationGPUMode, v1alpha1.AnnotationContainerd}

// trimNode returns the part of a Node that identity, verdict, gate and drain read. It reduces a Node of a busy cluster from tens of
// kilobytes to a few. Of the remaining fields a heartbeat changes only the resourceVersion.
func trimNode(node *corev1.Node) *corev1.Node {
	info := node.Status.NodeInfo
	kept := &corev1.Node{
		ObjectMeta: trimMeta(&node.ObjectMeta),
		Spec: corev1.NodeSpec{
			ProviderID: limitText(node.Spec.ProviderID), Unschedulable: node.Spec.Unschedulable, Taints: trimTaints(node.Spec.Taints),
		},
		Status: corev1.NodeStatus{
			Capacity: trimResources(node.Status.Capacity), Allocatable: trimResources(node.Status.Allocatable),
			NodeInfo: corev1.NodeSystemInfo{
				BootID: limitText(info.BootID), SystemUUID: limitText(info.SystemUUID), KernelVersion: limitText(info.KernelVersion), KubeletVersion: limitText(info.KubeletVersion),
			},
		},
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionStatus(limitText(string(c.Status))), LastTransitionTime: c.LastTransitionTime,
				Reason: limitText(c.Reason), Message: limitText(c.Message),
			}}
			break
		}
	}
	for _, finalizer := range head(node.Finalizers, maxFinalizers) {
		kept.Finalizers = append(kept.Finalizers, limitText(finalizer))
	}
	for _, name := range keptAnnotations {
		if value, found := node.Annotations[name]; found {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, name, limitText(value))
		}
	}
	return kept
}

// trimSlice returns the part of a ResourceSlice that verdicts and the selectors of DeviceClasses read. The rest is large for drivers
// that publish every partition of a GPU.
func trimSlice(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	kept := &resourcev1.ResourceSlice{ObjectMeta: trimMeta(&slice.ObjectMeta), Spec: resourcev1.ResourceSliceSpec{
		Driver: limitText(slice.Spec.Driver), NodeName: slice.Spec.NodeName, AllNodes: slice.Spec.AllNodes, Pool: slice.Spec.Pool,
	}}
	kept.Spec.Pool.Name = limitText(slice.Spec.Pool.Name)
	for _, owner := range head(slice.OwnerReferences, maxOwners) {
		kept.OwnerReferences = append(kept.OwnerReferences, metav1.OwnerReference{Kind: limitText(owner.Kind), Name: limitText(owner.Name), UID: owner.UID})
	}
	devices := head(slice.Spec.Devices, resourcev1.ResourceSliceMaxDevices)
	kept.Spec.Devices = make([]resourcev1.Device, len(devices))
	for i := range devices {
		d := &devices[i]
		kept.Spec.Devices[i] = resourcev1.Device{
			Name: d.Name, NodeName: d.NodeName, Attributes: d.Attributes, Capacity: d.Capacity, Taints: d.Taints, AllowMultipleAllocations: d.AllowMultipleAllocations,
		}
	}
	return kept
}

// trimMeta returns the identity and the labels of an object that has no namespace. What an API server would not store is left out.
func trimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: meta.Name, UID: meta.UID, ResourceVersion: limitText(meta.ResourceVersion), Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp, Labels: trimLabels(meta.Labels),
	}
}

// trimLabels returns the first labels in the order of their keys. Those of Ingot come before all others.
func trimLabels(labels map[string]string) map[string]string {
	fits := func(key string) bool { return len(key) <= maxKey && len(labels[key]) <= maxValue }
	return firstEntries(labels, maxLabels, fits, func(key string) bool { return strings.HasPrefix(key, ownPrefix) })
}

// trimResources returns the first resources in the order of their names. Those of kubelet, which have no prefix, come before all others.
func trimResources(resources corev1.ResourceList) corev1.ResourceList {
	fits := func(name corev1.ResourceName) bool {
		return len(name) <= maxKey && footprint(resources[name])-entryOverhead <= maxQuantity
	}
	return firstEntries(resources, maxResources, fits, func(name corev1.ResourceName) bool { return !strings.Contains(string(name), "/") })
}

// firstEntries returns a map with at most limit of the entries that fit: first those that are preferred, then in the order of the keys.
// It copies also where it leaves out nothing: a map keeps its memory when entries are deleted.
func firstEntries[M ~map[K]V, K ~string, V any](from M, limit int, fits, isPreferred func(K) bool) M {
	if len(from) == 0 {
		return nil
	}
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(from)), func(key K) bool { return !fits(key) })
	if len(keys) > limit {
		slices.SortFunc(keys, func(a, b K) int {
			if isPreferred(a) != isPreferred(b) {
				if isPreferred(a) {
					return -1
				}
				return 1
			}
			return strings.Compare(string(a), string(b))
		})
		keys = keys[:limit]
	}
	kept := make(M, len(keys))
	for _, key := range keys {
		kept[key] = from[key]
	}
	return kept
}

func trimTaints(taints []corev1.Taint) []corev1.Taint {
	kept := slices.Clip(slices.Clone(head(taints, maxTaints)))
	for i := range kept {
		t := &kept[i]
		t.Key, t.Value, t.Effect = limitText(t.Key), limitText(t.Value), corev1.TaintEffect(limitText(string(t.Effect)))
	}
	return kept
}

// head returns the first elements of a slice.
func head[T any](of []T, limit int) []T { return of[:min(len(of), limit)] }

// limitText returns a text of at most maxText bytes and a mark. It copies a longer text, because a part of a string keeps all of it in memory.
func limitText(text string) string { return limitTo(text, maxText) }

// limitTo is limitText for a text with a limit of its own.
func limitTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.Clone(input.Truncate(text, limit))
}

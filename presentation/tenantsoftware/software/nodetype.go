package software

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NodeType is a NodeType of the tenant with its plan.
type NodeType struct {
	// Name of the NodeType, which its nodes carry as the label ingot.dev/nodetype.
	Name string
	// GPU is the NodeType's spec.gpu; nil: nodes without GPUs, which need no software.
	GPU *v1alpha1.GPUSpec
	// Image says what is baked into the operating system.
	Image v1alpha1.OSImageSpec
	// Plan that was resolved from GPU and Image.
	Plan v1alpha1.NodePlan
	// Gate is the taint that a node carries until it is admitted; without a key: the default.
	Gate corev1.Taint
	// Taints that the NodeType puts on its nodes.
	Taints []corev1.Taint
	// Labels that the NodeType puts on its nodes.
	Labels map[string]string
}

// NewNodeType returns the NodeType with the spec of its OSImage and the plan that was resolved from both.
func NewNodeType(n *v1alpha1.NodeType, image v1alpha1.OSImageSpec, plan v1alpha1.NodePlan) NodeType {
	out := NodeType{Name: n.Name, GPU: n.Spec.GPU, Image: image, Plan: plan, Gate: corev1.Taint{Key: n.Spec.Gate.Key(), Effect: corev1.TaintEffectNoSchedule}}
	if n.Spec.Node != nil {
		out.Taints, out.Labels = n.Spec.Node.Taints, n.Spec.Node.Labels
	}
	return out
}

// HasOperatorDriver reports whether the vendor's operator installs the GPU driver, and with it all other software of the vendor.
func (n NodeType) HasOperatorDriver() bool {
	return n.GPU.Driver.Source == v1alpha1.DriverFromOperator
}

// HasNodeDriver reports whether the GPU driver is installed on the node: from its image or from packages.
func (n NodeType) HasNodeDriver() bool { return !n.HasOperatorDriver() }

// HasSlices reports whether the DRA driver with this name publishes the GPUs of the nodes.
func (n NodeType) HasSlices(driver string) bool {
	return slices.ContainsFunc(n.Plan.Expectation.Slices, func(s v1alpha1.ExpectedSlices) bool { return s.Driver == driver })
}

// HasFeatureGate reports whether the DRA driver must run with the feature gate.
func (n NodeType) HasFeatureGate(gate string) bool {
	return slices.Contains(n.Plan.Tenant.FeatureGates, gate)
}

// GateTaint returns the taint that a node carries until it is admitted.
func (n NodeType) GateTaint() corev1.Taint {
	out := n.Gate
	out.Key = cmp.Or(out.Key, v1alpha1.DefaultGateTaintKey)
	out.Effect = cmp.Or(out.Effect, corev1.TaintEffectNoSchedule)
	return out
}

// SortByName returns the NodeTypes in the order of their names.
func SortByName(nodeTypes []NodeType) []NodeType {
	return slices.SortedFunc(slices.Values(nodeTypes), func(a, b NodeType) int { return cmp.Compare(a.Name, b.Name) })
}

// Names returns the names of the NodeTypes.
func Names(nodeTypes []NodeType) []string {
	var out []string
	for _, n := range nodeTypes {
		out = append(out, n.Name)
	}
	return out
}

// Filter returns the NodeTypes for which the predicate is true.
func Filter(nodeTypes []NodeType, is func(NodeType) bool) []NodeType {
	var out []NodeType
	for _, n := range nodeTypes {
		if is(n) {
			out = append(out, n)
		}
	}
	return out
}

// Group is NodeTypes that need the same settings of a vendor's software.
type Group[S comparable] struct {
	// Settings that the NodeTypes need.
	Settings S
	// NodeTypes of the group.
	NodeTypes []NodeType
}

// GroupBySettings puts NodeTypes with equal settings together. The groups are sorted by compare.
func GroupBySettings[S comparable](nodeTypes []NodeType, settings func(NodeType) S, compare func(a, b S) int) []Group[S] {
	var out []Group[S]
	for _, n := range nodeTypes {
		s := settings(n)
		at := slices.IndexFunc(out, func(g Group[S]) bool { return g.Settings == s })
		if at < 0 {
			at, out = len(out), append(out, Group[S]{Settings: s})
		}
		out[at].NodeTypes = append(out[at].NodeTypes, n)
	}
	slices.SortFunc(out, func(a, b Group[S]) int { return compare(a.Settings, b.Settings) })
	return out
}

// Tolerations returns the tolerations of a DaemonSet on the nodes of the NodeTypes. The first is for the taint that users of
// the vendor's software set. The others are for the gate, which a node carries until it advertises what was promised, and
// for the NodeTypes' own taints: without them the node would never advertise anything, and never be admitted.
func Tolerations(vendorTaint string, nodeTypes []NodeType) []corev1.Toleration {
	first := corev1.Toleration{Key: vendorTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	rest := slices.DeleteFunc(nodeTolerations(nodeTypes), func(t corev1.Toleration) bool { return t == first })
	return append([]corev1.Toleration{first}, rest...)
}

// AddTolerations returns the tolerations behind those that a chart has by default: a list in the values of a chart replaces the chart's own. Without
// it: the pods leave nodes that they were on before, such as those of the control plane.
func AddTolerations(defaults, more []corev1.Toleration) []corev1.Toleration {
	out := slices.Clone(defaults)
	for _, t := range more {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func nodeTolerations(nodeTypes []NodeType) []corev1.Toleration {
	var out []corev1.Toleration
	add := func(t corev1.Toleration) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, n := range SortByName(nodeTypes) {
		gate := n.GateTaint()
		add(corev1.Toleration{Key: gate.Key, Operator: corev1.TolerationOpExists, Effect: gate.Effect})
		for _, taint := range n.Taints {
			t := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
			if taint.Value == "" {
				t.Operator = corev1.TolerationOpExists
			}
			add(t)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

// NodeAffinity returns the affinity to the nodes of the NodeTypes. A node has one NodeType, so that DaemonSets for different
// NodeTypes never run on the same node.
func NodeAffinity(nodeTypes []NodeType) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: v1alpha1.LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: Names(nodeTypes)},
		}}},
	}}}
}

package values

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NodeType is one of the tenant's, with its plan.
type NodeType struct {
	// Name of the NodeType, which its nodes carry as the label ingot.dev/nodetype.
	Name string
	// GPU as in the NodeType; nil: nodes without GPUs, which need no software.
	GPU *v1alpha1.GPUSpec
	// Image is what is baked into the operating system.
	Image v1alpha1.OSImageSpec
	// Plan that was resolved from them.
	Plan v1alpha1.NodePlan
	// Gate is the taint that a node carries until it is admitted; without a key: the default.
	Gate corev1.Taint
	// Taints are the NodeType's own.
	Taints []corev1.Taint
	// Labels are the NodeType's own.
	Labels map[string]string
}

// Namespaces of the vendors' operators.
const (
	operatorSpace    = "gpu-operator"
	amdOperatorSpace = "kube-amd-gpu"
)

// Chart is a Helm chart with the values that differ from its own.
type Chart struct {
	// Name of the chart: gpu-operator. Software without a chart has its name here, and Objects only.
	Name string
	// Repository that has the chart; empty: there is none.
	Repository string
	// Version of the chart.
	Version string
	// Release is the name to install it under.
	Release string
	// Namespace to install it in.
	Namespace string
	// Values for helm install --values.
	Values map[string]any
	// Objects to apply once the chart is installed, whose kinds it may bring; what needs them waits.
	Objects []*unstructured.Unstructured
	// Warnings are what is not certain about it, or is left to people.
	Warnings []string
}

// Part is the objects of one vendor's software.
type Part struct {
	// Name of the software: nvidia-device-plugin.
	Name string
	// About says what it is for, and what is left to people.
	About string
	// Objects to apply, in an order that works.
	Objects []*unstructured.Unstructured
}

// Charts are the Helm charts that the NodeTypes' nodes need, and their values. The order of the NodeTypes is of no
// account. What cannot be in one cluster is a *Conflict.
func Charts(nodeTypes []NodeType) ([]Chart, error) {
	t, err := read(nodeTypes)
	if err != nil {
		return nil, err
	}
	var out []Chart
	for _, charts := range []func() ([]Chart, error){t.operatorChart, t.pluginCharts, t.draChart, t.kubeVirtChart, t.amdChart} {
		more, err := charts()
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Parts are the same without Helm: the objects of device plugins and DRA drivers as the vendors' charts make them, one
// DaemonSet for all NodeTypes that want the same of it. Of software that only its operator runs they are the objects that
// the operator reads. What cannot be in one cluster is a *Conflict.
func Parts(nodeTypes []NodeType) ([]Part, error) {
	t, err := read(nodeTypes)
	if err != nil {
		return nil, err
	}
	var out []Part
	for _, part := range []func() (Part, error){t.operatorPart, t.pluginPart, t.draPart, t.kubeVirtPart, t.amdPart, t.amdDRAPart, t.amdOperatorPart} {
		p, err := part()
		if err != nil {
			return nil, err
		}
		if len(p.Objects) > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// Manifests are the objects of all Parts.
func Manifests(nodeTypes []NodeType) ([]*unstructured.Unstructured, error) {
	parts, err := Parts(nodeTypes)
	var out []*unstructured.Unstructured
	for _, p := range parts {
		out = append(out, p.Objects...)
	}
	return out, err
}

// Notes are what neither Charts nor Parts can do for the NodeTypes: software that is the user's own.
func Notes(nodeTypes []NodeType) []string {
	var out []string
	for _, n := range sorted(nodeTypes) {
		if n.GPU == nil || n.GPU.Vendor != v1alpha1.VendorGeneric {
			continue
		}
		what := "the device plugin that advertises "
		for i, r := range n.Plan.Expectation.Resources {
			if i == 0 {
				what += string(r.Name)
			}
		}
		if s := n.Plan.Expectation.Slices; len(s) > 0 {
			what = "the DRA driver " + s[0].Driver
		}
		out = append(out, "NodeType "+n.Name+": "+what+" is yours to install: its DaemonSet must select nodes by "+v1alpha1.LabelNodeType+"="+n.Name+" or what you label them with, and tolerate "+gate(n).Key+":NoSchedule")
	}
	return out
}

// Of is a NodeType with what its image has, and the plan that was resolved from both.
func Of(n *v1alpha1.NodeType, image v1alpha1.OSImageSpec, p v1alpha1.NodePlan) NodeType {
	out := NodeType{Name: n.Name, GPU: n.Spec.GPU, Image: image, Plan: p, Gate: corev1.Taint{Key: n.Spec.Gate.Key(), Effect: corev1.TaintEffectNoSchedule}}
	if n.Spec.Node != nil {
		out.Taints, out.Labels = n.Spec.Node.Taints, n.Spec.Node.Labels
	}
	return out
}

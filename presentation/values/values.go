package values

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/plan"
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
	Plan plan.Plan
	// Gate is the taint that a node carries until it is admitted; without a key: the default.
	Gate corev1.Taint
	// Taints are the NodeType's own.
	Taints []corev1.Taint
}

// Chart is a Helm chart with the values that differ from its own.
type Chart struct {
	// Name of the chart: gpu-operator.
	Name string
	// Repository that has it.
	Repository string
	// Version of the chart; empty: none was verified.
	Version string
	// Values for helm install --values.
	Values map[string]any
	// Warnings are what is not certain about them, for people.
	Warnings []string
}

// Charts are the Helm charts that the NodeTypes' nodes need, and their values. The order of the NodeTypes is of no
// account. What cannot be in one cluster is a *Conflict.
func Charts(nodeTypes []NodeType) ([]Chart, error) { return nil, nil }

// Manifests are the same without Helm, for software that needs no operator: the objects to apply, in an order that works.
// The order of the NodeTypes is of no account. What cannot be in one cluster is a *Conflict.
func Manifests(nodeTypes []NodeType) ([]*unstructured.Unstructured, error) { return nil, nil }

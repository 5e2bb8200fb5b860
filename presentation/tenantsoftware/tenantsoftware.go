package tenantsoftware

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/amd"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/nvidia"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// Charts returns the Helm charts that the nodes of the NodeTypes need, with their values. The order of the NodeTypes does not
// matter. When one cluster cannot serve all of them the error is a *software.Conflict.
func Charts(nodeTypes []software.NodeType) ([]software.Chart, error) {
	ordered, err := sortUnique(nodeTypes)
	if err != nil {
		return nil, err
	}
	charts, err := nvidia.Charts(ordered)
	if err != nil {
		return nil, err
	}
	return append(charts, amd.Charts(ordered)...), nil
}

// Components returns the same software as plain objects: device plugins and DRA drivers as the vendors' charts make them, one
// DaemonSet for all NodeTypes that need the same settings. For software that only its operator runs, it returns the objects
// that the operator reads. When one cluster cannot serve all NodeTypes the error is a *software.Conflict.
func Components(nodeTypes []software.NodeType) ([]software.Component, error) {
	ordered, err := sortUnique(nodeTypes)
	if err != nil {
		return nil, err
	}
	components, err := nvidia.Components(ordered)
	if err != nil {
		return nil, err
	}
	others, err := amd.Components(ordered)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(components, others...), func(c software.Component) bool { return len(c.Objects) == 0 }), nil
}

// Objects returns the objects of all Components.
func Objects(nodeTypes []software.NodeType) ([]*unstructured.Unstructured, error) {
	components, err := Components(nodeTypes)
	var out []*unstructured.Unstructured
	for _, c := range components {
		out = append(out, c.Objects...)
	}
	return out, err
}

// Notes names the software that neither Charts nor Components can provide: the device plugins and DRA drivers of generic accelerators.
func Notes(nodeTypes []software.NodeType) []string {
	var out []string
	for _, n := range software.SortByName(nodeTypes) {
		if n.GPU == nil || n.GPU.Vendor != v1alpha1.VendorGeneric {
			continue
		}
		what := "the device plugin that advertises "
		if resources := n.Plan.Expectation.Resources; len(resources) > 0 {
			what += string(resources[0].Name)
		}
		if s := n.Plan.Expectation.Slices; len(s) > 0 {
			what = "the DRA driver " + s[0].Driver
		}
		out = append(out, "NodeType "+n.Name+": "+what+" is yours to install: its DaemonSet must select nodes by "+v1alpha1.LabelNodeType+"="+n.Name+" or what you label them with, and tolerate "+n.GateTaint().Key+":NoSchedule")
	}
	return out
}

// sortUnique sorts the NodeTypes by name, and returns an error when two have the same name.
func sortUnique(nodeTypes []software.NodeType) ([]software.NodeType, error) {
	ordered := software.SortByName(nodeTypes)
	for i := range ordered {
		if i > 0 && ordered[i-1].Name == ordered[i].Name {
			return nil, fmt.Errorf("two NodeTypes have the name %s", ordered[i].Name)
		}
	}
	return ordered, nil
}

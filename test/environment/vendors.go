package environment

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// Vendors are the parts of the vendors' software that tenants of the samples' NodeTypes need.
func Vendors(samples []*unstructured.Unstructured) ([]software.Component, error) {
	images := map[string]v1alpha1.OSImageSpec{}
	var nodeTypes []*v1alpha1.NodeType
	for _, o := range samples {
		var err error
		switch o.GetKind() {
		case "OSImage":
			image := &v1alpha1.OSImage{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, image)
			images[image.Name] = image.Spec
		case "NodeType":
			nodeType := &v1alpha1.NodeType{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, nodeType)
			nodeTypes = append(nodeTypes, nodeType)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	var all []software.NodeType
	for _, n := range nodeTypes {
		image := images[n.Spec.OSImageRef.Name]
		plan, err := presentation.Resolve(spec.Request{GPU: n.Spec.GPU, Image: image, Resources: n.Spec.Resources})
		if err != nil {
			return nil, fmt.Errorf("NodeType %s: %w", n.Name, err)
		}
		all = append(all, software.NewNodeType(n, image, plan))
	}
	return tenantsoftware.Components(all)
}

package offline

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/plan/feasibility"
)

// NodeInputs are the objects that decide what a node is, as an API server would store them.
type NodeInputs struct {
	// NodeType of the node, and the OSImage that it names.
	NodeType *v1alpha1.NodeType
	Image    *v1alpha1.OSImage
	// Provider is the NodeProvider that the NodeType names; nil: the files do not have it, or ProviderRefusal is set.
	Provider *v1alpha1.NodeProvider
	// ProviderRefusal is why an API server would refuse the NodeProvider; nil: it would accept it.
	ProviderRefusal *RefusedError
}

// WriteWarning warns of a refused NodeProvider. Neither the plan nor the expectation depends on the NodeProvider.
func (in NodeInputs) WriteWarning(w io.Writer) error {
	if in.ProviderRefusal == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "ingot: warning: %v; the NodeProvider is left out here, and no API server would take it\n", in.ProviderRefusal)
	return err
}

// FindNodeInputs finds the NodeType of a name or, when the name is empty, the only one, with its OSImage and NodeProvider. Errors are
// *MissingError, *AmbiguousError and *RefusedError.
func (f Files) FindNodeInputs(nodeType string) (NodeInputs, error) {
	if nodeType == "" {
		var names []string
		for _, m := range f.Manifests {
			if m.Kind() == "NodeType" && m.APIVersion() == v1alpha1.GroupVersion.String() {
				names = append(names, m.Name())
			}
		}
		switch len(names) {
		case 0:
			return NodeInputs{}, &MissingError{Kind: "a NodeType", Files: f.Names}
		case 1:
			nodeType = names[0]
		default:
			return NodeInputs{}, &AmbiguousError{Kind: "NodeType", Names: names, Flag: "--nodetype"}
		}
	}
	s := NodeInputs{NodeType: &v1alpha1.NodeType{}, Image: &v1alpha1.OSImage{}, Provider: &v1alpha1.NodeProvider{}}
	if err := findObject(f, "NodeType", nodeType, "", s.NodeType); err != nil {
		return NodeInputs{}, err
	}
	spec := s.NodeType.Spec
	if err := findObject(f, "OSImage", spec.OSImageRef.Name, "NodeType "+nodeType+": spec.osImageRef", s.Image); err != nil {
		return NodeInputs{}, err
	}
	err := findObject(f, "NodeProvider", spec.ProviderRef.Name, "NodeType "+nodeType+": spec.providerRef", s.Provider)
	var missing *MissingError
	if errors.As(err, &missing) || errors.As(err, &s.ProviderRefusal) {
		s.Provider = nil
		return s, nil
	}
	return s, err
}

// CheckProvider returns an error when the files do not have the NodeProvider, or when an API server would refuse it.
func (f Files) CheckProvider(s NodeInputs) error {
	if s.ProviderRefusal != nil {
		return s.ProviderRefusal
	}
	if s.Provider != nil {
		return nil
	}
	return findObject(f, "NodeProvider", s.NodeType.Spec.ProviderRef.Name, "NodeType "+s.NodeType.Name+": spec.providerRef", &v1alpha1.NodeProvider{})
}

// FindMachine finds the Machine of a name. It returns the errors of FindNodeInputs.
func (f Files) FindMachine(name string) (*v1alpha1.Machine, error) {
	out := &v1alpha1.Machine{}
	return out, findObject(f, "Machine", name, "", out)
}

// FindTenant finds the TenantCluster of a name in a namespace. It returns the errors of FindNodeInputs.
func (f Files) FindTenant(namespace, name string) (*v1alpha1.TenantCluster, error) {
	out := &v1alpha1.TenantCluster{}
	within := f
	within.Manifests = slices.DeleteFunc(slices.Clone(f.Manifests), func(m Manifest) bool { return m.Namespace() != namespace })
	return out, findObject(within, "TenantCluster", name, "", out)
}

// IsURL says whether an OSImage's checksum is the URL of a checksum file, and not the checksum itself.
func IsURL(checksum string) bool { return strings.Contains(checksum, "://") }

// FindHost finds the BareMetalHost of a name. It returns the errors of FindNodeInputs.
func (f Files) FindHost(name string) (*metal3.BareMetalHost, error) {
	out := &metal3.BareMetalHost{}
	return out, findObject(f, "BareMetalHost", name, "", out)
}

// Plan returns what the node is told and what it must then advertise. The error is a *feasibility.Impossible, with which the manager
// would refuse the NodeType too.
func (in NodeInputs) Plan() (v1alpha1.NodePlan, error) {
	judged := feasibility.Check(in.feasibilityInputs())
	return judged.Plan, judged.Err()
}

// DocumentInput returns the part of a document's input that all nodes have in common. The caller adds the Machine, the host and the join.
func (in NodeInputs) DocumentInput(plan v1alpha1.NodePlan) cloudinit.Input {
	return in.feasibilityInputs().Documents(plan)
}

func (in NodeInputs) feasibilityInputs() feasibility.Inputs {
	return feasibility.Inputs{NodeType: in.NodeType, Image: in.Image, Provider: in.Provider}
}

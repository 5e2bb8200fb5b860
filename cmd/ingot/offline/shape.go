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

// Shape is what shapes a node, as an API server would store it.
type Shape struct {
	// NodeType of the node, and the OSImage that it names.
	NodeType *v1alpha1.NodeType
	Image    *v1alpha1.OSImage
	// Provider that the NodeType names; nil: the files do not have it, or Refused says what is wrong with it.
	Provider *v1alpha1.NodeProvider
	// Refused is why no API server would take the NodeProvider; nil: it would.
	Refused *RefusedError
}

// Tell warns of what is left out: neither the Plan nor the Expectation follows from the NodeProvider.
func (s Shape) Tell(w io.Writer) error {
	if s.Refused == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "ingot: warning: %v; the NodeProvider is left out here, and no API server would take it\n", s.Refused)
	return err
}

// ShapeOf finds the NodeType of that name or, without a name, the only one, with its OSImage and NodeProvider. Errors are
// *MissingError, *SeveralError and *RefusedError.
func (f Files) ShapeOf(nodeType string) (Shape, error) {
	if nodeType == "" {
		var names []string
		for _, m := range f.Manifests {
			if m.Kind() == "NodeType" && m.APIVersion() == v1alpha1.GroupVersion.String() {
				names = append(names, m.Name())
			}
		}
		switch len(names) {
		case 0:
			return Shape{}, &MissingError{Kind: "a NodeType", Files: f.Names}
		case 1:
			nodeType = names[0]
		default:
			return Shape{}, &SeveralError{Kind: "NodeType", Seen: names, Flag: "--nodetype"}
		}
	}
	s := Shape{NodeType: &v1alpha1.NodeType{}, Image: &v1alpha1.OSImage{}, Provider: &v1alpha1.NodeProvider{}}
	if err := find(f, "NodeType", nodeType, "", s.NodeType); err != nil {
		return Shape{}, err
	}
	spec := s.NodeType.Spec
	if err := find(f, "OSImage", spec.OSImageRef.Name, "NodeType "+nodeType+": spec.osImageRef", s.Image); err != nil {
		return Shape{}, err
	}
	err := find(f, "NodeProvider", spec.ProviderRef.Name, "NodeType "+nodeType+": spec.providerRef", s.Provider)
	var missing *MissingError
	if errors.As(err, &missing) || errors.As(err, &s.Refused) {
		s.Provider = nil
		return s, nil
	}
	return s, err
}

// Needs is an error when the files do not have the NodeProvider, or one that no API server would take.
func (f Files) Needs(s Shape) error {
	if s.Refused != nil {
		return s.Refused
	}
	if s.Provider != nil {
		return nil
	}
	return find(f, "NodeProvider", s.NodeType.Spec.ProviderRef.Name, "NodeType "+s.NodeType.Name+": spec.providerRef", &v1alpha1.NodeProvider{})
}

// Machine finds the Machine of that name. Errors as of ShapeOf.
func (f Files) Machine(name string) (*v1alpha1.Machine, error) {
	out := &v1alpha1.Machine{}
	return out, find(f, "Machine", name, "", out)
}

// Tenant finds the TenantCluster of that name in a namespace. Errors as of ShapeOf.
func (f Files) Tenant(namespace, name string) (*v1alpha1.TenantCluster, error) {
	out := &v1alpha1.TenantCluster{}
	within := f
	within.Manifests = slices.DeleteFunc(slices.Clone(f.Manifests), func(m Manifest) bool { return m.Namespace() != namespace })
	return out, find(within, "TenantCluster", name, "", out)
}

// IsURL says whether an OSImage's checksum is where a checksum file lies, and not the checksum itself.
func IsURL(checksum string) bool { return strings.Contains(checksum, "://") }

// Host finds the BareMetalHost of that name. Errors as of ShapeOf.
func (f Files) Host(name string) (*metal3.BareMetalHost, error) {
	out := &metal3.BareMetalHost{}
	return out, find(f, "BareMetalHost", name, "", out)
}

// Plan is what the node must be told and what it then advertises. The error is a *feasibility.Impossible: the manager would
// refuse the NodeType with the same words.
func (s Shape) Plan() (v1alpha1.NodePlan, error) {
	judged := feasibility.Check(s.inputs())
	return judged.Plan, judged.Err()
}

// Input is what the documents of every node follow from. Machine, host and join are the caller's to add.
func (s Shape) Input(plan v1alpha1.NodePlan) cloudinit.Input { return s.inputs().Documents(plan) }

func (s Shape) inputs() feasibility.Inputs {
	return feasibility.Inputs{NodeType: s.NodeType, Image: s.Image, Provider: s.Provider}
}

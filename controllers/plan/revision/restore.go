package revision

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// UnrestorableError: a NodeType cannot be set back to a revision by a change of the NodeType alone.
type UnrestorableError struct {
	// Reason says what else has changed since.
	Reason string
}

// Error says what has changed.
func (e *UnrestorableError) Error() string { return e.Reason }

// Restore is the NodeType's spec with what a revision froze of it put back, and all else as it is. The inputs are as they
// are now, with the OSImage that the revision names. What the NodeProvider gave is kept in the revision and needs no
// restoring. When the NodeType would give something else than it did, because sshKeys went from it to the provider or the
// OSImage is another, the error is an *UnrestorableError.
func Restore(in Inputs, revision *v1alpha1.NodeTypeRevision) (v1alpha1.NodeTypeSpec, error) {
	to := revision.Spec
	restored := in.NodeType.DeepCopy()
	spec := &restored.Spec
	spec.OSImageRef.Name, spec.GPU, spec.UserData, spec.Properties = to.Image.Name, to.GPU.DeepCopy(), "", nil
	if len(to.Properties) == 2 {
		spec.Properties = maps.Clone(to.Properties[1])
	}
	if len(to.UserData) == 2 {
		spec.UserData = to.UserData[1]
	}
	spec.SSHKeys = slices.DeleteFunc(slices.Clone(to.SSHKeys), func(key string) bool { return slices.Contains(in.Provider.Spec.SSHKeys, key) })
	own, err := OwnDigest(Inputs{NodeType: restored, Image: in.Image})
	if err != nil {
		return v1alpha1.NodeTypeSpec{}, err
	}
	if own != revision.Annotations[v1alpha1.AnnotationInputs] {
		return v1alpha1.NodeTypeSpec{}, &UnrestorableError{Reason: fmt.Sprintf(
			"what it gave to the revision cannot be told from what NodeProvider %s gave: set the NodeType back by hand, and compare sshKeys and the checksum of OSImage %s with the revision's", in.Provider.Name, in.Image.Name)}
	}
	return *spec, nil
}

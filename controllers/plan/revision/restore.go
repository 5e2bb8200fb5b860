package revision

import (
	"fmt"
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
// are now, with the OSImage that the revision names. When that would make another revision, because the NodeProvider
// changed since, the error is an *UnrestorableError.
func Restore(in Inputs, to v1alpha1.NodeTypeRevisionSpec) (v1alpha1.NodeTypeSpec, error) {
	restored := in.NodeType.DeepCopy()
	spec := &restored.Spec
	spec.OSImageRef.Name, spec.GPU, spec.UserData = to.Image.Name, to.GPU.DeepCopy(), ""
	if len(to.UserData) == 2 {
		spec.UserData = to.UserData[1]
	}
	spec.SSHKeys = slices.DeleteFunc(slices.Clone(to.SSHKeys), func(key string) bool { return slices.Contains(in.Provider.Spec.SSHKeys, key) })
	now, err := Build(Inputs{NodeType: restored, Provider: in.Provider, Image: in.Image})
	if err != nil {
		return v1alpha1.NodeTypeSpec{}, err
	}
	same, err := equal(now, to)
	if err != nil {
		return v1alpha1.NodeTypeSpec{}, err
	}
	if !same {
		return v1alpha1.NodeTypeSpec{}, &UnrestorableError{Reason: fmt.Sprintf(
			"NodeProvider %s or OSImage %s is not what it was: compare its network, sshKeys and userData, and the image's checksum, with the revision's", in.Provider.Name, in.Image.Name)}
	}
	return *spec, nil
}

func equal(a, b v1alpha1.NodeTypeRevisionSpec) (bool, error) {
	first, err := Digest(a)
	if err != nil {
		return false, err
	}
	second, err := Digest(b)
	return first == second, err
}

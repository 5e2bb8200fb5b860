package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// HashVersion is the version of the encoding from whose digest new revisions are named.
const HashVersion = 1

const (
	// digestDigits is how many hex digits of the digest are in a name: 40 bits, for the ten revisions that a NodeType keeps.
	digestDigits = 10
	// maxName is the maximum length of a label's value: a Node has the name of its revision in a label.
	maxName = 63
	// nameHashDigits is the number of hex digits that distinguish NodeTypes whose names are cut.
	nameHashDigits = 8
)

// Inputs are the objects that shape a node.
type Inputs struct {
	// NodeType whose revision is made.
	NodeType *v1alpha1.NodeType
	// Provider is the NodeProvider of spec.providerRef.
	Provider *v1alpha1.NodeProvider
	// Image is the OSImage of spec.osImageRef; its status pins the checksum.
	Image *v1alpha1.OSImage
}

// UnpinnedError reports that the checksum of the OSImage has not been resolved.
type UnpinnedError struct {
	// Image is the OSImage's name.
	Image string
}

// Error says which field is missing.
func (e *UnpinnedError) Error() string {
	return fmt.Sprintf("OSImage %s: its checksum is not pinned in status.checksum yet", e.Image)
}

// Build returns the spec of the revision. UserData and Properties have either no layers, or two: the NodeProvider's and the
// NodeType's, one of which may be empty. The error is an *UnpinnedError.
func Build(in Inputs) (v1alpha1.NodeTypeRevisionSpec, error) {
	if in.Image.Status.Checksum == "" {
		return v1alpha1.NodeTypeRevisionSpec{}, &UnpinnedError{Image: in.Image.Name}
	}
	spec := v1alpha1.NodeTypeRevisionSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: in.NodeType.Name},
		Image: v1alpha1.RevisionImage{
			Name: in.Image.Name, Checksum: in.Image.Status.Checksum, Format: in.Image.Spec.Format, UserData: in.Image.Spec.UserData,
		},
		GPU:         in.NodeType.Spec.GPU.DeepCopy(),
		Network:     in.Provider.Spec.Network.DeepCopy(),
		SSHKeys:     v1alpha1.AuthorizedKeys(in.Provider.Spec.SSHKeys, in.NodeType.Spec.SSHKeys),
		Kubelet:     in.NodeType.Spec.Kubelet.DeepCopy(),
		Containerd:  in.Provider.Spec.Containerd.DeepCopy(),
		HashVersion: HashVersion,
	}
	if len(containerdV1(spec.Containerd)) == 0 {
		spec.Containerd = nil
	}
	if !hasMembers(spec.Kubelet) {
		spec.Kubelet = nil
	}
	if spec.Image.UserData == "" {
		spec.Image.UserData = v1alpha1.UserDataCloudInit
	}
	if layers := []string{in.Provider.Spec.UserData, in.NodeType.Spec.UserData}; layers[0] != "" || layers[1] != "" {
		spec.UserData = layers
	}
	if provider, nodeType := in.Provider.Spec.Properties, in.NodeType.Spec.Properties; len(provider) > 0 || len(nodeType) > 0 {
		spec.Properties = []map[string]string{nonNilCopy(provider), nonNilCopy(nodeType)}
	}
	return spec, nil
}

// nonNilCopy returns a copy that is not nil, because the API server drops items of a list that are null.
func nonNilCopy(m map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	return out
}

// Digest returns the SHA-256 of the revision's canonical form, as hex digits, in the encoding of the revision's hash version. The
// hash version of a newer Ingot is an error.
func Digest(spec v1alpha1.NodeTypeRevisionSpec) (string, error) {
	if spec.HashVersion != 1 {
		return "", fmt.Errorf("hash version %d is not known to this version of Ingot", spec.HashVersion)
	}
	canonical, err := json.Marshal(encodeV1(spec))
	if err != nil {
		return "", fmt.Errorf("encode the revision: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// OwnDigest returns the digest of what the NodeType contributes to its revision, including the image: the digest of the revision
// with an empty NodeProvider. The errors are those of Build and Digest.
func OwnDigest(in Inputs) (string, error) {
	spec, err := Build(Inputs{NodeType: in.NodeType, Provider: &v1alpha1.NodeProvider{}, Image: in.Image})
	if err != nil {
		return "", err
	}
	return Digest(spec)
}

// Name returns the name of a NodeType's revision: the NodeType's name and the beginning of the digest, at most 63 bytes.
func Name(nodeType, digest string) string {
	room := maxName - digestDigits - 1
	if len(nodeType) > room {
		sum := sha256.Sum256([]byte(nodeType))
		nodeType = strings.TrimRight(nodeType[:room-nameHashDigits-1], ".") + "-" + hex.EncodeToString(sum[:])[:nameHashDigits]
	}
	return nodeType + "-" + digest[:min(len(digest), digestDigits)]
}

// UnrestorableError reports that a change of the NodeType alone cannot set it back to a revision.
type UnrestorableError struct {
	// Reason says what else has changed since the revision was made.
	Reason string
}

// Error returns the reason.
func (e *UnrestorableError) Error() string { return e.Reason }

// Restore returns the NodeType's spec with everything that the revision contains set back, and all other fields as they are. The
// inputs are the current objects, with the OSImage that the revision names. What the NodeProvider contributed is stored in
// the revision and needs no restoring. The error is an *UnrestorableError if the restored NodeType would contribute
// something else to the revision than it did: an SSH key has moved from it to the provider, or the OSImage is another one.
func Restore(in Inputs, revision *v1alpha1.NodeTypeRevision) (v1alpha1.NodeTypeSpec, error) {
	to := revision.Spec
	restored := in.NodeType.DeepCopy()
	spec := &restored.Spec
	spec.OSImageRef.Name, spec.GPU, spec.UserData, spec.Properties = to.Image.Name, to.GPU.DeepCopy(), "", nil
	spec.Kubelet = to.Kubelet.DeepCopy()
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

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

// HashVersion is the version of the encoding that new revisions are named by.
const HashVersion = 1

const (
	// digestLength of the hex digits in a name: 40 bits, for the ten revisions that one NodeType keeps.
	digestDigits = 10
	// maxName is the limit of a label's value: a Node carries the name of its revision.
	maxName = 63
	// nameHash hex digits tell apart NodeTypes whose names must be cut.
	nameHashDigits = 8
)

// Inputs are the objects that shape a node.
type Inputs struct {
	// NodeType that is snapshotted.
	NodeType *v1alpha1.NodeType
	// Provider is the NodeProvider of spec.providerRef.
	Provider *v1alpha1.NodeProvider
	// Image is the OSImage of spec.osImageRef; its status pins the checksum.
	Image *v1alpha1.OSImage
}

// UnpinnedError: the OSImage's checksum has not been resolved.
type UnpinnedError struct {
	// Image is the OSImage's name.
	Image string
}

// Error says what is awaited.
func (e *UnpinnedError) Error() string {
	return fmt.Sprintf("OSImage %s: its checksum is not pinned in status.checksum yet", e.Image)
}

// Build makes the snapshot. UserData and Properties have two layers, the provider's and the NodeType's, either of which may
// be empty, or none. The error is an *UnpinnedError.
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
		SSHKeys:     union(in.Provider.Spec.SSHKeys, in.NodeType.Spec.SSHKeys),
		HashVersion: HashVersion,
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

// copied is never nil: the API server drops members of a list that are null.
func nonNilCopy(m map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	return out
}

// unique joins two lists in order, without what is there already.
func union(first, second []string) []string {
	var all []string
	for _, key := range slices.Concat(first, second) {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// Digest is the hex SHA-256 of the snapshot's canonical form, in the encoding of its own hash version. An unknown
// hash version, one of a newer Ingot, is an error.
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

// OwnDigest is the digest of what the NodeType itself gives to its revision, the image included: the snapshot as if the
// NodeProvider gave nothing. Errors as of Build and Digest.
func OwnDigest(in Inputs) (string, error) {
	spec, err := Build(Inputs{NodeType: in.NodeType, Provider: &v1alpha1.NodeProvider{}, Image: in.Image})
	if err != nil {
		return "", err
	}
	return Digest(spec)
}

// Name of the revision of a NodeType: its name and the beginning of the digest, at most 63 bytes.
func Name(nodeType, digest string) string {
	room := maxName - digestDigits - 1
	if len(nodeType) > room {
		sum := sha256.Sum256([]byte(nodeType))
		nodeType = strings.TrimRight(nodeType[:room-nameHashDigits-1], ".") + "-" + hex.EncodeToString(sum[:])[:nameHashDigits]
	}
	return nodeType + "-" + digest[:min(len(digest), digestDigits)]
}

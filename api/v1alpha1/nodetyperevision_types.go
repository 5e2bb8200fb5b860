package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeTypeRevisionSpec is the part of a NodeType that shapes a node, as it was. It never changes.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: change the NodeType, which makes a new revision"
type NodeTypeRevisionSpec struct {
	// nodeTypeRef names the NodeType.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// image as it was resolved.
	// +required
	Image RevisionImage `json:"image"`
	// gpu as in the NodeType.
	// +optional
	GPU *GPUSpec `json:"gpu,omitempty"`
	// userData layers in order: provider, node type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=131072
	UserData []string `json:"userData,omitempty"`
	// properties in order: those of the provider, of the node type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Properties []map[string]string `json:"properties,omitempty"`
	// network of the provider.
	// +optional
	Network *NetworkSpec `json:"network,omitempty"`
	// sshKeys of provider and node type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=8192
	SSHKeys []string `json:"sshKeys,omitempty"`
	// kubelet as in the NodeType: members of KubeletConfiguration.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	Kubelet *runtime.RawExtension `json:"kubelet,omitempty"`
	// containerd of the provider.
	// +optional
	Containerd *ContainerdSpec `json:"containerd,omitempty"`
	// hashVersion of the digest that names this revision.
	// +required
	// +kubebuilder:validation:Minimum=1
	HashVersion int32 `json:"hashVersion"`
}

// RevisionImage is an OSImage as it was resolved.
type RevisionImage struct {
	// name of the OSImage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// checksum pinned: sha256:HEX or sha512:HEX.
	// +required
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`
	Checksum string `json:"checksum"`
	// format of the file:
	//   - raw: not compressed.
	//   - raw.gz: a raw image compressed with gzip.
	//   - raw.zst: a raw image compressed with Zstandard.
	//   - qcow2: the format of QEMU's copy-on-write images.
	//   - live-iso: a bootable ISO that servers run from by virtual media; nothing is written to a disk.
	//
	// +required
	Format ImageFormat `json:"format"`
	// userData is how the image reads its user data:
	//   - CloudInit: by cloud-init, as a #cloud-config document.
	//   - Ignition: by Ignition, as an Ignition configuration.
	//
	// +required
	UserData UserDataKind `json:"userData"`
}

// NodeTypeRevisionStatus says who uses it.
type NodeTypeRevisionStatus struct {
	// usedBy says what depends on it. It cannot be deleted before that is gone; see config/policy/README.md.
	// +optional
	UsedBy *UsedBy `json:"usedBy,omitempty"`
}

// NodeTypeRevision is an immutable snapshot of the part of a NodeType that shapes a node.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ntr,categories=ingot
// +kubebuilder:printcolumn:name="NodeType",type=string,JSONPath=".spec.nodeTypeRef.name"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=".spec.image.name"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=".spec.gpu.presentation.mode"
// +kubebuilder:printcolumn:name="Used-By",type=integer,JSONPath=".status.usedBy.count"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type NodeTypeRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeTypeRevisionSpec `json:"spec"`
	// +optional
	Status NodeTypeRevisionStatus `json:"status,omitempty"`
}

// NodeTypeRevisionList is a list of NodeTypeRevisions.
// +kubebuilder:object:root=true
type NodeTypeRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeTypeRevision `json:"items"`
}

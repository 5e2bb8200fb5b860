package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RenderingEncoding is the encoding of the NodeTypeRenderings that this version writes. A version reads every encoding up to
// its own; golden files of each are kept beside the tests of controllers/plan/rendering.
const RenderingEncoding int32 = 1

// RenderedRevision is exactly what a node is installed with: a NodeTypeRevision and one NodeTypeRendering of it. The zero value
// stands for none.
type RenderedRevision struct {
	// Revision names the NodeTypeRevision.
	Revision string
	// Rendering names the NodeTypeRendering.
	Rendering string
}

// IsZero says whether it names nothing.
func (r RenderedRevision) IsZero() bool { return r == RenderedRevision{} }

// NodeTypeRenderingSpec is what one version of Ingot made of a revision. It never changes.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: run ingot rollout refresh, which makes a new rendering"
type NodeTypeRenderingSpec struct {
	// revisionRef names the NodeTypeRevision.
	// +required
	RevisionRef LocalReference `json:"revisionRef"`
	// encoding of plan: the meaning of its members. A member that is absent asks nothing of the node and promises nothing.
	// +required
	// +kubebuilder:validation:Minimum=1
	Encoding int32 `json:"encoding"`
	// plan of a node: what its operating system is told, and what it must then advertise. The resources that a NodeType declares
	// are not in it: they are added where the plan is used.
	// +required
	Plan NodePlan `json:"plan"`
}

// NodeTypeRendering is what one version of Ingot made of a NodeTypeRevision, once and for all: Machines are installed from it and
// judged by it, whatever version runs later. Its name is the revision's and a digest of the plan.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ntrend,categories=ingot
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=".spec.revisionRef.name"
// +kubebuilder:printcolumn:name="Encoding",type=integer,JSONPath=".spec.encoding"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type NodeTypeRendering struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeTypeRenderingSpec `json:"spec"`
}

// NodeTypeRenderingList is a list of NodeTypeRenderings.
// +kubebuilder:object:root=true
type NodeTypeRenderingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeTypeRendering `json:"items"`
}

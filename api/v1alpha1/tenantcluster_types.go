package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TenantCluster's conditions: Ready.
//
// Reasons of TenantCluster's Ready condition.
const (
	// ReasonKubeconfigMissing: the Secret, or its key kubeconfig, does not exist.
	ReasonKubeconfigMissing = "KubeconfigMissing"
	// ReasonKubeconfigDenied: nobody has given Ingot the right to read Secrets in this namespace.
	ReasonKubeconfigDenied = "KubeconfigDenied"
	// ReasonKubeconfigInvalid: the kubeconfig does not parse, or names no cluster or user.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigUnsafe: the kubeconfig runs programs, reads files of the manager's, uses a proxy or skips verification.
	ReasonKubeconfigUnsafe = "KubeconfigUnsafe"
	// ReasonTenantUnreachable: the tenant's API server does not answer.
	ReasonTenantUnreachable = "TenantUnreachable"
	// ReasonTenantUnauthorized: the tenant's API server refuses the credentials.
	ReasonTenantUnauthorized = "TenantUnauthorized"
	// ReasonTenantTooLarge: the tenant's API server sends, or the manager would keep of its cluster, more than tenants.memory in the
	// manager's configuration allows, for it or for all TenantClusters of its namespace, or than all tenants may have. The cluster is not used, and is tried again at growing intervals.
	ReasonTenantTooLarge = "TenantTooLarge"
	// ReasonJoinUnsupported: this version does not know that join method.
	ReasonJoinUnsupported = "JoinUnsupported"
	// ReasonClusterChanged: another cluster answers than the one that the Machines joined. Nothing is drained, tainted or deleted there.
	ReasonClusterChanged = "ClusterChanged"
	// ReasonClusterUnknown: the API server answers, and the kubeconfig's user may not read which cluster it is. Ready is True: what depends on it is
	// which hosts go back to the tenant without the erase that another one needs.
	ReasonClusterUnknown = "ClusterUnknown"
	// ReasonMachinesRemain: the TenantCluster is being deleted, and is kept with its kubeconfig for the Machines that still
	// refer to it; the message names them.
	ReasonMachinesRemain = "MachinesRemain"
)

// MaxClusterUID is the highest length of the uid of a cluster, in bytes.
const MaxClusterUID = 128

// TenantClusterSpec is a Kubernetes cluster that nodes join.
type TenantClusterSpec struct {
	// kubeconfigSecretRef names a Secret in this namespace whose key kubeconfig holds the cluster's kubeconfig.
	// +required
	KubeconfigSecretRef LocalReference `json:"kubeconfigSecretRef"`
	// join is how nodes join.
	// +required
	Join JoinSpec `json:"join"`
}

// JoinSpec is how nodes join.
// +kubebuilder:validation:XValidation:rule="[has(self.tlsBootstrap), has(self.kubeadm), has(self.vcluster), has(self.script)].filter(x, x).size() == 1",message="set exactly one of tlsBootstrap, kubeadm, vcluster, script"
type JoinSpec struct {
	// tlsBootstrap: kubelet obtains its certificate with a bootstrap token.
	// +optional
	TLSBootstrap *EndpointJoin `json:"tlsBootstrap,omitempty"`
	// kubeadm: kubeadm join.
	// +optional
	Kubeadm *EndpointJoin `json:"kubeadm,omitempty"`
	// vcluster: the join script of a vCluster.
	// +optional
	VCluster *EndpointJoin `json:"vcluster,omitempty"`
	// script: a command of the tenant's own.
	// +optional
	Script *ScriptJoin `json:"script,omitempty"`
}

// EndpointJoin joins at an API endpoint.
type EndpointJoin struct {
	// endpoint of the API server as nodes reach it; absent: the kubeconfig's server.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://')",message="endpoint must begin with https://"
	Endpoint string `json:"endpoint,omitempty"`
}

// ScriptJoin runs a command of the tenant's own.
type ScriptJoin struct {
	// secretRef names a Secret in this namespace whose key script is run at the first boot.
	// +required
	SecretRef LocalReference `json:"secretRef"`
}

// TenantClusterStatus is what was found at the tenant's API server.
type TenantClusterStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// version of the API server.
	// +optional
	Version string `json:"version,omitempty"`
	// clusterUID identifies the cluster: the uid of its Namespace kube-system. It is absent until that could be read. While Machines refer to the
	// TenantCluster, another cluster behind its kubeconfig is not accepted.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// machines that refer to this cluster.
	// +optional
	// +default=0
	Machines int32 `json:"machines"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TenantCluster is a Kubernetes cluster that nodes join.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tc,categories=ingot
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=".status.machines"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type TenantCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TenantClusterSpec `json:"spec"`
	// +optional
	Status TenantClusterStatus `json:"status,omitempty"`
}

// TenantClusterList is a list of TenantClusters.
// +kubebuilder:object:root=true
type TenantClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantCluster `json:"items"`
}

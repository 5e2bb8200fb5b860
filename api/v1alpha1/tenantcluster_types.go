package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TenantCluster's conditions: Ready, and ServingCertificatesApproved (see ServingCertificates).
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
	// ReasonJoinUnsupported: nodes cannot join in that way, such as by kubeadm at an endpoint with a path. Those that have joined are drained and released
	// as before.
	ReasonJoinUnsupported = "JoinUnsupported"
	// ReasonJoinScriptMissing: the Secret of join.script, or its key script, does not exist or may not be read. New nodes wait for it.
	ReasonJoinScriptMissing = "JoinScriptMissing"
	// ReasonJoinScriptInvalid: the script of join.script could not run on a node. New nodes wait for another one.
	ReasonJoinScriptInvalid = "JoinScriptInvalid"
	// ReasonKubeletUnsupported: of a Machine or a NodePool whose NodeType has settings of kubelet, which the join cannot apply.
	ReasonKubeletUnsupported = "KubeletUnsupported"
	// ReasonClusterChanged: another cluster answers than the one that the Machines joined. Nothing is drained, tainted or deleted there.
	ReasonClusterChanged = "ClusterChanged"
	// ReasonClusterUnknown: the API server answers, and the kubeconfig's user may not read which cluster it is. Ready is True: what depends on it is
	// which hosts go back to the tenant without the erase that another one needs.
	ReasonClusterUnknown = "ClusterUnknown"
	// ReasonMachinesRemain: the TenantCluster is being deleted, and is kept with its kubeconfig for the Machines that still
	// refer to it; the message names them.
	ReasonMachinesRemain = "MachinesRemain"
	// ReasonEntitlementsRemain: the same for Entitlements, whose objects in the cluster are removed with the kubeconfig.
	ReasonEntitlementsRemain = "EntitlementsRemain"
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
	// clusterDNS are the addresses of the DNS server that pods on the nodes use; absent: what status.clusterDNS was found to be. A change reaches a node
	// with its next installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="clusterDNS: each must be an IP address, such as 10.96.0.10"
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// clusterDomain is the DNS domain of the cluster; absent: that of status.clusterDNS, or cluster.local.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// nodeNetworks are the networks in which a node's own address is, on servers with several: one for each family, the preferred one first, such as
	// 10.20.0.0/16. The kubelet of a node that has no address there does not start, and tries again. Absent: the address of the default route. A change
	// reaches a node with its next installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.all(n, isCIDR(n) && cidr(n) == cidr(n).masked())",message="nodeNetworks: each must be a network, such as 10.20.0.0/16"
	// +kubebuilder:validation:XValidation:rule="!self.all(n, isCIDR(n)) || self.size() < 2 || cidr(self[0]).ip().family() != cidr(self[1]).ip().family()",message="nodeNetworks: two must be of IPv4 and IPv6"
	NodeNetworks []string `json:"nodeNetworks,omitempty"`
	// servingCertificates says which certificates the kubelets serve logs, exec and metrics with; absent: SelfSigned. Requests are approved as soon as it is
	// ApprovedByIngot; a change reaches the kubelet of a node with its next installation.
	//   - SelfSigned: each kubelet makes its own, which nobody can verify, unless kubeadm joins it and the cluster's kubelet-config says otherwise.
	//   - ApprovedByIngot: each kubelet requests one of the cluster (serverTLSBootstrap). Ingot approves a request when its node name and addresses are those
	//     that Ingot knows of the Machine, and leaves every other one to the cluster's administrators. The kubeconfig's user needs the rights that ingot
	//     tenant add --serving-certificates --tenant-side prints.
	//
	// +optional
	// +kubebuilder:validation:Enum=SelfSigned;ApprovedByIngot
	ServingCertificates ServingCertificates `json:"servingCertificates,omitempty"`
}

// ClusterDNS is the DNS that pods of a cluster use.
type ClusterDNS struct {
	// addresses of the DNS server.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
	// domain of the cluster.
	// +optional
	Domain string `json:"domain,omitempty"`
}

// JoinSpec is how nodes join.
// +kubebuilder:validation:XValidation:rule="[has(self.tlsBootstrap), has(self.kubeadm), has(self.vcluster), has(self.script)].filter(x, x).size() == 1",message="set exactly one of tlsBootstrap, kubeadm, vcluster, script"
type JoinSpec struct {
	// tlsBootstrap: kubelet obtains its certificate with a bootstrap token.
	// +optional
	TLSBootstrap *EndpointJoin `json:"tlsBootstrap,omitempty"`
	// kubeadm: the image's /usr/bin/kubeadm joins the node, with discovery by a bootstrap token and the hash of the kubeconfig's certificate authority. The
	// cluster publishes kube-public/cluster-info, and its kubeadm-config and kubelet-config, as kubeadm makes them. Nodes then use the server that
	// cluster-info names.
	// +optional
	Kubeadm *EndpointJoin `json:"kubeadm,omitempty"`
	// vcluster: a vCluster with private nodes, which is joined by kubeadm as its own `vcluster token create --kubeadm` says: the token has vCluster's
	// labels, and the certificate authority is verified. No script is fetched.
	// +optional
	VCluster *EndpointJoin `json:"vcluster,omitempty"`
	// script: a script of the tenant's own, for agents that start kubelet themselves, such as those of K3s and RKE2.
	// +optional
	Script *ScriptJoin `json:"script,omitempty"`
	// providerID says who sets the providerID of the nodes; absent: Ingot. Nodes that have joined keep theirs, and a change reaches a node with its next
	// installation.
	//   - Ingot: each kubelet registers with the providerID of its installation, by which its Node is known.
	//   - Cluster: the cluster's own cloud provider does, as that of a vCluster can. Each kubelet registers without one, and its Node is known by its name,
	//     by the system UUID that Ingot's agent read from DMI, and by the label ingot.dev/installation with which kubelet registers. Hosts of a metal3 NodeProvider are refused: no agent runs there.
	//
	// +optional
	// +kubebuilder:validation:Enum=Ingot;Cluster
	ProviderID ProviderIDSource `json:"providerID,omitempty"`
}

// ProviderIDSource says who sets the providerID of a Node.
type ProviderIDSource string

// Who sets providerIDs.
const (
	// ProviderIDByIngot means that kubelet registers with the one of its installation.
	ProviderIDByIngot ProviderIDSource = "Ingot"
	// ProviderIDByCluster means that the tenant's cluster sets them.
	ProviderIDByCluster ProviderIDSource = "Cluster"
)

// JoinMethod is a way to join. Its values are the fields of JoinSpec.
type JoinMethod string

// The methods.
const (
	// JoinTLSBootstrap is that of the field tlsBootstrap.
	JoinTLSBootstrap JoinMethod = "tlsBootstrap"
	// JoinKubeadm is that of the field kubeadm.
	JoinKubeadm JoinMethod = "kubeadm"
	// JoinVCluster is that of the field vcluster.
	JoinVCluster JoinMethod = "vcluster"
	// JoinScript is that of the field script.
	JoinScript JoinMethod = "script"
)

// IsKubeadm reports whether kubeadm joins the node.
func (m JoinMethod) IsKubeadm() bool { return m == JoinKubeadm || m == JoinVCluster }

// Method returns the method that is set.
func (j JoinSpec) Method() JoinMethod {
	switch {
	case j.Kubeadm != nil:
		return JoinKubeadm
	case j.VCluster != nil:
		return JoinVCluster
	case j.Script != nil:
		return JoinScript
	}
	return JoinTLSBootstrap
}

// Endpoint returns the endpoint that nodes are given; empty: the kubeconfig's server.
func (j JoinSpec) Endpoint() string {
	for _, e := range []*EndpointJoin{j.TLSBootstrap, j.Kubeadm, j.VCluster} {
		if e != nil {
			return e.Endpoint
		}
	}
	if j.Script != nil {
		return j.Script.Endpoint
	}
	return ""
}

// EndpointJoin joins at an API endpoint.
type EndpointJoin struct {
	// endpoint of the API server as nodes reach it; absent: the kubeconfig's server.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://')",message="endpoint must begin with https://"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('https://') || isURL(self) && url(self).getHostname() != '' && !self.contains('@')",message="endpoint must be a URL such as https://tenant.example.com:6443, without a user"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https://(169[.]254[.][0-9]+[.][0-9]+(:|/|$)|[[]([fF][eE][89abAB]|[^]]*(%|:169[.]254[.])))')",message="endpoint must not be link-local: such an address leads to another machine from every network; name the address or the host name that nodes reach"
	Endpoint string `json:"endpoint,omitempty"`
}

// JoinScriptKey is the key of the Secret that has the script of a join.
const JoinScriptKey = "script"

// ScriptJoin runs a script of the tenant's own on the node, as root, until it succeeds once. It finds what it needs in its environment, whose variables
// package cloudinit/kubelet/script documents; they have a bootstrap token that is made for this node, is short-lived and is deleted at the join.
type ScriptJoin struct {
	EndpointJoin `json:",inline"`
	// secretRef names a Secret in this namespace whose key script is run at the first boot. A change reaches a node with its next installation.
	// +required
	SecretRef LocalReference `json:"secretRef"`
	// readsKubeletConfigDir says that the script has kubelet read the directory of settings that it is told, INGOT_KUBELET_CONFIG_DIR, as with
	// --config-dir. Without it spec.kubelet of a NodeType is refused.
	// +optional
	ReadsKubeletConfigDir bool `json:"readsKubeletConfigDir,omitempty"`
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
	// clusterDNS is the DNS that was found in the cluster: what the ConfigMap kube-system/kubelet-config gives to kubelets, or the address of the Service
	// kube-system/kube-dns. It stays while the cluster cannot be asked.
	// +optional
	ClusterDNS *ClusterDNS `json:"clusterDNS,omitempty"`
	// machines that refer to this cluster.
	// +optional
	// +default=0
	Machines int32 `json:"machines"`
	// conditions: Ready; ServingCertificatesApproved where spec.servingCertificates is ApprovedByIngot.
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

// NodeDNS returns the DNS that nodes are installed with: that of the spec, and what the spec leaves out as it was found.
func (t *TenantCluster) NodeDNS() ClusterDNS {
	var out ClusterDNS
	if t.Status.ClusterDNS != nil {
		out = *t.Status.ClusterDNS
	}
	if len(t.Spec.ClusterDNS) > 0 {
		out.Addresses = t.Spec.ClusterDNS
	}
	if t.Spec.ClusterDomain != "" {
		out.Domain = t.Spec.ClusterDomain
	}
	if len(out.Addresses) > 0 && out.Domain == "" {
		out.Domain = "cluster.local"
	}
	return out
}

// TenantClusterList is a list of TenantClusters.
// +kubebuilder:object:root=true
type TenantClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantCluster `json:"items"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// KeyNetworkData is the key of a claim Secret that has the network data of the node.
const KeyNetworkData = "networkData"

// Reasons of Machine's conditions that the host of a metal3 provider gives.
const (
	// ReasonHostDelayed, ReasonHostServicing: the baremetal-operator of a metal3 provider has the host wait for others, or changes its firmware.
	ReasonHostDelayed   = "HostDelayed"
	ReasonHostServicing = "HostServicing"
	// ReasonHostDeleting: the BareMetalHost of a metal3 provider is being deleted under the Machine; its baremetal-operator removes the image.
	ReasonHostDeleting = "HostDeleting"
	// ReasonCleaningChanged: of an event about the host of a metal3 provider. Somebody changed the cleaning mode that Ingot had set to disabled.
	ReasonCleaningChanged = "CleaningChanged"
	// ReasonPowerOffDisabled: the host of a metal3 provider has spec.disablePowerOff, so that neither a roll nor a release nor a power-off goes on.
	ReasonPowerOffDisabled = "PowerOffDisabled"
)

// ClaimSecretName returns the name of the claim Secret of a host, which is in the host's namespace.
func ClaimSecretName(host string) string { return host + "-claim" }

// MachineReference names a Machine, for ever.
type MachineReference struct {
	// namespace of the Machine.
	// +required
	Namespace string `json:"namespace"`
	// name of the Machine.
	// +required
	Name string `json:"name"`
	// uid of the Machine.
	// +required
	UID types.UID `json:"uid"`
}

// MachineGone is a claim whose Machine does not exist any more.
type MachineGone struct {
	// uid of the Machine that is gone, as in the host's spec.consumerRef.
	// +required
	UID types.UID `json:"uid"`
	// otherUID is that of the Machine that has its name now; absent while there is none. A Machine that was made anew has another uid, and so
	// have all of them after a restore that creates objects, which is not one of the store (etcd).
	// +optional
	OtherUID types.UID `json:"otherUID,omitempty"`
	// since is when the Machine was first seen to be gone.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// ReleaseValue returns the value of the annotation ingot.dev/release for a host whose consumerRef names a Machine of that uid.
func ReleaseValue(uid types.UID) string {
	if uid == "" {
		return "none"
	}
	return string(uid)
}

// KeptForMachine says of a host that is being deleted while a Machine has it what keeps it, and what to do. It continues a sentence that begins
// with the host's name.
func KeptForMachine(namespace, name string) string {
	return "is being deleted and kept for Machine " + namespace + "/" + name + ", whose node runs on: the host goes when that Machine has released it, by kubectl delete machine -n " +
		namespace + " " + name + ", and a server that is to stay is registered again after that"
}

// ReasonRemainingNodeSettled is of an event of a HostRecord alone: a Node that remained after a release was deleted, or is there no more.
const ReasonRemainingNodeSettled = "RemainingNodeSettled"

// ReasonRemainingNodeUnproven is of an event of a HostRecord alone: a Node has the name of one that may have remained after a release, and nothing
// proves that it is that one. A person decides.
const ReasonRemainingNodeUnproven = "RemainingNodeUnproven"

// ReasonRemainingNodeElsewhere is of an event of a HostRecord alone: a Node may have remained after a release in a cluster to which its TenantCluster
// does not lead any more. A person looks for it there.
const ReasonRemainingNodeElsewhere = "RemainingNodeElsewhere"

// MaxRemainingNodes is how many Nodes HostRecord.spec.remainingNodes names.
const MaxRemainingNodes = 16

// ReleasedNode is the Node of a Machine that was released while its tenant's cluster did not delete it.
type ReleasedNode struct {
	// tenant is namespace/name of the TenantCluster.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Tenant string `json:"tenant"`
	// clusterUID identifies the cluster of the TenantCluster in which the Node was left, as its status.clusterUID then; absent where it was not known.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// name of the Node, which is that of its Machine.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the Node; absent where Ingot has never seen it.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// machineUID is that of the Machine. The Node's providerID has it too or, where the tenant's cluster sets that, its label ingot.dev/installation.
	// +required
	MachineUID types.UID `json:"machineUID"`
	// since is when the host was returned.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// RemainingNode is what may be left of a Machine in its tenant's cluster.
type RemainingNode struct {
	// name of the Node.
	// +required
	Name string `json:"name"`
	// tokenID of the bootstrap token that may be left too; absent: none. A token ends by itself.
	// +optional
	TokenID string `json:"tokenID,omitempty"`
}

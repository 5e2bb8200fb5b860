package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons of Events of an Entitlement. There is one Event for each claim of the tenant that gets devices, and one when it has them no more.
const (
	// ReasonClaimBegan: a claim got devices.
	ReasonClaimBegan = "ClaimBegan"
	// ReasonClaimEnded: a claim has its devices no more.
	ReasonClaimEnded = "ClaimEnded"
)

// WaitReason is why something of a tenant waits for devices.
type WaitReason string

// The reasons for which claims and pods wait.
const (
	// WaitUnallocated of a claim: a pod waits for it, and the scheduler has found no devices.
	WaitUnallocated WaitReason = "Unallocated"
	// WaitUnused of a claim: no pod asks for it, so that it is not allocated. It counts against the quota.
	WaitUnused WaitReason = "Unused"
	// WaitQuotaExceeded of a pod: Kubernetes refuses to make the claim of its template, because the namespace has as much as it may have.
	WaitQuotaExceeded WaitReason = "QuotaExceeded"
	// WaitClaimNotMade of a pod: the claim of its template is not there for another reason, or not yet.
	WaitClaimNotMade WaitReason = "ClaimNotMade"
	// WaitUnschedulable of a pod: the scheduler has found no node. The message is the scheduler's.
	WaitUnschedulable WaitReason = "Unschedulable"
	// WaitNotTried of a pod: no scheduler has tried it yet, or a scheduling gate holds it back.
	WaitNotTried WaitReason = "NotTried"
)

// The kinds of what waits.
const (
	// WaitingClaim is a ResourceClaim.
	WaitingClaim = "ResourceClaim"
	// WaitingPod is a pod that asks for devices.
	WaitingPod = "Pod"
)

// MaxHoldings is how many claims of a tenant are remembered by name.
const MaxHoldings = 512

// MaxWaitMessage is the limit of a DeviceWait's message, in bytes.
const MaxWaitMessage = 1024

// DeviceWait is what waits for devices for one reason.
type DeviceWait struct {
	// kind of what waits. A pod and the claim that it waits for count each.
	//   - ResourceClaim: a claim.
	//   - Pod: a pod that asks for devices.
	//
	// +required
	// +kubebuilder:validation:Enum=ResourceClaim;Pod
	Kind string `json:"kind"`
	// reason why.
	//   - Unallocated: a pod waits for the claim, and the scheduler has found no devices.
	//   - Unused: no pod asks for the claim. It counts against the quota.
	//   - QuotaExceeded: the claim of the pod's template is refused, because the namespace has as much as it may have.
	//   - ClaimNotMade: the claim of the pod's template is not there for another reason, or not yet.
	//   - Unschedulable: the scheduler has found no node for the pod.
	//   - NotTried: no scheduler has tried the pod yet, or a scheduling gate holds it back.
	//
	// +required
	// +kubebuilder:validation:Enum=Unallocated;Unused;QuotaExceeded;ClaimNotMade;Unschedulable;NotTried
	Reason WaitReason `json:"reason"`
	// count is how many wait.
	// +required
	Count int32 `json:"count"`
	// since is when the one was made that has waited longest.
	// +required
	Since metav1.Time `json:"since"`
	// longest is the one that has waited longest: NAMESPACE/NAME.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Longest string `json:"longest"`
	// message is what Kubernetes says of that one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DeviceHolding is a claim that has devices.
type DeviceHolding struct {
	// namespace of the claim.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// claim is its name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Claim string `json:"claim"`
	// uid of the claim.
	// +required
	UID types.UID `json:"uid"`
	// devices by DeviceClass.
	// +required
	// +kubebuilder:validation:MaxProperties=32
	Devices map[string]int32 `json:"devices"`
	// node that has the devices; absent: several can use them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// since is when they were allocated or, where that is not known, when the claim was made.
	// +required
	Since metav1.Time `json:"since"`
}

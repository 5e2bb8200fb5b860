package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is how far a rollout is.
// +kubebuilder:validation:Enum=Pending;Canary;Rolling;Paused;Stopped;Superseded;Done
type RolloutPhase string

// Rollout phases. The reason of its Ready condition is the phase.
const (
	// RolloutPending: the Rollout before it lets go, and what that one had begun is being marked as this one's.
	RolloutPending RolloutPhase = "Pending"
	// RolloutCanary: the first Machines are moved, and must then stay Ready for the bake time.
	RolloutCanary RolloutPhase = "Canary"
	// RolloutRolling: the others follow.
	RolloutRolling RolloutPhase = "Rolling"
	// RolloutPaused: spec.paused; no further Machine is started.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutStopped: stoppedBy says why; a person must decide. Setting the NodeType back undoes it; setting spec.paused
	// to true and then to false goes on and forgives the failures so far.
	RolloutStopped RolloutPhase = "Stopped"
	// RolloutSuperseded: the NodeType asks for another revision now; a newer Rollout moves the Machines. Final.
	RolloutSuperseded RolloutPhase = "Superseded"
	// RolloutDone: every Machine of the NodeType that has a host and is not being deleted has the revision and is Ready, except
	// where a person forgave its failure, or where it was broken before and still is. Final.
	RolloutDone RolloutPhase = "Done"
)

// IsFinal reports whether a rollout in that phase will do nothing more.
func (p RolloutPhase) IsFinal() bool { return p == RolloutDone || p == RolloutSuperseded }

// ConditionTenantsHaveRoom of a Rollout: the tenants' own budgets, maxUnavailable of their Entitlements' classes, keep no Machine from being moved. It is left
// out where no Entitlement has one, and once the Rollout has ended.
const ConditionTenantsHaveRoom = "TenantsHaveRoom"

// ConditionFaultsAlone of a Rollout: its broken Machines are so few that each failed for itself. It is False while more do than come alone, and absent otherwise.
const ConditionFaultsAlone = "FaultsAlone"

// ReasonManyAtOnce of the condition FaultsAlone: many have something in common, which the message names, and nothing is done to any of them.
const ReasonManyAtOnce = "ManyAtOnce"

// Reasons of the condition TenantsHaveRoom.
const (
	// ReasonTenantsHaveRoom: no Machine waits because of the devices that tenants hold.
	ReasonTenantsHaveRoom = "TenantsHaveRoom"
	// ReasonDevicesHeld: a Machine waits, because more devices of a tenant's class would be unavailable than its maxUnavailable allows. The message says which.
	ReasonDevicesHeld = "DevicesHeld"
	// ReasonClaimsUnreadable: the claims of a shared cluster cannot be read although a class there has a maxUnavailable. No Machine of the cluster is moved.
	ReasonClaimsUnreadable = "ClaimsUnreadable"
)

// RolloutSelector names the Machines of a rollout by LabelRollout, whose value is the Rollout's name.
func RolloutSelector(rollout string) map[string]string {
	return map[string]string{LabelRollout: rollout}
}

// RolloutSpec moves Machines from one revision, and one rendering of it, to the next. The NodeType's controller makes it; users set paused only.
// +kubebuilder:validation:XValidation:rule="self.nodeTypeRef == oldSelf.nodeTypeRef && self.from == oldSelf.from && self.to == oldSelf.to && has(self.fromRendering) == has(oldSelf.fromRendering) && (!has(self.fromRendering) || self.fromRendering == oldSelf.fromRendering) && has(self.toRendering) == has(oldSelf.toRendering) && (!has(self.toRendering) || self.toRendering == oldSelf.toRendering)",message="only paused may change: change the NodeType instead"
type RolloutSpec struct {
	// nodeTypeRef names the NodeType.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// from is the revision that most Machines come from: the stable one or, when a rollout is undone, the one that it moved to.
	// +required
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// fromRendering of from that those Machines have.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	FromRendering string `json:"fromRendering,omitempty"`
	// to is the target revision.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
	// toRendering of to is what the Machines are installed with. When to is the revision that they have already, it alone changes.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ToRendering string `json:"toRendering,omitempty"`
	// paused starts no further Machine.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Source is what most Machines come from.
func (s RolloutSpec) Source() RenderedRevision {
	return RenderedRevision{Revision: s.From, Rendering: s.FromRendering}
}

// Target is what the Machines are moved to.
func (s RolloutSpec) Target() RenderedRevision {
	return RenderedRevision{Revision: s.To, Rendering: s.ToRendering}
}

// RolloutTargets counts the Machines of a rollout.
type RolloutTargets struct {
	// total of Machines to be moved. A Machine without a host is not counted: it gets the revision with its host.
	// +optional
	// +default=0
	Total int32 `json:"total"`
	// done Machines are Ready with the new revision.
	// +optional
	// +default=0
	Done int32 `json:"done"`
	// inProgress Machines are on their way.
	// +optional
	// +default=0
	InProgress int32 `json:"inProgress"`
	// failed Machines count against the failure budget. Those of status.brokenBefore do not.
	// +optional
	// +default=0
	Failed int32 `json:"failed"`
}

// DevicesInUse are the devices of a class that claims held on the node of a Machine.
type DevicesInUse struct {
	// machine that is moved, namespace/name.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Machine string `json:"machine"`
	// deviceClass that the claims name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	DeviceClass string `json:"deviceClass"`
	// devices that were held: the most since the Machine was chosen.
	// +required
	// +kubebuilder:validation:Minimum=0
	Devices int32 `json:"devices"`
	// claims that held them: the most since the Machine was chosen.
	// +required
	// +kubebuilder:validation:Minimum=0
	Claims int32 `json:"claims"`
}

// RolloutStatus is how far a rollout is.
type RolloutStatus struct {
	// phase of the rollout:
	//   - Pending: the Rollout before this one has not stopped yet, or the Machines that it had begun are being taken over.
	//   - Canary: the first Machines are moved, and must then stay Ready for the bake time.
	//   - Rolling: the other Machines are moved.
	//   - Paused: spec.paused is true; no further Machine is started.
	//   - Stopped: no further Machine is started, and stoppedBy says why. A person must decide: setting the NodeType back undoes the rollout; setting spec.paused to true and then to false continues it and forgives the failures so far.
	//   - Superseded: the NodeType asks for another revision now, and a newer Rollout moves the Machines. This phase is final.
	//   - Done: every Machine of the NodeType that has a host and is not being deleted has the revision and is Ready, except where a person forgave its failure, or where it was broken before and still is. This phase is final.
	//
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// targets are the Machines to be moved.
	// +optional
	Targets RolloutTargets `json:"targets,omitempty"`
	// stoppedBy is why the rollout stopped.
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`
	// inProgress names Machines on their way, namespace/name. It is empty in the final phases.
	// +optional
	// +listType=atomic
	InProgress []string `json:"inProgress,omitempty"`
	// inUse counts the devices that claims held on the nodes of the Machines on their way, by DeviceClass. A Machine's counts are written before its node is
	// drained, and stay until the Machine is Ready or deleted, although the claims are gone by then. The Rollout waits with further Machines when the list is
	// full. Only nodes of clusters that have an Entitlement are counted. Where the claims cannot be read, counts are missing; nothing waits for them unless a
	// class of the cluster has a maxUnavailable. ingot rollout status --shared-kubeconfig names the claims.
	// +optional
	// +listType=map
	// +listMapKey=machine
	// +listMapKey=deviceClass
	// +kubebuilder:validation:MaxItems=1000
	InUse []DevicesInUse `json:"inUse,omitempty"`
	// brokenBefore names Machines that were not Ready, and waited for a person, when this rollout moved them, namespace/name. Their failure does not
	// count until they have been Ready with the new revision, and does not keep the rollout from being Done.
	// +optional
	// +listType=atomic
	BrokenBefore []string `json:"brokenBefore,omitempty"`
	// handedOver names Machines that were on their way when the rollout ended, namespace/name. The next rollout takes them over.
	// +optional
	// +listType=atomic
	HandedOver []string `json:"handedOver,omitempty"`
	// canary names the Machines that go first, namespace/name. A deleted one stays named until a Machine with a host takes its place: the
	// revision is not proven without one, and the rollout is not Done.
	// +optional
	// +listType=atomic
	Canary []string `json:"canary,omitempty"`
	// bakedSince is when the last Machine of the canary became Ready; the bake time counts from then.
	// +optional
	BakedSince *metav1.MicroTime `json:"bakedSince,omitempty"`
	// forgiven names Machines whose failure no longer counts, because a person let the rollout go on after it stopped.
	// +optional
	// +listType=atomic
	Forgiven []string `json:"forgiven,omitempty"`
	// history is what happened, the newest last; 32 entries at most.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	History []RolloutEntry `json:"history,omitempty"`
	// conditions: Ready, True when the rollout is Done; TenantsHaveRoom, where a class of an Entitlement has a maxUnavailable; FaultsAlone, False while
	// many Machines are broken at once.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutEntry is one line of a rollout's history.
type RolloutEntry struct {
	// at what time.
	// +required
	At metav1.MicroTime `json:"at"`
	// message for people.
	// +required
	Message string `json:"message"`
}

// Rollout moves Machines from one revision, and one rendering of it, to the next.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ro,categories=ingot
// +kubebuilder:printcolumn:name="NodeType",type=string,JSONPath=".spec.nodeTypeRef.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=".status.targets.done"
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=".status.targets.total"
// +kubebuilder:printcolumn:name="Stopped-By",type=string,JSONPath=".status.stoppedBy"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RolloutSpec `json:"spec"`
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// WaitsForTenants says why the budgets of tenants keep a Machine from being moved, or why they may; empty: they do not.
func (r *Rollout) WaitsForTenants() string {
	c := meta.FindStatusCondition(r.Status.Conditions, ConditionTenantsHaveRoom)
	if c == nil || c.Status == metav1.ConditionTrue || r.Status.Phase.IsFinal() {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// RolloutList is a list of Rollouts.
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

package baremetaloperator

import (
	"cmp"
	"context"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Types of conditions.
const (
	ConditionReady        = "Ready"
	ConditionManageable   = "Manageable"
	ConditionAvailable    = "AvailableForProvisioning"
	ConditionProvisioned  = "Provisioned"
	ConditionProgressing  = "Progressing"
	ConditionHealthy      = "Healthy"
	reasonNotAvailable    = "NotAvailable"
	reasonNotProvisioned  = "NotProvisioned"
	reasonNotProgressing  = "NotProgressing"
	reasonDetached        = "Detached"
	reasonUnknown         = "Unknown"
	reasonRegistering     = "Registering"
	reasonRegisterFailure = "RegistrationFailed"
)

// progressReasons are the reasons of Progressing in the states in which work is under way.
var progressReasons = map[metal3.ProvisioningState]string{
	metal3.StateRegistering: reasonRegistering, metal3.StateInspecting: "Inspecting", metal3.StatePreparing: "Preparing", metal3.StateProvisioning: "Provisioning",
	metal3.StateDeprovisioning: "Deprovisioning", metal3.StatePoweringOffBeforeDelete: "PoweringOffBeforeDelete", metal3.StateDeleting: "Deleting",
}

// unreadyReasons are the reasons of Ready in the operational statuses in which it is false in every state.
var unreadyReasons = map[metal3.OperationalStatus]string{
	metal3.OperationalStatusError: "Error", metal3.OperationalStatusServicing: "Servicing", metal3.OperationalStatusDetached: reasonDetached,
}

// verdict is the status and the reason of a condition.
type verdict struct {
	status metav1.ConditionStatus
	reason string
}

func trueBecause(reason string) verdict  { return verdict{metav1.ConditionTrue, reason} }
func falseBecause(reason string) verdict { return verdict{metav1.ConditionFalse, reason} }

// verdicts returns the conditions of a host. Ready is true only of a host that is provisioned.
func verdicts(r *round, hasPowerFailure bool) map[string]verdict {
	out := map[string]verdict{
		ConditionManageable: trueBecause("Manageable"), ConditionAvailable: falseBecause(reasonNotAvailable), ConditionProvisioned: falseBecause(reasonNotProvisioned),
		ConditionReady: falseBecause(reasonNotProvisioned), ConditionProgressing: falseBecause(reasonNotProgressing),
	}
	state, status := r.Status.Provisioning.State, r.Status.OperationalStatus
	if reason, isUnderWay := progressReasons[state]; isUnderWay {
		out[ConditionProgressing] = trueBecause(reason)
	}
	looksAtPower := state != metal3.StateDeleting && status != metal3.OperationalStatusDetached
	switch state {
	case metal3.StateNone, metal3.StateUnmanaged:
		out[ConditionManageable], looksAtPower = falseBecause("NotManaged"), false
	case metal3.StateRegistering:
		out[ConditionManageable], looksAtPower = falseBecause(reasonRegistering), false
		if status == metal3.OperationalStatusError {
			out[ConditionManageable] = falseBecause(reasonRegisterFailure)
		}
	case metal3.StateAvailable, metal3.StateReady:
		out[ConditionAvailable] = trueBecause("Available")
	case metal3.StateProvisioned, metal3.StateExternallyProvisioned:
		out[ConditionProvisioned], out[ConditionReady] = trueBecause("Provisioned"), trueBecause("Provisioned")
	}
	if reason, isUnready := unreadyReasons[status]; isUnready {
		out[ConditionReady] = falseBecause(reason)
	}
	if status == metal3.OperationalStatusDetached {
		out[ConditionProgressing] = falseBecause(reasonDetached)
	}
	if looksAtPower && hasPowerFailure {
		out[ConditionManageable] = falseBecause("PowerFailure")
	}
	return out
}

// healths are the conditions of what a BMC reports.
var healths = map[Health]verdict{HealthOK: trueBecause("Healthy"), HealthWarning: falseBecause("Warning"), HealthCritical: falseBecause("CriticalError")}

// addHealth adds the condition Healthy to the verdicts. A BMC that reports nothing adds none: an earlier one stays as it was, with the generation that it
// has observed, and the first one is Unknown.
func addHealth(out map[string]verdict, before []metav1.Condition, health Health) {
	switch known, isKnown := healths[health]; {
	case isKnown:
		out[ConditionHealthy] = known
	case health != "" || meta.FindStatusCondition(before, ConditionHealthy) == nil:
		out[ConditionHealthy] = verdict{metav1.ConditionUnknown, reasonUnknown}
	}
}

// setConditions writes the conditions for the generation that was observed, and reports whether they changed.
func (r *round) setConditions(ctx context.Context, now metav1.Time) (isChanged bool) {
	before, conditions := r.conditions(), r.conditions()
	wanted := verdicts(r, r.server.HasPowerFailure(ctx))
	addHealth(wanted, before, r.server.Health(ctx))
	for kind, v := range wanted {
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: kind, Status: v.status, Reason: v.reason, ObservedGeneration: r.Generation, LastTransitionTime: now})
	}
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return cmp.Compare(sortKey(a.Type), sortKey(b.Type)) })
	list := make([]any, 0, len(conditions))
	for i := range conditions {
		text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			panic(err)
		}
		list = append(list, text)
	}
	if err := unstructured.SetNestedSlice(r.raw.Object, list, "status", "conditions"); err != nil {
		panic(err)
	}
	return !equality.Semantic.DeepEqual(before, conditions)
}

// sortKey sorts Ready before the others, which follow by name.
func sortKey(kind string) string {
	if kind == ConditionReady {
		return ""
	}
	return kind
}

// conditions returns those of the object that was read.
func (r *round) conditions() []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(r.raw.Object, "status", "conditions")
	out := make([]metav1.Condition, 0, len(list))
	for _, entry := range list {
		var c metav1.Condition
		if text, isMap := entry.(map[string]any); isMap && runtime.DefaultUnstructuredConverter.FromUnstructured(text, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

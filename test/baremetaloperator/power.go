package baremetaloperator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// managePower looks at the power, writes what it saw when that is news, and otherwise makes the power what the spec says.
func (o *Operator) managePower(ctx context.Context, r *round) (outcome, error) {
	on, err := r.server.PoweredOn(ctx)
	if err != nil {
		return outcome{}, err
	}
	s := &r.Status
	if on != s.PoweredOn {
		s.PoweredOn = on
		if s.ErrorType == metal3.PowerManagementError {
			clearError(r, metal3.OperationalStatusOK)
		}
		return update(0), nil
	}
	if !on {
		if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
			return wait(0), err
		}
	}
	desired := r.Spec.Online && !isRebootDue(r)
	if on == desired {
		return wait(lookInterval), nil
	}
	if !desired && r.Spec.DisablePowerOff {
		// The server is rebooted instead, and stays on.
		_, err := o.removeReboot(ctx, r)
		return wait(lookInterval), err
	}
	return setPower(ctx, r, desired), nil
}

func setPower(ctx context.Context, r *round, on bool) outcome {
	p := r.server.SetPower(ctx, on)
	switch {
	case p.Problem != "":
		return fail(r, metal3.PowerManagementError, p.Problem)
	case !p.Done:
		done := clearError(r, metal3.OperationalStatusOK)
		done.after = pollInterval
		return done
	}
	r.Status.PoweredOn, r.Status.ErrorCount = r.Spec.Online, 0
	return update(lookInterval)
}

// removeReboot removes the annotation that asks for one reboot, and reports whether there was one.
func (o *Operator) removeReboot(ctx context.Context, r *round) (bool, error) {
	if _, isSet := r.Annotations[metal3.RebootAnnotationPrefix]; !isSet {
		return false, nil
	}
	delete(r.Annotations, metal3.RebootAnnotationPrefix)
	return true, o.patchMetadata(ctx, r)
}

// isRebootDue reports whether an annotation asks for a reboot. A host that is not provisioned is rebooted only by force.
func isRebootDue(r *round) bool {
	isProvisioned := r.Status.Provisioning.State == metal3.StateProvisioned || r.Status.Provisioning.State == metal3.StateExternallyProvisioned
	for key, value := range r.Annotations {
		if key != metal3.RebootAnnotationPrefix && !strings.HasPrefix(key, metal3.RebootAnnotationPrefix+"/") {
			continue
		}
		var arguments metal3.RebootAnnotationArguments
		if err := json.Unmarshal([]byte(value), &arguments); isProvisioned || err == nil && arguments.Force {
			return true
		}
	}
	return false
}

// setConditions writes the conditions for the generation that was observed, and reports whether they changed.
func (r *round) setConditions(now metav1.Time) bool {
	before, conditions := r.conditions(), r.conditions()
	for kind, holds := range conditionsOf(r.Status) {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: kind, Status: status, Reason: "Observed", ObservedGeneration: r.Generation, LastTransitionTime: now})
	}
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
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

// conditionsOf returns which conditions are true.
func conditionsOf(status metal3.BareMetalHostStatus) map[string]bool {
	state := status.Provisioning.State
	isManageable := !slices.Contains([]metal3.ProvisioningState{metal3.StateNone, metal3.StateUnmanaged, metal3.StateRegistering}, state)
	isProvisioned := state == metal3.StateProvisioned || state == metal3.StateExternallyProvisioned
	isAvailable := state == metal3.StateAvailable || state == metal3.StateReady
	isWell := status.OperationalStatus == metal3.OperationalStatusOK || status.OperationalStatus == metal3.OperationalStatusDelayed
	return map[string]bool{
		"Manageable": isManageable, "AvailableForProvisioning": isAvailable, "Provisioned": isProvisioned,
		"Progressing": isManageable && !isProvisioned && !isAvailable, "Ready": isWell && (isProvisioned || isAvailable),
	}
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

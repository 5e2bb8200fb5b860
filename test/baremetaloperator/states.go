package baremetaloperator

import (
	"context"
	"encoding/json"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// maxErrors is how many errors of a host that is being deleted are retried.
const maxErrors = 3

type handler func(*Operator, context.Context, *round) (outcome, error)

// handlers are those of the states.
var handlers = map[metal3.ProvisioningState]handler{
	metal3.StateNone:                    (*Operator).discover,
	metal3.StateUnmanaged:               (*Operator).discover,
	metal3.StateRegistering:             (*Operator).afterRegistration,
	metal3.StateInspecting:              (*Operator).inspect,
	metal3.StatePreparing:               (*Operator).prepare,
	metal3.StateAvailable:               (*Operator).manageAvailable,
	metal3.StateReady:                   (*Operator).manageAvailable,
	metal3.StateProvisioning:            (*Operator).provision,
	metal3.StateProvisioned:             (*Operator).manageProvisioned,
	metal3.StateExternallyProvisioned:   (*Operator).manageExternal,
	metal3.StateDeprovisioning:          (*Operator).deprovision,
	metal3.StatePoweringOffBeforeDelete: (*Operator).powerOffBeforeDelete,
	metal3.StateDeleting:                (*Operator).finishDeletion,
}

// runState does what the state of the host asks for.
func (o *Operator) runState(ctx context.Context, r *round) (outcome, error) {
	if done, ended := o.checkDelay(r); ended {
		return done, nil
	}
	if next, isNew := o.deletionState(r); isNew {
		return moveTo(next), nil
	}
	if done, ended := checkDetached(ctx, r); ended {
		return done, nil
	}
	if done, ended := register(ctx, r); ended {
		return done, nil
	}
	state := r.Status.Provisioning.State
	run, isKnown := handlers[state]
	if !isKnown {
		return outcome{}, fmt.Errorf("no handler found for state %q", state)
	}
	return run(o, ctx, r)
}

// checkDelay makes a host wait whose work begins when others have ended.
func (o *Operator) checkDelay(r *round) (outcome, bool) {
	if r.Status.OperationalStatus == metal3.OperationalStatusDelayed {
		if !o.hasCapacity(r) {
			return delay(r), true
		}
		clearError(r, metal3.OperationalStatusOK)
		return update(0), true
	}
	switch r.Status.Provisioning.State {
	case metal3.StateInspecting, metal3.StateProvisioning, metal3.StateDeprovisioning:
		if !o.hasCapacity(r) {
			return delay(r), true
		}
	}
	return outcome{}, false
}

// deletionState returns the state to which a deletion moves the host.
func (o *Operator) deletionState(r *round) (metal3.ProvisioningState, bool) {
	if r.DeletionTimestamp.IsZero() {
		return "", false
	}
	state, isGivenUp := r.Status.Provisioning.State, r.Status.ErrorType == metal3.RegistrationError && r.Status.ErrorCount > maxErrors
	if state != metal3.StateDeleting && o.isDetached(r) {
		return metal3.StateDeleting, detachedArguments(r).DeleteAction != metal3.DetachedDeleteActionDelay
	}
	switch state {
	case metal3.StateRegistering, metal3.StateUnmanaged, metal3.StateNone:
		return metal3.StateDeleting, true
	case metal3.StateProvisioning, metal3.StateProvisioned:
		return metal3.StateDeprovisioning, true
	case metal3.StateDeprovisioning, metal3.StatePoweringOffBeforeDelete:
		return metal3.StateDeleting, isGivenUp
	case metal3.StateDeleting:
		return "", false
	}
	return metal3.StatePoweringOffBeforeDelete, true
}

// isDetached reports whether a host that is deleted counts as detached. Older releases look at the status alone.
func (o *Operator) isDetached(r *round) bool {
	return r.Status.OperationalStatus == metal3.OperationalStatusDetached || o.o.Conditions && hasAnnotation(r, metal3.DetachedAnnotation)
}

func hasAnnotation(r *round, key string) bool {
	_, isSet := r.Annotations[key]
	return isSet
}

// detachArguments are the arguments of the annotation detached.
type detachArguments struct {
	DeleteAction metal3.DetachedDeleteAction `json:"deleteAction,omitempty"`
	Force        bool                        `json:"force,omitempty"`
}

// detachedArguments returns those of the host. A value that is no JSON has none.
func detachedArguments(r *round) detachArguments {
	var arguments detachArguments
	if json.Unmarshal([]byte(r.Annotations[metal3.DetachedAnnotation]), &arguments) != nil {
		return detachArguments{}
	}
	return arguments
}

// checkDetached leaves a detached host alone. A host is detached in the states in which nothing is under way, and in others by force.
func checkDetached(ctx context.Context, r *round) (outcome, bool) {
	state := r.Status.Provisioning.State
	if hasAnnotation(r, metal3.DetachedAnnotation) && state != metal3.StateDeleting {
		switch state {
		case metal3.StateProvisioned, metal3.StateExternallyProvisioned, metal3.StateAvailable, metal3.StateReady:
			return detach(ctx, r), true
		}
		if detachedArguments(r).Force {
			return detach(ctx, r), true
		}
	}
	if r.Status.ErrorType == metal3.DetachError {
		clearError(r, metal3.OperationalStatusOK)
		r.Status.ErrorCount = 0
		return update(0), true
	}
	if r.Status.OperationalStatus != metal3.OperationalStatusDetached {
		return outcome{}, false
	}
	r.Status.OperationalStatus = metal3.OperationalStatusOK
	if r.Status.ErrorType != "" {
		r.Status.OperationalStatus = metal3.OperationalStatusError
	}
	return update(0), true
}

func detach(ctx context.Context, r *round) outcome {
	if r.Status.OperationalStatus == metal3.OperationalStatusDetached {
		return wait(unmanagedInterval)
	}
	p := r.server.Detach(ctx)
	isFailed := r.Status.ErrorType == metal3.DetachError
	switch {
	case p.Problem != "":
		return fail(r, metal3.DetachError, p.Problem)
	case !p.Done && isFailed:
		return poll(r)
	case !p.Done:
		return wait(pollInterval)
	case isFailed:
		clearError(r, metal3.OperationalStatusOK)
		r.Status.ErrorCount = 0
	}
	r.Status.OperationalStatus = metal3.OperationalStatusDetached
	return update(unmanagedInterval)
}

// register makes the server known at every look, and ends the look when that is news. Nothing is registered without credentials.
func register(ctx context.Context, r *round) (outcome, bool) {
	state := r.Status.Provisioning.State
	if r.credentials == nil || state == metal3.StateDeleting {
		return outcome{}, false
	}
	secret, s, isDirty := *r.credentials.secret, &r.Status, false
	if !s.TriedCredentials.Match(secret) {
		r.UpdateTriedCredentials(secret)
		isDirty = true
	}
	p := r.server.Register(ctx)
	switch {
	case p.Problem != "":
		return fail(r, metal3.RegistrationError, p.Problem), true
	case !p.Done:
		done := poll(r)
		done.isDirty = done.isDirty || isDirty
		return done, true
	}
	if adoptSettings(r) {
		return update(0), true
	}
	isDirty = s.Provisioning.ID == ""
	if isDirty {
		s.Provisioning.ID = string(r.UID)
	}
	isNew := !s.GoodCredentials.Match(secret)
	if isNew {
		r.UpdateGoodCredentials(secret)
		isDirty = true
	}
	if s.ErrorType == metal3.RegistrationError || isNew {
		// The real one forgets here that the credentials were new: they are written with the next change of the status.
		isDirty = clearError(r, metal3.OperationalStatusOK).isDirty
	}
	return update(0), isDirty
}

// discover moves a host to its registration as soon as its BMC is known.
func (o *Operator) discover(_ context.Context, r *round) (outcome, error) {
	switch {
	case r.HasBMCDetails():
		return moveTo(metal3.StateRegistering), nil
	case r.Status.Provisioning.State == metal3.StateUnmanaged:
		return wait(unmanagedInterval), nil
	}
	r.Status.OperationalStatus = metal3.OperationalStatusDiscovered
	return moveTo(metal3.StateUnmanaged), nil
}

func (o *Operator) afterRegistration(_ context.Context, r *round) (outcome, error) {
	r.Status.ErrorCount = 0
	switch {
	case r.Spec.ExternallyProvisioned:
		return moveTo(metal3.StateExternallyProvisioned), nil
	case r.InspectionDisabled():
		return moveTo(metal3.StatePreparing), nil
	}
	return moveTo(metal3.StateInspecting), nil
}

package baremetaloperator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// servicedInterval is how soon a host is looked at when its firmware has been changed.
const servicedInterval = time.Minute

// managePower looks at the power, writes what it saw when that is news, and otherwise makes the power what the spec says.
func (o *Operator) managePower(ctx context.Context, r *round) (outcome, error) {
	on, err := r.server.PoweredOn(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("failed to update the host power status: %w", err)
	}
	s := &r.Status
	if on != nil && *on != s.PoweredOn {
		s.PoweredOn = *on
		if s.ErrorType == metal3.PowerManagementError {
			clearError(r, metal3.OperationalStatusOK)
		}
		return update(0), nil
	}
	if !s.PoweredOn {
		if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
			return wait(0), err
		}
	}
	if done, ended := service(ctx, r); ended {
		return done, nil
	}
	desired := r.Spec.Online && !isRebootDue(r)
	if s.PoweredOn == desired {
		return wait(lookInterval), nil
	}
	return o.setPower(ctx, r, desired)
}

func (o *Operator) setPower(ctx context.Context, r *round, on bool) (outcome, error) {
	p := r.server.SetPower(ctx, powerOf(r, on))
	if r.Spec.DisablePowerOff {
		// The server was rebooted, or is on. That is what the annotation asked for, even where it failed.
		if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
			return wait(0), err
		}
	}
	switch {
	case p.Problem != "":
		return fail(r, metal3.PowerManagementError, p.Problem), nil
	case !p.Done:
		return poll(r), nil
	}
	r.Status.PoweredOn, r.Status.ErrorCount = r.Spec.Online, 0
	return update(lookInterval), nil
}

// powerOf returns what is done with the power. A server that must not be powered off is rebooted instead, and after an error nobody is asked to shut down.
func powerOf(r *round, on bool) Power {
	switch {
	case on:
		return On
	case r.Spec.DisablePowerOff:
		return Reboot
	case r.Status.ErrorCount > 0:
		return HardOff
	}
	return Off
}

// removeReboot removes the annotation that asks for one reboot, and reports whether there was one.
func (o *Operator) removeReboot(ctx context.Context, r *round) (isRemoved bool, err error) {
	if !hasAnnotation(r, metal3.RebootAnnotationPrefix) {
		return false, nil
	}
	delete(r.Annotations, metal3.RebootAnnotationPrefix)
	return true, o.updateMetadata(ctx, r)
}

func isProvisioned(r *round) bool {
	state := r.Status.Provisioning.State
	return state == metal3.StateProvisioned || state == metal3.StateExternallyProvisioned
}

// isRebootDue reports whether an annotation asks for a reboot. A host that is not provisioned is rebooted only by force.
func isRebootDue(r *round) bool {
	for key, value := range r.Annotations {
		if key != metal3.RebootAnnotationPrefix && !strings.HasPrefix(key, metal3.RebootAnnotationPrefix+"/") {
			continue
		}
		var arguments metal3.RebootAnnotationArguments
		if err := json.Unmarshal([]byte(value), &arguments); isProvisioned(r) || err == nil && arguments.Force {
			return true
		}
	}
	return false
}

// service changes the firmware of an installed host that is off and is to be powered on, and ends the look while it does.
func service(ctx context.Context, r *round) (outcome, bool) {
	s := &r.Status
	isUnderWay := s.OperationalStatus == metal3.OperationalStatusServicing || s.ErrorType == metal3.ServicingError
	mayBegin := isProvisioned(r) && !s.PoweredOn && r.Spec.Online
	if !isUnderWay && !(mayBegin && r.server.NeedsServicing(ctx)) {
		return outcome{}, false
	}
	if s.OperationalStatus != metal3.OperationalStatusServicing {
		s.OperationalStatus = metal3.OperationalStatusServicing
		return update(0), true
	}
	p := r.server.Service(ctx)
	if p.Problem != "" {
		return fail(r, metal3.ServicingError, p.Problem), true
	}
	if done := clearError(r, metal3.OperationalStatusServicing); done.isDirty || !p.Done {
		done.after = pollInterval
		return done, true
	}
	clearError(r, metal3.OperationalStatusOK)
	return update(servicedInterval), true
}

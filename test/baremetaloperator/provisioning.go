package baremetaloperator

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func (o *Operator) prepare(ctx context.Context, r *round) (outcome, error) {
	isDirty := needsPreparation(r) || r.Status.ErrorType == metal3.PreparationError
	p := r.server.Prepare(ctx)
	if p.Problem != "" {
		if isDirty {
			clearSettings(r)
		}
		return fail(r, metal3.PreparationError, p.Problem), nil
	}
	if isDirty {
		r.Status.Provisioning.RAID = raid(r)
	}
	isDirty = clearError(r, metal3.OperationalStatusOK).isDirty || isDirty
	if !p.Done {
		return outcome{isDirty: isDirty, after: pollInterval}, nil
	}
	r.Status.ErrorCount = 0
	return moveTo(metal3.StateAvailable), nil
}

// manageAvailable begins an installation that is asked for, unless it has failed too often, and otherwise sees to the power.
func (o *Operator) manageAvailable(ctx context.Context, r *round) (outcome, error) {
	switch {
	case r.Spec.ExternallyProvisioned:
		clearSettings(r)
		return moveTo(metal3.StateExternallyProvisioned), nil
	case needsInspection(r):
		return moveTo(metal3.StateInspecting), nil
	case needsPreparation(r):
		return moveTo(metal3.StatePreparing), nil
	}
	if r.failed > 0 && (r.Spec.Image == nil || r.Spec.Image.URL == "") {
		r.attempts = attempts{} // written with the next change of the status
	}
	if !r.NeedsProvisioning() {
		return o.managePower(ctx, r)
	}
	if !equality.Semantic.DeepEqual(r.Spec.Image, r.lastImage) {
		r.failed = 0
	}
	if o.o.Conditions && r.failed >= int64(o.o.Retries) {
		return fail(r, metal3.ProvisioningError, fmt.Sprintf(
			"provisioning failed %d times, retry limit (%d) reached; change image or reset provisioningFailCount to retry", r.failed, o.o.Retries)), nil
	}
	clearError(r, metal3.OperationalStatusOK)
	return moveTo(metal3.StateProvisioning), nil
}

// hasOtherImage reports whether the spec no longer asks for what was installed, or for anything.
func hasOtherImage(r *round) bool {
	image, installed := r.Spec.Image, r.Status.Provisioning.Image.URL
	return image == nil || image.URL == "" || installed != "" && image.URL != installed
}

func (o *Operator) provision(ctx context.Context, r *round) (outcome, error) {
	isFailed := r.Status.ErrorType != ""
	if isFailed && !o.isWaitingForSecret(r) || hasOtherImage(r) {
		if isFailed {
			r.failed++
		}
		return moveTo(metal3.StateDeprovisioning), nil
	}
	r.lastImage = r.Spec.Image.DeepCopy()
	p, err := r.server.Deploy(ctx, r.Spec.Image.URL, func(ctx context.Context) (Deployment, error) { return o.deployment(ctx, r) })
	if missing := (secretAccessError{}); o.o.Conditions && errors.As(err, &missing) {
		return awaitSecret(r, missing.Error()), nil
	}
	if err != nil {
		return outcome{}, err
	}
	return o.afterDeploy(ctx, r, p)
}

// afterDeploy writes how far the installation is.
func (o *Operator) afterDeploy(ctx context.Context, r *round, p Progress) (outcome, error) {
	isDirty := o.isWaitingForSecret(r) && clearError(r, metal3.OperationalStatusOK).isDirty
	if p.Problem != "" {
		return fail(r, metal3.ProvisioningError, p.Problem), nil
	}
	if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
		return outcome{isDirty: isDirty}, err
	}
	if !p.Done {
		done := poll(r)
		done.isDirty = done.isDirty || isDirty
		return done, nil
	}
	r.Status.Provisioning.Image, r.Status.ErrorCount, r.failed = *r.Spec.Image, 0, 0
	return moveTo(metal3.StateProvisioned), nil
}

// awaitSecret says that a Secret of the config drive is missing. The error is not counted, and looked at again soon.
func awaitSecret(r *round, message string) outcome {
	s := &r.Status
	done := outcome{after: pollInterval}
	done.isDirty = s.OperationalStatus != metal3.OperationalStatusError || s.ErrorType != metal3.ProvisioningError || s.ErrorMessage != message
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = metal3.OperationalStatusError, metal3.ProvisioningError, message
	return done
}

func (o *Operator) manageProvisioned(ctx context.Context, r *round) (outcome, error) {
	if hasOtherImage(r) {
		return moveTo(metal3.StateDeprovisioning), nil
	}
	return o.manageSteady(ctx, r)
}

func (o *Operator) manageExternal(ctx context.Context, r *round) (outcome, error) {
	if !r.Spec.ExternallyProvisioned {
		if r.Spec.Image != nil {
			r.Status.Provisioning.Image = *r.Spec.Image
		}
		return moveTo(metal3.StateProvisioned), nil
	}
	return o.manageSteady(ctx, r)
}

// manageSteady sees to a host that has an image.
func (o *Operator) manageSteady(ctx context.Context, r *round) (outcome, error) {
	if done, ended := adopt(ctx, r); ended {
		return done, nil
	}
	return o.managePower(ctx, r)
}

// adopt makes the service know what the server has, and ends the look while it does not.
func adopt(ctx context.Context, r *round) (outcome, bool) {
	p := r.server.Adopt(ctx)
	switch {
	case p.Problem != "":
		return fail(r, metal3.ProvisionedRegistrationError, p.Problem), true
	case !p.Done:
		return poll(r), true
	}
	return outcome{}, false
}

func (o *Operator) deprovision(ctx context.Context, r *round) (outcome, error) {
	done, err := o.clean(ctx, r)
	isDeleted := !r.DeletionTimestamp.IsZero()
	switch {
	case err != nil:
		return outcome{}, err
	case isDeleted && done.isFailed && r.Status.ErrorCount > maxErrors:
		return moveTo(metal3.StatePoweringOffBeforeDelete), nil
	case !done.isComplete:
		return done.outcome, nil
	}
	r.Status.ErrorCount = 0
	if isDeleted {
		return moveTo(metal3.StatePoweringOffBeforeDelete), nil
	}
	return moveTo(metal3.StateAvailable), nil
}

// cleaned is how far a deprovisioning is.
type cleaned struct {
	outcome
	isFailed, isComplete bool
}

func (o *Operator) clean(ctx context.Context, r *round) (cleaned, error) {
	if r.Status.Provisioning.Image.URL != "" {
		if done, ended := adopt(ctx, r); ended {
			return cleaned{outcome: done, isFailed: r.Status.ErrorType != ""}, nil
		}
	}
	p := r.server.Clean(ctx, r.Spec.AutomatedCleaningMode)
	switch {
	case p.Problem != "":
		return cleaned{outcome: fail(r, metal3.ProvisioningError, p.Problem), isFailed: true}, nil
	case !p.Done:
		return cleaned{outcome: poll(r)}, nil
	}
	if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
		return cleaned{outcome: wait(0)}, err
	}
	r.Status.Provisioning.Image = metal3.Image{}
	clearSettings(r)
	return cleaned{isComplete: true}, nil
}

func (o *Operator) powerOffBeforeDelete(ctx context.Context, r *round) (outcome, error) {
	if !r.Spec.DisablePowerOff {
		p := r.server.SetPower(ctx, HardOff)
		switch {
		case p.Problem != "":
			done := fail(r, metal3.PowerManagementError, p.Problem)
			if r.Status.ErrorCount > maxErrors {
				return moveTo(metal3.StateDeleting), nil
			}
			return done, nil
		case !p.Done:
			return poll(r), nil
		}
	}
	r.Status.ErrorCount, r.Status.PoweredOn = 0, false
	return moveTo(metal3.StateDeleting), nil
}

func (o *Operator) finishDeletion(ctx context.Context, r *round) (outcome, error) {
	if p := r.server.Delete(ctx); p.Problem != "" {
		return outcome{}, errors.New("failed to delete: " + p.Problem)
	} else if !p.Done {
		return wait(pollInterval), nil
	}
	if err := o.releaseSecret(ctx, r); err != nil {
		return outcome{}, err
	}
	controllerutil.RemoveFinalizer(r.BareMetalHost, metal3.BareMetalHostFinalizer)
	err := o.updateMetadata(ctx, r)
	if apierrors.IsConflict(err) {
		return wait(0), nil
	}
	return outcome{after: -1, keepsConditions: true}, client.IgnoreNotFound(err)
}

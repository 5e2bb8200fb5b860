package baremetaloperator

import (
	"context"
	"encoding/json"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// inspectDisabled is the value of the inspect annotation that asks for no inspection.
const inspectDisabled = "disabled"

// maxErrors is how many errors of a host that is being deleted are retried.
const maxErrors = 3

type handler func(*Operator, context.Context, *round) (outcome, error)

// handlers are those of the states of a registered host.
var handlers = map[metal3.ProvisioningState]handler{
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
	state := r.Status.Provisioning.State
	if done, ended := o.checkDelay(r); ended {
		return done, nil
	}
	if next, isNew := deletionState(r); isNew {
		return o.changeState(r, next), nil
	}
	if state == metal3.StateNone || state == metal3.StateUnmanaged {
		return o.discover(r), nil
	}
	if done, ended := checkDetached(r); ended {
		return done, nil
	}
	if r.isReadable && state != metal3.StateDeleting {
		if problem := r.server.Register(ctx); problem != "" {
			return fail(r, metal3.RegistrationError, problem), nil
		}
		if r.Status.ErrorType == metal3.RegistrationError {
			return clearError(r, metal3.OperationalStatusOK), nil
		}
	}
	run, isKnown := handlers[state]
	if !isKnown {
		return outcome{}, fmt.Errorf("the state %q is not known", state)
	}
	return run(o, ctx, r)
}

// discover moves a host to its registration as soon as its BMC is known.
func (o *Operator) discover(r *round) outcome {
	switch {
	case r.HasBMCDetails():
		return o.changeState(r, metal3.StateRegistering)
	case r.Status.Provisioning.State == metal3.StateUnmanaged:
		return wait(unmanagedInterval)
	}
	r.Status.OperationalStatus = metal3.OperationalStatusDiscovered
	return o.changeState(r, metal3.StateUnmanaged)
}

// checkDelay makes a host wait whose work begins when others have ended.
func (o *Operator) checkDelay(r *round) (outcome, bool) {
	isFull := o.o.Capacity != nil && !o.o.Capacity()
	switch {
	case r.Status.OperationalStatus == metal3.OperationalStatusDelayed && isFull:
		return wait(lookInterval), true
	case r.Status.OperationalStatus == metal3.OperationalStatusDelayed:
		done := clearError(r, metal3.OperationalStatusOK)
		return done, true
	case isFull && (r.NeedsProvisioning() && r.Status.Provisioning.State == metal3.StateAvailable):
		r.Status.OperationalStatus = metal3.OperationalStatusDelayed
		return update(lookInterval), true
	}
	return outcome{}, false
}

// deletionState returns the state to which a deletion moves the host.
func deletionState(r *round) (metal3.ProvisioningState, bool) {
	if r.DeletionTimestamp.IsZero() {
		return "", false
	}
	state, givenUp := r.Status.Provisioning.State, r.Status.ErrorType == metal3.RegistrationError && r.Status.ErrorCount > maxErrors
	if state != metal3.StateDeleting && r.Status.OperationalStatus == metal3.OperationalStatusDetached {
		return metal3.StateDeleting, !isDeletionDelayed(r)
	}
	switch state {
	case metal3.StateRegistering, metal3.StateUnmanaged, metal3.StateNone:
		return metal3.StateDeleting, true
	case metal3.StateProvisioning, metal3.StateProvisioned:
		return metal3.StateDeprovisioning, true
	case metal3.StateDeprovisioning, metal3.StatePoweringOffBeforeDelete:
		return metal3.StateDeleting, givenUp
	case metal3.StateDeleting:
		return "", false
	}
	return metal3.StatePoweringOffBeforeDelete, true
}

func isDeletionDelayed(r *round) bool {
	var arguments metal3.DetachedAnnotationArguments
	err := json.Unmarshal([]byte(r.Annotations[metal3.DetachedAnnotation]), &arguments)
	return err == nil && arguments.DeleteAction == metal3.DetachedDeleteActionDelay
}

// checkDetached leaves a detached host alone.
func checkDetached(r *round) (outcome, bool) {
	_, isDetached := r.Annotations[metal3.DetachedAnnotation]
	switch r.Status.Provisioning.State {
	case metal3.StateProvisioned, metal3.StateExternallyProvisioned, metal3.StateAvailable, metal3.StateReady:
		if isDetached {
			done := outcome{isDirty: r.Status.OperationalStatus != metal3.OperationalStatusDetached, after: unmanagedInterval}
			r.Status.OperationalStatus = metal3.OperationalStatusDetached
			return done, true
		}
	}
	if r.Status.OperationalStatus != metal3.OperationalStatusDetached || isDetached {
		return outcome{}, false
	}
	r.Status.OperationalStatus = metal3.OperationalStatusOK
	if r.Status.ErrorType != "" {
		r.Status.OperationalStatus = metal3.OperationalStatusError
	}
	return update(0), true
}

func (o *Operator) afterRegistration(_ context.Context, r *round) (outcome, error) {
	r.Status.ErrorCount, r.Status.OperationalStatus = 0, metal3.OperationalStatusOK
	switch {
	case r.Spec.ExternallyProvisioned:
		return o.changeState(r, metal3.StateExternallyProvisioned), nil
	case r.InspectionDisabled():
		return o.changeState(r, metal3.StatePreparing), nil
	}
	return o.changeState(r, metal3.StateInspecting), nil
}

func (o *Operator) inspect(ctx context.Context, r *round) (outcome, error) {
	found, p := r.server.Inspect(ctx)
	switch {
	case p.Problem != "":
		return fail(r, metal3.InspectionError, p.Problem), nil
	case !p.Done:
		done := clearError(r, metal3.OperationalStatusOK)
		done.after = pollInterval
		return done, nil
	}
	if err := o.writeHardware(ctx, r, found); err != nil {
		return outcome{}, err
	}
	if mode, isSet := r.Annotations[metal3.InspectAnnotationPrefix]; isSet && mode != inspectDisabled {
		delete(r.Annotations, metal3.InspectAnnotationPrefix)
		return wait(0), o.patchMetadata(ctx, r)
	}
	clearError(r, metal3.OperationalStatusOK)
	r.Status.HardwareDetails, r.Status.ErrorCount = &found.HardwareDetails, 0
	return o.changeState(r, metal3.StatePreparing), nil
}

// writeHardware writes the HardwareData of the host, which has its name.
func (o *Operator) writeHardware(ctx context.Context, r *round, found *Hardware) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return err
	}
	data := &unstructured.Unstructured{}
	data.SetGroupVersionKind(metal3.GroupVersion.WithKind("HardwareData"))
	data.SetNamespace(r.Namespace)
	data.SetName(r.Name)
	_, err = controllerutil.CreateOrUpdate(ctx, o.o.Client, data, func() error {
		if err := unstructured.SetNestedMap(data.Object, fields, "spec", "hardware"); err != nil {
			return err
		}
		return controllerutil.SetControllerReference(r.BareMetalHost, data, o.o.Client.Scheme())
	})
	return err
}

func (o *Operator) prepare(_ context.Context, r *round) (outcome, error) {
	r.Status.ErrorCount = 0
	return o.changeState(r, metal3.StateAvailable), nil
}

// manageAvailable begins an installation that is asked for, unless it has failed too often, and otherwise sees to the power.
func (o *Operator) manageAvailable(ctx context.Context, r *round) (outcome, error) {
	if r.Spec.ExternallyProvisioned {
		return o.changeState(r, metal3.StateExternallyProvisioned), nil
	}
	if mode, isSet := r.Annotations[metal3.InspectAnnotationPrefix]; isSet && mode != inspectDisabled {
		return o.changeState(r, metal3.StateInspecting), nil
	}
	if r.Spec.Image == nil {
		o.forgetFailures(r)
	}
	switch {
	case r.NeedsProvisioning() && o.hasFailedTooOften(r):
		return wait(lookInterval), nil // the error stays, and the power is left as it is
	case r.NeedsProvisioning():
		clearError(r, metal3.OperationalStatusOK)
		return o.changeState(r, metal3.StateProvisioning), nil
	}
	return o.managePower(ctx, r)
}

// hasFailedTooOften reports whether the installation of the image that the spec names has failed as often as it is tried. Another image, or
// none, begins the count again.
func (o *Operator) hasFailedTooOften(r *round) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failed[r.UID]
	return r.Spec.Image != nil && f.url == r.Spec.Image.URL && f.count >= o.o.Retries
}

func (o *Operator) countFailure(r *round) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failed[r.UID]
	if f.url != r.Spec.Image.URL {
		f = failures{url: r.Spec.Image.URL}
	}
	f.count++
	o.failed[r.UID] = f
}

func (o *Operator) forgetFailures(r *round) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failed, r.UID)
}

// hasOtherImage reports whether the spec no longer asks for what was installed, or for anything.
func hasOtherImage(r *round) bool {
	image, installed := r.Spec.Image, r.Status.Provisioning.Image.URL
	return image == nil || image.URL == "" || installed != "" && image.URL != installed
}

func (o *Operator) provision(ctx context.Context, r *round) (outcome, error) {
	if r.Status.ErrorType != "" || hasOtherImage(r) {
		return o.changeState(r, metal3.StateDeprovisioning), nil
	}
	deployment, err := o.deployment(ctx, r)
	if err != nil {
		return outcome{}, err // it is tried again, and the status does not say so
	}
	p := r.server.Deploy(ctx, deployment)
	switch {
	case p.Problem != "":
		o.countFailure(r)
		return fail(r, metal3.ProvisioningError, p.Problem), nil
	case !p.Done:
		done := clearError(r, metal3.OperationalStatusOK)
		done.after = pollInterval
		return done, nil
	}
	if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
		return wait(0), err
	}
	o.forgetFailures(r)
	r.Status.Provisioning.Image, r.Status.ErrorCount = *r.Spec.Image, 0
	return o.changeState(r, metal3.StateProvisioned), nil
}

// deployment reads the Secrets of the config drive.
func (o *Operator) deployment(ctx context.Context, r *round) (Deployment, error) {
	d := Deployment{URL: r.Spec.Image.URL, Checksum: string(r.Spec.Image.ChecksumType) + ":" + r.Spec.Image.Checksum, Format: ptr.Deref(r.Spec.Image.DiskFormat, "raw")}
	for _, part := range []struct {
		ref  *corev1.SecretReference
		key  string
		into *[]byte
	}{{r.Spec.UserData, "userData", &d.UserData}, {r.Spec.NetworkData, "networkData", &d.NetworkData}, {r.Spec.MetaData, "metaData", &d.MetaData}} {
		if part.ref == nil {
			continue
		}
		secret, err := o.secret(ctx, r, part.ref)
		if err != nil {
			return d, err
		}
		*part.into = secret.Data[part.key]
		if len(*part.into) == 0 {
			*part.into = secret.Data["value"]
		}
	}
	return d, nil
}

func (o *Operator) manageProvisioned(ctx context.Context, r *round) (outcome, error) {
	if hasOtherImage(r) {
		return o.changeState(r, metal3.StateDeprovisioning), nil
	}
	return o.managePower(ctx, r)
}

func (o *Operator) manageExternal(ctx context.Context, r *round) (outcome, error) {
	if !r.Spec.ExternallyProvisioned {
		if r.Spec.Image != nil {
			r.Status.Provisioning.Image = *r.Spec.Image
		}
		return o.changeState(r, metal3.StateProvisioned), nil
	}
	return o.managePower(ctx, r)
}

func (o *Operator) deprovision(ctx context.Context, r *round) (outcome, error) {
	p := r.server.Clean(ctx, r.Spec.AutomatedCleaningMode)
	isDeleted := !r.DeletionTimestamp.IsZero()
	switch {
	case p.Problem != "":
		done := fail(r, metal3.ProvisioningError, p.Problem)
		if isDeleted && r.Status.ErrorCount > maxErrors {
			return o.changeState(r, metal3.StatePoweringOffBeforeDelete), nil
		}
		return done, nil
	case !p.Done:
		done := outcome{}
		if !o.hasFailedTooOften(r) {
			done = clearError(r, metal3.OperationalStatusOK)
		}
		done.after = pollInterval
		return done, nil
	}
	if isRemoved, err := o.removeReboot(ctx, r); isRemoved || err != nil {
		return wait(0), err
	}
	r.Status.Provisioning.Image, r.Status.ErrorCount = metal3.Image{}, 0
	if isDeleted {
		return o.changeState(r, metal3.StatePoweringOffBeforeDelete), nil
	}
	return o.changeState(r, metal3.StateAvailable), nil
}

func (o *Operator) powerOffBeforeDelete(ctx context.Context, r *round) (outcome, error) {
	if !r.Spec.DisablePowerOff {
		p := r.server.SetPower(ctx, false)
		if p.Problem != "" {
			done := fail(r, metal3.PowerManagementError, p.Problem)
			if r.Status.ErrorCount <= maxErrors {
				return done, nil
			}
		} else if !p.Done {
			return wait(pollInterval), nil
		}
	}
	r.Status.PoweredOn = false
	return o.changeState(r, metal3.StateDeleting), nil
}

func (o *Operator) finishDeletion(ctx context.Context, r *round) (outcome, error) {
	controllerutil.RemoveFinalizer(r.BareMetalHost, metal3.BareMetalHostFinalizer)
	err := o.patchMetadata(ctx, r)
	if apierrors.IsConflict(err) {
		return wait(0), nil
	}
	return wait(-1), client.IgnoreNotFound(err)
}

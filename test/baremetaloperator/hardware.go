package baremetaloperator

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// inspectDisabled is the value of the inspect annotation that asks for no inspection.
const inspectDisabled = "disabled"

// HardwareFinalizer is the finalizer of a HardwareData while its host is there.
const HardwareFinalizer = metal3.BareMetalHostFinalizer + "/hardwareData"

// needsInspection reports whether the annotation asks for an inspection.
func needsInspection(r *round) bool {
	mode, isSet := r.Annotations[metal3.InspectAnnotationPrefix]
	return isSet && mode != inspectDisabled
}

func (o *Operator) inspect(ctx context.Context, r *round) (outcome, error) {
	if r.InspectionDisabled() {
		r.Status.ErrorCount = 0
		return moveTo(metal3.StatePreparing), nil
	}
	found, p := r.server.Inspect(ctx, needsInspection(r))
	if p.Problem != "" {
		return fail(r, metal3.InspectionError, p.Problem), nil
	}
	if p.Started {
		if isRemoved, err := o.removeRequests(ctx, r); isRemoved || err != nil {
			return wait(0), err
		}
	}
	if !p.Done || found == nil {
		return poll(r), nil
	}
	clearError(r, metal3.OperationalStatusOK)
	r.Status.HardwareDetails = found.HardwareDetails.DeepCopy()
	if err := o.replaceHardware(ctx, r, found); err != nil {
		return outcome{}, err
	}
	r.Status.ErrorCount = 0
	return moveTo(metal3.StatePreparing), nil
}

// removeRequests removes the annotations that asked for the inspection that has begun, and for a reboot, and reports whether there were any.
func (o *Operator) removeRequests(ctx context.Context, r *round) (isRemoved bool, err error) {
	if needsInspection(r) {
		delete(r.Annotations, metal3.InspectAnnotationPrefix)
		isRemoved = true
	}
	if hasAnnotation(r, metal3.RebootAnnotationPrefix) {
		delete(r.Annotations, metal3.RebootAnnotationPrefix)
		isRemoved = true
	}
	if !isRemoved {
		return false, nil
	}
	return true, o.updateMetadata(ctx, r)
}

func newHardwareData(r *round) *unstructured.Unstructured {
	data := &unstructured.Unstructured{}
	data.SetGroupVersionKind(metal3.GroupVersion.WithKind("HardwareData"))
	data.SetNamespace(r.Namespace)
	data.SetName(r.Name)
	return data
}

// readHardware returns the HardwareData of the host, which has its name, or nil.
func (o *Operator) readHardware(ctx context.Context, r *round) (*unstructured.Unstructured, error) {
	data := newHardwareData(r)
	if err := o.o.Client.Get(ctx, client.ObjectKeyFromObject(r.BareMetalHost), data); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return data, nil
}

// replaceHardware deletes the HardwareData of an inspection before and creates another. Its users see that as a deletion.
func (o *Operator) replaceHardware(ctx context.Context, r *round, found *Hardware) error {
	before, err := o.readHardware(ctx, r)
	if err != nil {
		return err
	}
	if before != nil {
		controllerutil.RemoveFinalizer(before, HardwareFinalizer)
		if err := o.o.Client.Update(ctx, before); err != nil {
			return fmt.Errorf("release the HardwareData of host %s: %w", r.Name, err)
		}
		if err := o.o.Client.Delete(ctx, before); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the HardwareData of host %s: %w", r.Name, err)
		}
	}
	if !r.DeletionTimestamp.IsZero() {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return err
	}
	data := newHardwareData(r)
	data.SetFinalizers([]string{HardwareFinalizer})
	data.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(r.BareMetalHost, metal3.GroupVersion.WithKind("BareMetalHost"))})
	if err := unstructured.SetNestedMap(data.Object, fields, "spec", "hardware"); err != nil {
		return err
	}
	if err := o.o.Client.Create(ctx, data); err != nil {
		return fmt.Errorf("create the HardwareData of host %s: %w", r.Name, err)
	}
	return nil
}

// adoptHardware lets the HardwareData of a deleted host go. To another it gives what an earlier inspection found, and reports whether it changed the host.
func (o *Operator) adoptHardware(ctx context.Context, r *round) (isChanged bool, err error) {
	data, err := o.readHardware(ctx, r)
	if err != nil || data == nil {
		return false, err
	}
	if !r.DeletionTimestamp.IsZero() && controllerutil.RemoveFinalizer(data, HardwareFinalizer) {
		if err := o.o.Client.Update(ctx, data); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("release the HardwareData of host %s: %w", r.Name, err)
		}
	}
	fields, isSet, _ := unstructured.NestedMap(data.Object, "spec", "hardware")
	if !isSet {
		return false, nil
	}
	details := &metal3.HardwareDetails{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, details); err != nil {
		return false, fmt.Errorf("read the HardwareData of host %s: %w", r.Name, err)
	}
	return o.writeDetails(ctx, r, details)
}

// writeDetails writes what the HardwareData says into the host where it has nothing yet, and reports whether it did.
func (o *Operator) writeDetails(ctx context.Context, r *round, details *metal3.HardwareDetails) (isChanged bool, err error) {
	if o.o.Conditions && r.Spec.Architecture == "" && details.CPU.Arch != "" {
		if err := unstructured.SetNestedField(r.raw.Object, details.CPU.Arch, "spec", "architecture"); err != nil {
			return false, err
		}
		return true, o.updateMetadata(ctx, r)
	}
	if r.Status.HardwareDetails == nil {
		r.Status.HardwareDetails = details
		return true, o.save(ctx, r)
	}
	return false, nil
}

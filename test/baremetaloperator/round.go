package baremetaloperator

import (
	"fmt"
	"math"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// round is one look at one host.
type round struct {
	*metal3.BareMetalHost
	// raw is the same object with what the Go type has no field for.
	raw    *unstructured.Unstructured
	server Server
	// credentials are the Secret of the BMC; nil: they could not be read.
	credentials *credentials
	attempts
}

// attempts are the fields of the status that count failed installations. The Go type that the tests are built with has none for them.
type attempts struct {
	// failed counts the installations of the image that have failed one after the other.
	failed int64
	// lastImage is the image of the last installation that was begun.
	lastImage *metal3.Image
}

func (r *round) readAttempts() error {
	r.failed, _, _ = unstructured.NestedInt64(r.raw.Object, "status", "provisioningFailCount")
	image, isSet, _ := unstructured.NestedMap(r.raw.Object, "status", "lastAttemptedImage")
	if !isSet {
		return nil
	}
	r.lastImage = &metal3.Image{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(image, r.lastImage); err != nil {
		return fmt.Errorf("read the last image of host %s: %w", r.Name, err)
	}
	return nil
}

func (r *round) writeAttempts(status map[string]any) error {
	status["provisioningFailCount"] = r.failed
	if r.lastImage == nil {
		return nil
	}
	image, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.lastImage)
	if err != nil {
		return fmt.Errorf("write the last image of host %s: %w", r.Name, err)
	}
	status["lastAttemptedImage"] = image
	return nil
}

// outcome is what a look led to.
type outcome struct {
	// isDirty is true when the status is to be written.
	isDirty bool
	// keepsConditions is true when the conditions stay as they are.
	keepsConditions bool
	// after is when to look again. A negative time means that only a change leads to another look.
	after time.Duration
	// next is the state that follows; empty: none.
	next metal3.ProvisioningState
}

func wait(after time.Duration) outcome              { return outcome{after: after} }
func update(after time.Duration) outcome            { return outcome{isDirty: true, after: after} }
func moveTo(state metal3.ProvisioningState) outcome { return outcome{isDirty: true, next: state} }

// changeState moves the host to the state.
func (o *Operator) changeState(r *round, next metal3.ProvisioningState) {
	now, status := metav1.NewTime(o.o.Now()), &r.Status
	if m := r.OperationMetricForState(status.Provisioning.State); m != nil && !m.Start.IsZero() && m.End.IsZero() {
		m.End = now
	}
	if m := r.OperationMetricForState(next); m != nil && (m.Start.IsZero() || !m.End.IsZero()) {
		*m = metal3.OperationMetric{Start: now}
	}
	status.Provisioning.State = next
	switch next {
	case metal3.StateRegistering, metal3.StateInspecting, metal3.StateProvisioning:
		status.Provisioning.BootMode = r.BootMode()
	}
}

// maxDoublings limits the time after which an error is retried to 8 h 32 min.
const maxDoublings = 9

// backoff returns the time after which the error is retried that is the count-th in a row. The real one takes between half of it and all of it.
func backoff(count int) time.Duration {
	return time.Duration(math.Exp2(float64(min(count, maxDoublings)))) * time.Minute
}

// fail writes the error into the status. It is retried after a time that doubles with each error.
func fail(r *round, kind metal3.ErrorType, message string) outcome {
	s := &r.Status
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = metal3.OperationalStatusError, kind, message
	s.ErrorCount++
	return update(backoff(s.ErrorCount))
}

// clearError removes the error, sets the operational status, and returns an outcome that is dirty when that changed anything.
func clearError(r *round, status metal3.OperationalStatus) outcome {
	s := &r.Status
	o := outcome{isDirty: s.OperationalStatus != status || s.ErrorType != "" || s.ErrorMessage != ""}
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = status, "", ""
	return o
}

// poll removes the error because an operation is under way, and looks again soon.
func poll(r *round) outcome {
	done := clearError(r, metal3.OperationalStatusOK)
	done.after = pollInterval
	return done
}

// delay makes the host wait until others have ended.
func delay(r *round) outcome {
	r.Status.OperationalStatus = metal3.OperationalStatusDelayed
	return update(backoff(1))
}

func (o *Operator) hasCapacity(r *round) bool {
	return o.o.Capacity == nil || o.o.Capacity(client.ObjectKeyFromObject(r.BareMetalHost))
}

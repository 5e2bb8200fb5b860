package step

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictPause is the time after which a reconcile that ended in a conflict is repeated. The watch event of the newer object usually
// arrives before.
const conflictPause = time.Second

type kind int

const (
	done kind = iota
	wait
	retry
	stuck
)

// Outcome is how a reconcile ended. Make one with Done, Wait, Retry or Stuck.
type Outcome struct {
	kind  kind
	why   string
	after time.Duration
	err   error
}

// Done is the outcome of a reconcile after which there is nothing to do until a watched object changes.
func Done() Outcome { return Outcome{kind: done} }

// Wait reconciles again after a time. why is for the log. A time of zero or less counts as a second: controller-runtime would not
// reconcile again, and a deadline that has just passed would be missed.
func Wait(why string, after time.Duration) Outcome {
	if after <= 0 {
		after = time.Second
	}
	return Outcome{kind: wait, why: why, after: after}
}

// Retry reconciles again with back-off because of err. If err is nil, it is Done.
func Retry(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Outcome{kind: retry, why: err.Error(), err: err}
}

// Stuck waits for a person or for a change of a watched object. The object is not reconciled again after a time.
func Stuck(why string) Outcome { return Outcome{kind: stuck, why: why} }

// Result returns the outcome as a result of controller-runtime. A conflict is not an error: another writer was first, and the object is
// reconciled again.
func (o Outcome) Result() (reconcile.Result, error) {
	switch o.kind {
	case wait:
		return reconcile.Result{RequeueAfter: o.after}, nil
	case retry:
		if isConflictOnly(o.err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil
		}
		return reconcile.Result{}, o.err
	default:
		return reconcile.Result{}, nil
	}
}

// String returns the outcome for logs and tests.
func (o Outcome) String() string {
	switch o.kind {
	case wait:
		return fmt.Sprintf("wait %s: %s", o.after, o.why)
	case retry:
		return "retry: " + o.why
	case stuck:
		return "stuck: " + o.why
	default:
		return "done"
	}
}

// isConflictOnly tells whether err is a conflict. An error that joins a conflict with another error is not.
func isConflictOnly(err error) bool {
	for {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				if !isConflictOnly(e) {
					return false
				}
			}
			return true
		}
		if status, ok := err.(apierrors.APIStatus); ok {
			return apierrors.IsConflict(status.(error))
		}
		if err = errors.Unwrap(err); err == nil {
			return false
		}
	}
}

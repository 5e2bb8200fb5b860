package step

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictPause is how long a reconcile whose object had changed meanwhile waits for its cache. The watch event of
// the newer object usually comes first; the pause only serves when it is lost.
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

// Done: nothing is left to do until something watched changes.
func Done() Outcome { return Outcome{kind: done} }

// Wait looks again after a time; why is for the log. A time of zero or less is a second: it stands for "soon", and
// a deadline that has just passed must not turn into "never".
func Wait(why string, after time.Duration) Outcome {
	if after <= 0 {
		after = time.Second
	}
	return Outcome{kind: wait, why: why, after: after}
}

// Retry tries again with back-off because of err. A nil err is Done.
func Retry(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Outcome{kind: retry, why: err.Error(), err: err}
}

// Stuck: only a person, or a change of something watched, mends it. There is no further try by time.
func Stuck(why string) Outcome { return Outcome{kind: stuck, why: why} }

// Result maps the outcome to controller-runtime's result. It is the only place that does. An optimistic lock that was
// lost is no error: somebody else wrote first, and the reconcile starts over from what they wrote.
func (o Outcome) Result() (reconcile.Result, error) {
	switch o.kind {
	case wait:
		return reconcile.Result{RequeueAfter: o.after}, nil
	case retry:
		if onlyConflict(o.err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil
		}
		return reconcile.Result{}, o.err
	default:
		return reconcile.Result{}, nil
	}
}

// String says the outcome in words, for logs and tests.
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

// onlyConflict: an error that joins a conflict with another one must be seen.
func onlyConflict(err error) bool {
	for {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				if !onlyConflict(e) {
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

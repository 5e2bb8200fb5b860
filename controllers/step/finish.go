package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// maxNote is the API server's limit on an event's note, in bytes.
const maxNote = 1024

// Writer is what Finish writes with.
type Writer struct {
	// Client writes to the management cluster.
	Client client.Client
	// Recorder takes the events.
	Recorder events.EventRecorder
}

// Finish ends a reconcile. It writes the status of after where it differs from before's, as one merge patch under
// after's resourceVersion, then emits the events and their log lines, then maps the outcome. When nothing differs
// nothing is written. When the write fails no event is told and the write's error counts, joined with the outcome's;
// a lost optimistic lock is no error. An object that is gone has no status to write.
func Finish(ctx context.Context, w Writer, before, after client.Object, events []event.Event, o Outcome) (reconcile.Result, error) {
	if err := writeStatus(ctx, w.Client, before, after); err != nil {
		return Retry(errors.Join(o.err, fmt.Errorf("write status: %w", err))).Result()
	}
	logger := log.FromContext(ctx)
	for _, e := range events {
		logger.Info(e.Message, "reason", e.Reason, "action", e.Action)
		w.Recorder.Eventf(after, nil, e.Type, e.Reason, e.Action, "%s", v1alpha1.Truncate(e.Message, maxNote))
	}
	logger.V(1).Info("Reconciled", "outcome", o.String())
	return o.Result()
}

func writeStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	change, err := statusPatch(before, after)
	if err != nil || change == nil {
		return err
	}
	// The answer goes to a copy: the caller's object stays what it decided.
	answer := after.DeepCopyObject().(client.Object)
	return client.IgnoreNotFound(c.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, change)))
}

// statusPatch is the merge patch from before's status to after's; nil when they are equal.
func statusPatch(before, after client.Object) ([]byte, error) {
	whole, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	var difference map[string]json.RawMessage
	if err := json.Unmarshal(whole, &difference); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	status, differs := difference["status"]
	if !differs {
		return nil, nil
	}
	// The resourceVersion also guards against an object that was deleted and made again under the same name.
	lock := map[string]string{"resourceVersion": after.GetResourceVersion()}
	return json.Marshal(map[string]any{"metadata": lock, "status": status})
}

// IsConflict tells whether err is a lost optimistic lock and nothing else.
func IsConflict(err error) bool {
	return err != nil && onlyConflict(err)
}

// Kind is what messages call an object: NodeType. An object that was read by a typed client does not say it itself; its type then has
// the name of the kind, under which schemes register it.
func Kind(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// maxMessage keeps conditions readable; the API server's own limit is 32 KiB.
const maxMessage = 1024

// SetCondition sets one condition and returns whether it changed. lastTransitionTime stays unless the status changed.
// The message is cut to 1024 bytes.
func SetCondition(conditions *[]metav1.Condition, generation int64, now time.Time, typ string, status metav1.ConditionStatus, reason, message string) bool {
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: typ, Status: status, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: v1alpha1.Truncate(message, maxMessage),
	})
}

// ConditionEvents returns an event for each of the condition types whose status or reason differs between before and after: Normal
// for a condition that is True now, Warning for another. A change of the message alone makes no event.
func ConditionEvents(before, after []metav1.Condition, action string, types ...string) []event.Event {
	var out []event.Event
	for _, typ := range types {
		was, is := meta.FindStatusCondition(before, typ), meta.FindStatusCondition(after, typ)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		out = append(out, event.New(is.Status != metav1.ConditionTrue, is.Reason, action, is.Message))
	}
	return out
}

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// Writer has the clients that Finish writes with.
type Writer struct {
	// Client writes to the management cluster.
	Client client.Client
	// Recorder publishes the events.
	Recorder events.EventRecorder
}

// Finish ends a reconcile. It writes the status of after, as a merge patch with the resourceVersion of after, publishes the events and
// their log lines, and maps the outcome. If the status equals that of before, nothing is written. If the write fails, no event is
// published and the error is returned, joined with that of the outcome. A conflict is not an error. If the object does not exist any
// more, no status is written.
func Finish(ctx context.Context, w Writer, before, after client.Object, events []event.Event, o Outcome) (reconcile.Result, error) {
	if err := writeStatus(ctx, w.Client, before, after); err != nil {
		return Retry(errors.Join(o.err, fmt.Errorf("write status: %w", err))).Result()
	}
	logger := log.FromContext(ctx)
	for _, e := range events {
		logger.Info(e.Message, "reason", e.Reason, "action", e.Action)
		w.Recorder.Eventf(after, nil, e.Type, e.Reason, e.Action, "%s", e.Message)
	}
	logger.V(1).Info("Reconciled", "outcome", o.String())
	return o.Result()
}

func writeStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		return nil // it was removed with its last finalizer
	}
	change, err := statusPatch(before, after)
	if err != nil || change == nil {
		return err
	}
	// The response is decoded into a copy, so that the object of the caller does not change.
	answer := after.DeepCopyObject().(client.Object)
	return client.IgnoreNotFound(c.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, change)))
}

// statusPatch returns the merge patch from the status of before to that of after, and nil if they are equal.
func statusPatch(before, after client.Object) ([]byte, error) {
	was, is := onlyStatus(before), onlyStatus(after)
	if equality.Semantic.DeepEqual(was, is) { // most often, and it costs a tenth of what follows
		return nil, nil
	}
	patch, err := client.MergeFrom(was).Data(is)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	var difference map[string]json.RawMessage
	if err := json.Unmarshal(patch, &difference); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	status, differs := difference["status"]
	if !differs {
		return nil, nil
	}
	// With the resourceVersion an object that was deleted and created again under the same name is not changed.
	lock := map[string]string{"resourceVersion": after.GetResourceVersion()}
	return json.Marshal(map[string]any{"metadata": lock, "status": status})
}

// onlyStatus returns an object that has nothing but the status of the other one, so that the rest is not compared.
func onlyStatus(o client.Object) client.Object {
	from := reflect.ValueOf(o).Elem()
	out := reflect.New(from.Type())
	out.Elem().FieldByName("Status").Set(from.FieldByName("Status"))
	return out.Interface().(client.Object)
}

// IsConflict tells whether err is a conflict and is joined with no other error.
func IsConflict(err error) bool {
	return err != nil && isConflictOnly(err)
}

// Kind returns the kind of an object for messages, such as NodeType. An object that was read by a typed client has no kind in its type
// meta; the name of its Go type is used then.
func Kind(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// maxMessage is the limit of a condition's message in bytes, so that it stays readable. The API server allows 32 KiB.
const maxMessage = 1024

// SetCondition sets one condition. lastTransitionTime stays unless the status changed.
// The message becomes one line of at most 1024 bytes.
func SetCondition(conditions *[]metav1.Condition, generation int64, now time.Time, typ string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: typ, Status: status, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: input.Line(message, maxMessage),
	})
}

// NotReadyReason returns why an object is not Ready, by its conditions; empty: it is Ready.
func NotReadyReason(conditions []metav1.Condition) string {
	switch ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		return "nobody has judged it yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason + ": " + ready.Message
	}
	return ""
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

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxNote is the API server's limit on an event's note, in bytes.
const maxNote = 1024

// Types of events, as in Kubernetes.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// Event is told once the status that it speaks of is written. Its reason is the condition's.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is a condition's reason.
	Reason string
	// Action is what the controller did or tried: Claim, Erase, Validate.
	Action string
	// Message is for people.
	Message string
}

// Told is an event: a Warning, or Normal.
func Told(warning bool, reason, action, message string) Event {
	e := Event{Type: Normal, Reason: reason, Action: action, Message: message}
	if warning {
		e.Type = Warning
	}
	return e
}

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
func Finish(ctx context.Context, w Writer, before, after client.Object, told []Event, o Outcome) (reconcile.Result, error) {
	if err := writeStatus(ctx, w.Client, before, after); err != nil {
		return Retry(errors.Join(o.err, fmt.Errorf("write status: %w", err))).Result()
	}
	logger := log.FromContext(ctx)
	for _, e := range told {
		logger.Info(e.Message, "reason", e.Reason, "action", e.Action)
		w.Recorder.Eventf(after, nil, e.Type, e.Reason, e.Action, "%s", Trim(e.Message, maxNote))
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

// Trim cuts text to at most limit bytes at the end of a character.
func Trim(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := limit - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
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
		LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: Trim(message, maxMessage),
	})
}

// Changes gives an event for each of the condition types whose status or reason differs between before and after. A
// condition that holds is Normal, another is a Warning. A condition that only changed its message is no event.
func Changes(before, after []metav1.Condition, action string, types ...string) []Event {
	var told []Event
	for _, typ := range types {
		was, is := meta.FindStatusCondition(before, typ), meta.FindStatusCondition(after, typ)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		told = append(told, Told(is.Status != metav1.ConditionTrue, is.Reason, action, is.Message))
	}
	return told
}

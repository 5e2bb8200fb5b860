package step

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

package invariants

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnEventOfTwoControllersIsFound(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	event := func(by, about, reason, message string, at time.Duration) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{UID: types.UID(about)}, Reason: reason, Message: message, ReportingController: by, EventTime: metav1.NewMicroTime(noon.Add(at)),
		}
	}
	first := event("ingot-validation", "m1", "ChecksFailed", "7 of 8", 0)
	for name, c := range map[string]struct {
		second corev1.Event
		want   int
	}{
		"the same reason":         {event("ingot-machine", "m1", "ChecksFailed", "seven of eight", time.Second), 1},
		"the same words":          {event("ingot-machine", "m1", "Validating", "7 of 8", -time.Second), 1},
		"the same controller":     {event("ingot-validation", "m1", "ChecksFailed", "7 of 8", 0), 0},
		"another object":          {event("ingot-machine", "m2", "ChecksFailed", "7 of 8", 0), 0},
		"another moment":          {event("ingot-machine", "m1", "ChecksFailed", "7 of 8", time.Minute), 0},
		"another reason and text": {event("ingot-machine", "m1", "Ready", "passes", 0), 0},
	} {
		if got := repeatedEvents([]corev1.Event{first, c.second}); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

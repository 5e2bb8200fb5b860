package invariants

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sameMoment is how far apart two controllers may notice the same change.
const sameMoment = 5 * time.Second

// RepeatedEvents returns the events that two controllers have published about the same object, of the same reason or with the same words, at the same moment.
func RepeatedEvents(ctx context.Context, c client.Client) ([]string, error) {
	var list corev1.EventList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("look for repeated events: %w", err)
	}
	return repeatedEvents(list.Items), nil
}

func repeatedEvents(events []corev1.Event) []string {
	var out []string
	for i := range events {
		for j := range events[:i] {
			a, b := &events[j], &events[i]
			if a.InvolvedObject.UID != b.InvolvedObject.UID || publisher(a) == publisher(b) || a.Reason != b.Reason && a.Message != b.Message || publishedAt(a).Sub(publishedAt(b)).Abs() > sameMoment {
				continue
			}
			out = append(out, fmt.Sprintf("%s and %s have both published about %s %s/%s: %s: %s | %s: %s",
				publisher(a), publisher(b), a.InvolvedObject.Kind, a.InvolvedObject.Namespace, a.InvolvedObject.Name, a.Reason, a.Message, b.Reason, b.Message))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func publisher(e *corev1.Event) string { return cmp.Or(e.ReportingController, e.Source.Component) }

func publishedAt(e *corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

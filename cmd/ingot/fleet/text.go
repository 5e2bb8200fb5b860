package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// timeSince says how long ago a time was, in the words of kubectl.
func timeSince(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(*at), 0))
}

// timeUntil says how far away a deadline is, or for how long it has passed.
func timeUntil(at *time.Time, now time.Time) string {
	switch {
	case at == nil:
		return "-"
	case now.After(*at):
		return duration.HumanDuration(now.Sub(*at)) + " over"
	default:
		return "in " + duration.HumanDuration(at.Sub(now))
	}
}

func writeJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

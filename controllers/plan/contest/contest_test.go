package contest

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWhatOthersRemoveIsPlacedEverMoreSeldom(t *testing.T) {
	var last *Placement
	var placed []time.Duration
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(time.Second) {
		c := New(watched.Clock{Now: now}, last, false)
		if c.PauseLeft() > 0 {
			if text := c.Text("the label team", false, "somebody"); !strings.Contains(text, "by sweeper") || !strings.Contains(text, "placed again at "+now.Add(c.PauseLeft()).Format(time.TimeOnly)) {
				t.Fatalf("in a pause: %s", text)
			}
			continue
		}
		next := c.Next("sweeper")
		last, placed = &next, append(placed, now.Sub(start))
	}
	want := []time.Duration{0, 1, 2, 3, 13, 33, 73, 153, 313, 613}
	for i := range want {
		if placed[i] != want[i]*time.Second {
			t.Fatalf("placed after %v", placed)
		}
	}
	if n := len(placed); n < 15 || n > 21 || last.Removals != int32(n-1) {
		t.Errorf("placed %d times in an hour, %d removals", n, last.Removals)
	}
	c := New(watched.Clock{Now: last.At.Add(Window - time.Second)}, last, true)
	if !c.IsContested() || c.WindowLeft() != time.Second {
		t.Errorf("before the window is over: %+v", c)
	}
	if c = New(watched.Clock{Now: last.At.Add(Window)}, last, true); c.IsContested() || c.IsRecent() || c.WindowLeft() != 0 || c.PauseLeft() != 0 {
		t.Errorf("after the window: %+v", c)
	}
	if p := New(watched.Clock{Now: start}, nil, false).Next("nobody"); p.Removals != 0 || p.RemovedBy != "" {
		t.Errorf("the first placement: %+v", p)
	}
}

func TestTheLastWriterOfAFieldIsFound(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: start.Add(time.Duration(minute) * time.Minute)}
	}
	entry := func(manager, fields string, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const taints = `{"f:spec":{"f:taints":{}}}`
	for want, fields := range map[string][]metav1.ManagedFieldsEntry{
		"sweeper": {entry("kubelet", `{"f:status":{}}`, at(9)), entry("ingot-manager", taints, at(1)), entry("sweeper", taints, at(2)), entry("old", taints, at(0))},
		"":        {entry("kubelet", `{"f:status":{}}`, at(9)), entry("broken", `[`, at(10)), {Manager: "none"}},
		"ingot":   {entry("sweeper", taints, at(1)), entry("ingot-manager", taints, at(2))},
		"timed":   {entry("untimed", taints, nil), entry("timed", taints, at(1))},
	} {
		if want == "ingot" {
			want = "" // who removed something before Ingot placed something else has left no trace
		}
		if got := LastWriter(fields, "f:spec", "f:taints"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

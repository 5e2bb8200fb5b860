package observation

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

func TestTheViewSaysThatNoManagerWorks(t *testing.T) {
	if lines := (Observation{}).StateLines(); len(lines) != 0 {
		t.Errorf("while one works: %q", lines)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, outage := range []*leaderlease.Outage{{Since: &at}, {}} {
		lines := Observation{Outage: outage}.StateLines()
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "no ingot-manager works") || strings.Contains(lines[0], "since 2026-11-20T12:00:00Z") != (outage.Since != nil) {
			t.Errorf("%+v: %q", outage, lines)
		}
	}
}

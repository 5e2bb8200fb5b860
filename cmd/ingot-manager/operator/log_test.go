package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestWhatTheEndCancelsIsNoError(t *testing.T) {
	cancelled := fmt.Errorf("update lease: %w", context.Canceled)
	for name, c := range map[string]struct {
		isEnding bool
		err      error
		want     string
	}{
		"at work":                  {false, cancelled, "level=ERROR"},
		"at the end":               {true, cancelled, "level=INFO"},
		"another error at the end": {true, errors.New("refused"), "level=ERROR"},
	} {
		var out bytes.Buffer
		log := slog.New(endHandler{slog.NewTextHandler(&out, nil), func() bool { return c.isEnding }})
		log.With("logger", "lease").WithGroup("g").Error("Failed to update lease", "err", c.err)
		if !strings.Contains(out.String(), c.want) || !strings.Contains(out.String(), "logger=lease") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
	var out bytes.Buffer
	log := slog.New(endHandler{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}), func() bool { return true }})
	if log.Error("Failed", "err", cancelled); out.Len() > 0 {
		t.Errorf("below the level of the log: %s", out.String())
	}
}

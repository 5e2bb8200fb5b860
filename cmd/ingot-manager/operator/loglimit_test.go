package operator

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestAMessageWithoutEndIsLeftOutAndCounted(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1e9, 0)
	log := slog.New(limitHandler{slog.NewTextHandler(&out, nil), &messageLines{clock: func() time.Time { return now }, of: map[string]*lineCount{}}}).With("logger", "boot")
	for range linesAMinute + 50 {
		log.Info("agent registered")
	}
	log.Info("agent finished")
	if got := strings.Count(out.String(), "\n"); got != linesAMinute+1 {
		t.Errorf("%d lines, want %d of the one message and the other one", got, linesAMinute)
	}
	out.Reset()
	now = now.Add(time.Minute)
	log.Info("agent registered")
	log.Info("agent registered")
	if text := out.String(); strings.Count(text, "leftOut=50") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("a minute later: %s", text)
	}
	for i := range 10 * maxMessages {
		log.Info(fmt.Sprint("message ", i))
	}
	if h, ok := log.Handler().(limitHandler); !ok || len(h.lines.of) > maxMessages {
		t.Errorf("%T counts more than %d messages", log.Handler(), maxMessages)
	}
}

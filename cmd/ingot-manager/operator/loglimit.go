package operator

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// linesAMinute is how many lines with one message there are in a minute. A thousand servers that boot at once have some hundred.
	linesAMinute = 600
	// maxMessages is how many messages are counted. Ours are constants; those of libraries may have names in them.
	maxMessages = 1024
)

// limitHandler leaves out lines of a message that comes too often, and says how many with the next one. Without it: whoever reaches a listener fills the disk of the
// node, or pushes what a person looks for out of the log.
type limitHandler struct {
	slog.Handler
	lines *messageLines
}

// messageLines counts the lines of each message.
type messageLines struct {
	clock func() time.Time

	mu sync.Mutex
	of map[string]*lineCount
}

type lineCount struct {
	since         time.Time
	written, left int
}

// count counts a line. isLeftOut says that it is not written; before is how many were not written before it.
func (l *messageLines) count(message string) (isLeftOut bool, before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	c := l.of[message]
	if c == nil {
		if len(l.of) >= maxMessages {
			clear(l.of)
		}
		c = &lineCount{since: now}
		l.of[message] = c
	}
	if now.Sub(c.since) >= time.Minute || now.Before(c.since) {
		before = c.left
		*c = lineCount{since: now}
	}
	if c.written >= linesAMinute {
		c.left++
		return true, 0
	}
	c.written++
	return false, before
}

// Handle implements slog.Handler.
func (h limitHandler) Handle(ctx context.Context, r slog.Record) error {
	isLeftOut, before := h.lines.count(r.Message)
	if isLeftOut {
		return nil
	}
	if before > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", before))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h limitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limitHandler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h limitHandler) WithGroup(name string) slog.Handler {
	return limitHandler{h.Handler.WithGroup(name), h.lines}
}

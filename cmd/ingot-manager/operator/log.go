package operator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

// newLog returns the log of a process that ends with ctx.
func newLog(ctx context.Context, l settings.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // settings know four levels, which slog all knows
	}
	options := &slog.HandlerOptions{Level: level}
	isEnding := func() bool { return ctx.Err() != nil }
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, options)
	if l.Format == "text" {
		handler = slog.NewTextHandler(os.Stderr, options)
	}
	return slog.New(endHandler{limitHandler{handler, &messageLines{clock: time.Now, of: map[string]*lineCount{}}}, isEnding})
}

// endHandler writes, while the process ends, requests that its end has cancelled as information. Without it: libraries log them as errors, such as the renewal of
// the leader's lease, and an operator who restarts the manager looks for a fault.
type endHandler struct {
	slog.Handler
	isEnding func() bool
}

// Handle implements slog.Handler.
func (h endHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && h.isEnding() && isCancelled(r) {
		r.Level = slog.LevelInfo
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h endHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return endHandler{h.Handler.WithAttrs(attrs), h.isEnding}
}

// WithGroup implements slog.Handler.
func (h endHandler) WithGroup(name string) slog.Handler {
	return endHandler{h.Handler.WithGroup(name), h.isEnding}
}

// isCancelled reports whether the record is about a cancelled request.
func isCancelled(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		err, isError := a.Value.Any().(error)
		// Some libraries keep the text alone.
		found = isError && (errors.Is(err, context.Canceled) || strings.HasSuffix(err.Error(), context.Canceled.Error()))
		return !found
	})
	return found
}

// redirectLogs sends the log of controller-runtime, of client-go (klog), and of net/http, which uses the standard log, to one log.
func redirectLogs(log *slog.Logger) {
	sink := logr.FromSlogHandler(log.Handler())
	ctrl.SetLogger(sink)
	klog.SetLoggerWithOptions(sink.WithName("client-go"), klog.ContextualLogger(true))
	slog.SetDefault(log)
}

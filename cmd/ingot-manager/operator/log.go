package operator

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

func newLog(l settings.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // settings know four levels, which slog all knows
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return slog.New(slog.NewTextHandler(os.Stderr, options))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, options))
}

// redirectLogs sends the log of controller-runtime, of client-go (klog), and of net/http, which uses the standard log, to one log.
func redirectLogs(log *slog.Logger) {
	sink := logr.FromSlogHandler(log.Handler())
	ctrl.SetLogger(sink)
	klog.SetLoggerWithOptions(sink.WithName("client-go"), klog.ContextualLogger(true))
	slog.SetDefault(log)
}

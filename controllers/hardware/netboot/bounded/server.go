package bounded

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	// maxHeader is how many bytes the header of a request has: a token and a key have less than one kilobyte.
	maxHeader = 16 << 10
	// headerTimeout is also the time for the handshake of TLS.
	headerTimeout, idleTimeout = 10 * time.Second, 2 * time.Minute
)

// NewServer returns a server for listeners within limits, with limits of its own for headers.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // connections that clients reset are of no interest
	}
}

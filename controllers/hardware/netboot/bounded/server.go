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
	// bodyTimeout is for the whole body of a request. The largest are an agent's inventory and the part of its log, of a megabyte.
	bodyTimeout = time.Minute
)

// withBodyTimeout has the body of a request end in time, also one that the handler does not read. A long answer to a request without a body has no such time.
func withBodyTimeout(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // not supported is a test's own writer
		}
		handler.ServeHTTP(w, r)
	})
}

// NewServer returns a server for listeners within limits, with limits of its own for headers and bodies.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: withBodyTimeout(handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // connections that clients reset are of no interest
	}
}

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// httpServer serves a handler as a part of the manager, in every replica.
type httpServer struct {
	address string
	handler http.Handler
	log     *slog.Logger
	// files must hold what needs names, or no server boots.
	files fs.FS
	needs []string

	listening atomic.Bool
}

// shutdownGrace lets agents finish a report when the manager stops.
const shutdownGrace = 5 * time.Second

// Start serves until the context ends.
func (s *httpServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("boot service: %w: set boot.address to a free address", err)
	}
	if err := s.missing(); err != nil {
		s.log.Warn("Servers cannot boot the agent", "err", err)
	}
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // a server that resets its connection is no event
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		s.listening.Store(false)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		err := server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // an agent whose transfer breaks asks again, and another replica answers
		}
		stopped <- err
	}()
	s.listening.Store(true)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("boot service: %w", err)
	}
	return <-stopped
}

// check is the readiness of the boot service.
func (s *httpServer) check(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("the boot service does not listen yet")
	}
	return s.missing()
}

// missing tells which file of the agent is not there.
func (s *httpServer) missing() error {
	for _, name := range s.needs {
		if _, err := fs.Stat(s.files, name); err != nil {
			return fmt.Errorf("boot.files lacks a file of the agent: %w: `ingot image ramdisk` makes the initrd", err)
		}
	}
	return nil
}

// NeedLeaderElection is false: any replica answers a server that boots.
func (s *httpServer) NeedLeaderElection() bool { return false }

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

	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/bounded"
)

// bootServer serves the boot service, in every replica.
type bootServer struct {
	address string
	// tls is its HTTPS, at an address of its own.
	tls     bootTLS
	handler http.Handler
	log     *slog.Logger
	// service makes the URLs of boot images, beside what handler serves.
	service *netboot.Service
	// hasImages says that it makes boot images for servers.
	hasImages bool
	// files must have the requiredFiles, or no server boots.
	files         fs.FS
	requiredFiles []string

	listening atomic.Bool
}

// shutdownGrace is the time for requests to end when the manager stops.
const shutdownGrace = 5 * time.Second

// bounded returns the listener with the limits of the boot service. Each of its listeners has them.
func (s *bootServer) bounded(listener net.Listener) net.Listener {
	return bounded.New(listener, bounded.Default(), time.Now, s.log)
}

// Start serves until the context ends.
func (s *bootServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("boot service: %w: set boot.address to a free address", err)
	}
	listeners := []net.Listener{s.bounded(listener)}
	if secure, err := s.tls.listener(ctx, s.bounded); err != nil {
		return errors.Join(err, listener.Close())
	} else if secure != nil {
		listeners = append(listeners, secure)
	}
	if err := s.checkFiles(); err != nil {
		s.log.Warn("Servers cannot boot the agent", "err", err)
	}
	server := bounded.NewServer(s.handler, s.log)
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		s.listening.Store(false)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		err := server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // an agent whose transfer is interrupted asks again, and another replica answers
		}
		stopped <- err
	}()
	s.listening.Store(true)
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { served <- server.Serve(listener) }()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("boot service: %w", errors.Join(err, server.Close()))
	}
	return <-stopped
}

// checkReady is the readiness check of the boot service.
func (s *bootServer) checkReady(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("the boot service does not listen yet")
	}
	if s.tls.source != nil {
		if _, err := s.tls.pins(context.Background()); err != nil {
			return err
		}
	}
	return s.checkFiles()
}

// checkFiles returns an error for the first file of the agent that is missing.
func (s *bootServer) checkFiles() error {
	for _, name := range s.requiredFiles {
		if _, err := fs.Stat(s.files, name); err != nil {
			return fmt.Errorf("boot.files lacks a file of the agent: %w: `ingot image ramdisk` makes them", err)
		}
	}
	return nil
}

// NeedLeaderElection returns false: every replica answers servers that boot.
func (s *bootServer) NeedLeaderElection() bool { return false }

package bootcertificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// cacheTime is how long what was read is used. The overlap of authorities is much longer.
	cacheTime = 15 * time.Second
	// readTimeout is less than the time that an agent waits for a connection.
	readTimeout = 5 * time.Second
)

// Source gives the certificate and the pins to the boot service, in every replica. It is safe for concurrent use.
type Source struct {
	// Reader reads Secrets without a cache.
	Reader client.Reader
	// Served names the Secret that Keeper maintains.
	Served client.ObjectKey
	// Clock tells the time.
	Clock func() time.Time
	// Log records failures.
	Log *slog.Logger

	mu          sync.Mutex
	readAt      time.Time
	certificate *tls.Certificate
	pins        []string
	// authorities are those of the pins, in PEM.
	authorities []byte
}

// GetCertificate implements tls.Config.GetCertificate.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(hello.Context()); err != nil {
		return nil, err
	}
	return s.certificate, nil
}

// Pins returns the pins for a command line that is made now. It fails while there is no certificate.
func (s *Source) Pins(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	return s.pins, nil
}

// Authorities returns the authorities that agents and firmware trust, in PEM. It fails while there is no certificate.
func (s *Source) Authorities(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	return s.authorities, nil
}

// refresh reads the Secret if that is due. While the API server does not answer, what was read last stays.
func (s *Source) refresh(ctx context.Context) error {
	if s.certificate != nil && s.Clock().Sub(s.readAt) < cacheTime {
		return nil
	}
	// A client that hangs up does not end the reading, which is for all of them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	err := s.read(ctx)
	switch {
	case err == nil:
	case s.certificate == nil:
		return fmt.Errorf("the boot service's certificate: %w", err)
	default:
		s.Log.Warn("The boot service's certificate could not be read again; the last one is served", "err", err)
	}
	s.readAt = s.Clock()
	return nil
}

func (s *Source) read(ctx context.Context) error {
	secret, err := readSecret(ctx, s.Reader, s.Served)
	if err != nil {
		return err
	}
	served := servedOf(secret)
	pins := served.Pins()
	certificate, err := served.TLS()
	if err == nil && len(pins) == 0 {
		err = errors.New("it has no authority")
	}
	if err != nil {
		return fmt.Errorf("the certificate in Secret %s: %w: the replica that leads makes it", s.Served, err)
	}
	s.certificate, s.pins, s.authorities = certificate, pins, served.Trusted
	return nil
}

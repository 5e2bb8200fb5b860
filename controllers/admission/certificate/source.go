package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheTime is how long a certificate is served before it is read again. API servers connect rarely, and the certificate of a
// deleted Secret must not be served for long.
const cacheTime = 15 * time.Second

// readTimeout is less than the time that an API server waits for a connection.
const readTimeout = 2 * time.Second

// Source provides the certificate to TLS connections in every replica.
type Source struct {
	// Reader reads from the API server.
	Reader client.Reader
	// Secret is the name of the Secret that Rotator maintains.
	Secret client.ObjectKey
	// Clock tells the time.
	Clock func() time.Time
	// Log records failures.
	Log logr.Logger

	mu     sync.Mutex
	readAt time.Time
	served *tls.Certificate
}

// GetCertificate implements tls.Config.GetCertificate. While the API server does not answer, it returns the certificate that was read
// last.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != nil && s.Clock().Sub(s.readAt) < cacheTime {
		return s.served, nil
	}
	ctx, cancel := context.WithTimeout(hello.Context(), readTimeout)
	defer cancel()
	found, err := s.read(ctx)
	s.readAt = s.Clock()
	switch {
	case err == nil:
		s.served = found
	case s.served == nil:
		return nil, err
	default:
		s.Log.Info("The webhook's certificate could not be read again; the last one is served", "error", err.Error())
	}
	return s.served, nil
}

func (s *Source) read(ctx context.Context) (*tls.Certificate, error) {
	var secret corev1.Secret
	if err := s.Reader.Get(ctx, s.Secret, &secret); err != nil {
		return nil, fmt.Errorf("read the webhook's certificate: %w", err)
	}
	stored := storedPairs(&secret).Serving
	pair, err := tls.X509KeyPair(stored.Certificate, stored.Key)
	if err != nil {
		return nil, errors.New("read the webhook's certificate: Secret " + s.Secret.String() + " has none; the replica that leads makes another")
	}
	return &pair, nil
}

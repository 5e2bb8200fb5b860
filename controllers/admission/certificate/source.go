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

// fresh is how long a certificate that was read is served without looking again: API servers connect seldom, and a
// Secret that was deleted must not be served for long.
const fresh = 15 * time.Second

// readLimit is less than the patience of an API server that connects.
const readLimit = 2 * time.Second

// Source gives the certificate to connections, in every replica.
type Source struct {
	// Reader reads without a cache.
	Reader client.Reader
	// Secret that Keeper keeps.
	Secret client.ObjectKey
	// Clock tells the time.
	Clock func() time.Time
	// Log takes what goes wrong.
	Log logr.Logger

	mu     sync.Mutex
	tried  time.Time
	served *tls.Certificate
}

// GetCertificate is for tls.Config. While the API server does not answer, the certificate that was read last is served.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != nil && s.Clock().Sub(s.tried) < fresh {
		return s.served, nil
	}
	ctx, cancel := context.WithTimeout(hello.Context(), readLimit)
	defer cancel()
	found, err := s.read(ctx)
	s.tried = s.Clock()
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
	stored := read(&secret).Serving
	pair, err := tls.X509KeyPair(stored.Certificate, stored.Key)
	if err != nil {
		return nil, errors.New("read the webhook's certificate: Secret " + s.Secret.String() + " has none; the replica that leads makes another")
	}
	return &pair, nil
}

package host

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secrets keeps for a moment what a BMC is reached with: while an installation runs, its host is looked at every few seconds.
// Only what proved complete is kept, and nothing that a BMC has refused.
type secrets struct {
	mu    sync.Mutex
	known map[types.NamespacedName]keptSecret
}

type keptSecret struct {
	secret *corev1.Secret
	at     time.Time
}

// recent is the Secret, if it was read within the time.
func (s *secrets) recent(key types.NamespacedName, now time.Time, within time.Duration) *corev1.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, kept := range s.known {
		if now.Sub(kept.at) >= within {
			delete(s.known, key) // nobody's credentials stay longer in memory
		}
	}
	return s.known[key].secret
}

// remember keeps the Secret from when it was read.
func (s *secrets) remember(secret *corev1.Secret, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(secret)
	if s.known[key].secret == secret {
		return
	}
	if s.known == nil {
		s.known = map[types.NamespacedName]keptSecret{}
	}
	s.known[key] = keptSecret{secret: secret, at: now}
}

func (s *secrets) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

// readSecret reads from the API server what was not read within the last tenth of Timeouts.Steady.
func (r *Reconciler) readSecret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if kept := r.secrets.recent(key, r.Clock(), r.Timeouts.Steady/10); kept != nil {
		return kept, nil
	}
	var secret corev1.Secret
	if err := r.Direct.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	return &secret, nil
}

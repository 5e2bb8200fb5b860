package host

import (
	"context"
	"maps"
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
	// swept is when what was too old was let go of last.
	swept time.Time
}

type keptSecret struct {
	secret *corev1.Secret
	at     time.Time
}

// recent is the Secret and when it was read, if that was within the time.
func (s *secrets) recent(key types.NamespacedName, now time.Time, within time.Duration) keptSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= within {
		// Nobody's credentials stay in memory for good. Every host's look comes here: not each looks through all.
		maps.DeleteFunc(s.known, func(_ types.NamespacedName, kept keptSecret) bool { return now.Sub(kept.at) >= within })
		s.swept = now
	}
	if kept := s.known[key]; now.Sub(kept.at) < within {
		return kept
	}
	return keptSecret{}
}

// remember keeps the Secret from when it was read, unless it was read again meanwhile: many hosts share one.
func (s *secrets) remember(read keptSecret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(read.secret)
	if known := s.known[key]; known.secret != nil && !read.at.After(known.at) {
		return
	}
	if s.known == nil {
		s.known = map[types.NamespacedName]keptSecret{}
	}
	s.known[key] = read
}

func (s *secrets) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

// readSecret reads from the API server what was not read within the last tenth of Timeouts.Steady.
func (r *Reconciler) readSecret(ctx context.Context, key types.NamespacedName) (keptSecret, error) {
	read := keptSecret{at: r.Clock()}
	if kept := r.secrets.recent(key, read.at, r.Timeouts.Steady/10); kept.secret != nil {
		return kept, nil
	}
	read.secret = &corev1.Secret{}
	return read, r.Direct.Get(ctx, key, read.secret)
}

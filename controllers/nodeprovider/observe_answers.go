package nodeprovider

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// answers remembers what was answered last about the specification of each NodeProvider, and when it was asked: every host that is created starts a reconcile. A manager that
// starts asks again.
type answers[T any] struct {
	mu   sync.Mutex
	last map[types.UID]answered[T]
}

type answered[T any] struct {
	generation int64
	answer     T
	at         time.Time
}

// get returns the last answer; the time is zero where there is none for this specification.
func (a *answers[T]) get(provider *v1alpha1.NodeProvider) (answer T, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, isAsked := a.last[provider.UID]; isAsked && last.generation == provider.Generation {
		return last.answer, last.at
	}
	return answer, time.Time{}
}

func (a *answers[T]) set(provider *v1alpha1.NodeProvider, answer T, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[types.UID]answered[T]{}
	}
	a.last[provider.UID] = answered[T]{provider.Generation, answer, at}
}

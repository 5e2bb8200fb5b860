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

// get returns the last answer about this specification, the zero value if there is none, and how long it counts: for the interval since it was asked. It is
// asked anew when nothing is left. A clock that was set back does not delay that.
func (a *answers[T]) get(provider *v1alpha1.NodeProvider, now time.Time, interval time.Duration) (answer T, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, isAsked := a.last[provider.UID]
	switch {
	case !isAsked || last.generation != provider.Generation:
		return answer, 0
	case last.at.After(now):
		return last.answer, 0
	default:
		return last.answer, interval - now.Sub(last.at)
	}
}

func (a *answers[T]) set(provider *v1alpha1.NodeProvider, answer T, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[types.UID]answered[T]{}
	}
	a.last[provider.UID] = answered[T]{provider.Generation, answer, at}
}

package host

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// generations remembers when the generation that a host has was first seen. It is not kept: after a restart every host's is new.
type generations struct {
	mu    sync.Mutex
	known map[types.NamespacedName]firstSeen
}

type firstSeen struct {
	generation int64
	at         time.Time
}

// seen says since when the host is known to have the generation.
func (g *generations) seen(host types.NamespacedName, generation int64, now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	first, known := g.known[host]
	if known && first.generation == generation {
		return first.at
	}
	if g.known == nil {
		g.known = map[types.NamespacedName]firstSeen{}
	}
	g.known[host] = firstSeen{generation: generation, at: now}
	return now
}

// forget a host that is gone.
func (g *generations) forget(host types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, host)
}

package entitlement

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listAge is how old what was read of a shared cluster may be for a look that no change of the Entitlement has led to. Without it: each of 200 tenants of a
// cluster has all of them listed every half minute.
const listAge = 5 * time.Second

// forgetAge is the age at which what nobody asks for any more is dropped.
const forgetAge = time.Minute

// pageSize is how many objects one answer has. Without it: the answer with the claims of a large cluster is more than tenantaccess takes from a tenant, and
// the cluster is used for nothing for a while.
const pageSize = 200

// lists keeps what was read last of each kind of each shared cluster. One worker reads, and the others wait for it.
type lists struct {
	mu      sync.Mutex
	entries map[listKey]*listEntry
	// writes counts the writes in each cluster.
	writes map[client.Client]int
}

// listKey has the client of the cluster and not its name: another kubeconfig may reach another cluster.
type listKey struct {
	cluster client.Client
	kind    string
}

type listEntry struct {
	mu    sync.Mutex
	value any
	at    time.Time
	// writes is how many there were in the cluster before it was read.
	writes int
}

// read returns what of a kind is in the shared cluster, as of now with isFresh, or of a moment ago. Nobody may change it.
func (l *lists) read(cluster client.Client, kind string, now time.Time, isFresh bool, of func() (any, error)) (any, error) {
	entry := l.entry(listKey{cluster, kind}, now)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	writes := l.writesOf(cluster)
	if !isFresh && entry.value != nil && entry.writes == writes && now.Sub(entry.at) < listAge {
		return entry.value, nil
	}
	value, err := of()
	if err != nil {
		return nil, err
	}
	entry.value, entry.at, entry.writes = value, now, writes
	return value, nil
}

func (l *lists) entry(key listKey, now time.Time) *listEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries, l.writes = map[listKey]*listEntry{}, map[client.Client]int{}
	}
	if found := l.entries[key]; found != nil {
		return found
	}
	for key, e := range l.entries {
		if e.mu.TryLock() {
			if now.Sub(e.at) > forgetAge {
				delete(l.entries, key)
				delete(l.writes, key.cluster)
			}
			e.mu.Unlock()
		}
	}
	l.entries[key] = &listEntry{at: now}
	return l.entries[key]
}

func (l *lists) writesOf(cluster client.Client) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[cluster]
}

// noteWrite has everything of a cluster read anew in which something was written.
func (l *lists) noteWrite(cluster client.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes != nil {
		l.writes[cluster]++
	}
}

// forEachPage reads a list page by page, each into a new one: what a page leaves out would otherwise be that of the one before.
func forEachPage[L client.ObjectList](ctx context.Context, c client.Client, newPage func() L, each func(L), options ...client.ListOption) error {
	next := ""
	for {
		page := newPage()
		if err := c.List(ctx, page, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)...); err != nil {
			return err
		}
		each(page)
		list, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

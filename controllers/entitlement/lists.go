package entitlement

import (
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listAge is how old what was read of a shared cluster may be for a look that no change of the Entitlement has led to. Without it: each of 200 tenants of a
// cluster has all of them listed every half minute.
const listAge = 5 * time.Second

// forgetAge is the age at which what nobody asks for any more is dropped.
const forgetAge = time.Minute

// lists keeps what was read last of each kind of each shared cluster. It has the client of a cluster and not its name: another kubeconfig may reach another
// cluster.
type lists struct {
	mu       sync.Mutex
	clusters map[client.Client]*clusterLists
}

// clusterLists are guarded by the lock of lists.
type clusterLists struct {
	// askedAt is when somebody asked for one of them last.
	askedAt time.Time
	// writes counts the writes in the cluster.
	writes int
	kinds  map[string]*list
}

// list is what was read of one kind. One worker reads it under the lock, and the others wait for it.
type list struct {
	mu     sync.Mutex
	value  any
	readAt time.Time
	// writes is how many there were in the cluster before it was read.
	writes int
}

// get returns what of a kind is in the shared cluster, as of now with isFresh, or of a moment ago. Nobody may change it.
func (l *lists) get(cluster client.Client, kind string, now time.Time, isFresh bool, read func() (any, error)) (any, error) {
	found := l.find(cluster, kind, now)
	found.mu.Lock()
	defer found.mu.Unlock()
	writes := l.countWrites(cluster)
	if !isFresh && found.value != nil && found.writes == writes && now.Sub(found.readAt) < listAge {
		return found.value, nil
	}
	value, err := read()
	if err != nil {
		return nil, err
	}
	found.value, found.readAt, found.writes = value, now, writes
	return value, nil
}

// find returns the list of a kind of a cluster, and drops those of clusters that nobody asks for any more.
func (l *lists) find(cluster client.Client, kind string, now time.Time) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.clusters, func(_ client.Client, c *clusterLists) bool { return now.Sub(c.askedAt) > forgetAge })
	c := l.clusters[cluster]
	if c == nil {
		if l.clusters == nil {
			l.clusters = map[client.Client]*clusterLists{}
		}
		c = &clusterLists{kinds: map[string]*list{}}
		l.clusters[cluster] = c
	}
	c.askedAt = now
	if c.kinds[kind] == nil {
		c.kinds[kind] = &list{}
	}
	return c.kinds[kind]
}

// noteWrite has everything of a cluster read anew in which something was written.
func (l *lists) noteWrite(cluster client.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clusters[cluster]; c != nil {
		c.writes++
	}
}

func (l *lists) countWrites(cluster client.Client) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clusters[cluster]; c != nil {
		return c.writes
	}
	return 0
}

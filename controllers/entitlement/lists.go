package entitlement

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// listAge is how old a list of a shared cluster may be for a look that no change of the Entitlement has led to. Without it: each of 200 tenants of a cluster
// has all of them listed every half minute.
const listAge = 5 * time.Second

// lists keeps the last list of each kind of each shared cluster.
type lists struct {
	mu   sync.Mutex
	kept map[listKey]keptList
}

// listKey has the access and not the name of the cluster: another kubeconfig may reach another cluster.
type listKey struct {
	access *tenantaccess.Access
	kind   string
}

type keptList struct {
	at   time.Time
	list client.ObjectList
}

// read returns a list of the shared cluster. Nobody may change it. With isFresh it is read now.
func (l *lists) read(ctx context.Context, access *tenantaccess.Access, kind string, now time.Time, isFresh bool, empty client.ObjectList, options ...client.ListOption) (client.ObjectList, error) {
	key := listKey{access, kind}
	l.mu.Lock()
	kept, found := l.kept[key]
	l.mu.Unlock()
	if found && !isFresh && now.Sub(kept.at) < listAge {
		return kept.list, nil
	}
	if err := access.Client.List(ctx, empty, options...); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[listKey]keptList{}
	}
	for key, kept := range l.kept {
		if now.Sub(kept.at) >= listAge {
			delete(l.kept, key)
		}
	}
	l.kept[key] = keptList{now, empty}
	return empty, nil
}

// forget drops the lists of a cluster, in which something was written.
func (l *lists) forget(access *tenantaccess.Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.kept {
		if key.access == access {
			delete(l.kept, key)
		}
	}
}

package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/queue"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Limits of an Ironic without spec.ironic.limits: those of Ironic's own configuration.
const (
	defaultDeploys = 250
	defaultCleans  = 50
)

// turnAge is how long a turn that was taken counts while the cache does not show the attempt. A write that failed leaves no attempt.
const turnAge = time.Minute

// waitAge is how long a host keeps its place that does not ask for it: it may be paused, or nobody can reach what it needs. A process that has just started
// waits as long for each.
const waitAge = 3 * time.Minute

// turns are the turns that this process has given to hosts and that the cache may not show yet.
//
// Without it: an installer has room for one more host, two workers read the same HostRecords in the same moment, and both begin.
type turns struct {
	mu    sync.Mutex
	taken map[client.ObjectKey]turn
	// asked is when each host has last asked for its place, and since when the first one did.
	asked map[client.ObjectKey]time.Time
	since time.Time
	// earlier are the versions of the HostRecords of a namespace, by name, that the API server had when the first turn in it was taken, as far as the cache has
	// not shown them since.
	earlier map[string]map[string]string
}

// turn is an attempt that is about to be written.
type turn struct {
	operation hardware.Operation
	number    int64
	owner     string
	// since is when it began, and at the same by the steady clock.
	since, at time.Time
}

// limitOf returns on how many hosts of the NodeProvider the operation may be done at the same time; 0: there is no limit.
func limitOf(provider *v1alpha1.NodeProvider, operation hardware.Operation) int {
	if provider.Spec.Ironic == nil {
		return 0
	}
	limits := provider.Spec.Ironic.Limits
	if operation == hardware.OpInstall {
		return int(cmp.Or(limits.Deploys, defaultDeploys))
	}
	return int(cmp.Or(limits.Cleans, defaultCleans))
}

// places returns the places of the host in the queues of its NodeProvider, where an attempt may begin.
func (r *Reconciler) places(ctx context.Context, provider *v1alpha1.NodeProvider, record *v1alpha1.HostRecord) (map[hardware.Operation]int, error) {
	if provider.Spec.Ironic == nil || record.Status.Wanted.IsOpen() {
		return nil, nil
	}
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	records, err := listRecords(ctx, r.Client, record.Namespace)
	if err != nil {
		return nil, err
	}
	places := map[hardware.Operation]int{}
	for _, operation := range []hardware.Operation{hardware.OpInstall, hardware.OpErase} {
		places[operation] = r.place(records, provider, record, operation)
	}
	return places, nil
}

// takeTurn reports whether the Decision may be written: it begins no attempt that its installer limits, or it is the host's turn still.
func (r *Reconciler) takeTurn(ctx context.Context, provider *v1alpha1.NodeProvider, record *v1alpha1.HostRecord, d plan.Decision) (isTaken bool, err error) {
	operation, isLimited := d.BeginsLimitedAttempt(record.Status.Wanted)
	if !isLimited || limitOf(provider, operation) == 0 {
		return true, nil
	}
	r.turns.mu.Lock()
	defer r.turns.mu.Unlock()
	records, err := r.recordsOfTurn(ctx, record.Namespace)
	if err != nil || r.place(records, provider, record, operation) > 0 {
		return false, err
	}
	if r.turns.taken == nil {
		r.turns.taken = map[client.ObjectKey]turn{}
	}
	r.turns.taken[client.ObjectKeyFromObject(record)] = turn{
		operation: operation, number: d.Record.Wanted.Number, owner: queue.OwnerOf(record, operation), since: r.Clock.Now(), at: serverclock.Steady(r.Clock),
	}
	return true, nil
}

// recordsOfTurn returns the HostRecords of a namespace as the cache has them when it shows every one at least as the API server had it when this process took its
// first turn, and as the API server has them until then. Without it: another process was the leader until now, the cache of this one does not show the last
// attempts yet, and more hosts than the limit are at work. Later only this process begins attempts, and it knows its own turns. The caller holds the lock.
func (r *Reconciler) recordsOfTurn(ctx context.Context, namespace string) ([]v1alpha1.HostRecord, error) {
	earlier, isKnown := r.turns.earlier[namespace]
	if isKnown && len(earlier) == 0 {
		return listRecords(ctx, r.Client, namespace)
	}
	present, err := listRecords(ctx, r.APIReader, namespace)
	if err != nil {
		return nil, err
	}
	if !isKnown {
		if r.turns.earlier == nil {
			r.turns.earlier = map[string]map[string]string{}
		}
		r.turns.earlier[namespace] = versionsOf(present)
		return present, nil
	}
	cached, err := listRecords(ctx, r.Client, namespace)
	if err != nil {
		return nil, err
	}
	existing, shown := versionsOf(present), versionsOf(cached)
	maps.DeleteFunc(earlier, func(name, version string) bool {
		order, err := resourceversion.CompareResourceVersion(shown[name], version)
		return existing[name] == "" || err == nil && order >= 0
	})
	return present, nil
}

// versionsOf returns the resource versions of the HostRecords of a namespace, by name.
func versionsOf(records []v1alpha1.HostRecord) map[string]string {
	versions := map[string]string{}
	for i := range records {
		versions[records[i].Name] = records[i].ResourceVersion
	}
	return versions
}

func listRecords(ctx context.Context, reader client.Reader, namespace string) ([]v1alpha1.HostRecord, error) {
	var records v1alpha1.HostRecordList
	if err := reader.List(ctx, &records, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HostRecords: %w", err)
	}
	return records.Items, nil
}

// turnLost is the outcome of a reconcile that may not begin its attempt: another host has taken the turn meanwhile.
func turnLost(err error, pause time.Duration) step.Outcome {
	if err != nil {
		return step.Retry(err)
	}
	return step.Wait("another host has begun meanwhile", pause)
}

// place returns the place of the host by the HostRecords of its namespace. The caller holds the lock.
func (r *Reconciler) place(records []v1alpha1.HostRecord, provider *v1alpha1.NodeProvider, record *v1alpha1.HostRecord, operation hardware.Operation) int {
	now := serverclock.Steady(r.Clock)
	r.turns.forget(records, now)
	r.turns.note(client.ObjectKeyFromObject(record), now)
	entries := slices.DeleteFunc(queue.EntriesOf(records, operation), func(e queue.Entry) bool {
		return e.State == queue.Waiting && r.turns.isAbsent(client.ObjectKey{Namespace: record.Namespace, Name: e.Host}, now)
	})
	for key, t := range r.turns.taken {
		if key.Namespace == record.Namespace && t.operation == operation {
			entries = slices.DeleteFunc(entries, func(e queue.Entry) bool { return e.Host == key.Name && e.State == queue.Waiting })
			entries = append(entries, queue.Entry{Host: key.Name, Owner: t.owner, State: queue.AtWork, Since: t.since})
		}
	}
	if !slices.ContainsFunc(entries, func(e queue.Entry) bool { return e.Host == record.Name && e.State == queue.Waiting }) {
		entries = append(entries, queue.Entry{Host: record.Name, Owner: queue.OwnerOf(record, operation), State: queue.Waiting, Since: r.Clock.Now()})
	}
	return queue.Place(entries, record.Name, limitOf(provider, operation))
}

// note keeps that the host has asked for its place.
func (t *turns) note(host client.ObjectKey, now time.Time) {
	if t.asked == nil {
		t.asked, t.since = map[client.ObjectKey]time.Time{}, now
	}
	t.asked[host] = now
}

// isAbsent reports whether a host that waits has not asked for its place for long. Without it: the first host of the queue is paused, and nobody comes after it.
func (t *turns) isAbsent(host client.ObjectKey, now time.Time) bool {
	last, isKnown := t.asked[host]
	if !isKnown {
		last = t.since
	}
	return now.Sub(last) > waitAge
}

// forget removes the turns whose attempts the cache shows, and those that led to none.
func (t *turns) forget(records []v1alpha1.HostRecord, now time.Time) {
	for i := range records {
		key := client.ObjectKeyFromObject(&records[i])
		if w := records[i].Status.Wanted; w != nil && w.Number >= t.taken[key].number {
			delete(t.taken, key)
		}
	}
	maps.DeleteFunc(t.asked, func(_ client.ObjectKey, at time.Time) bool { return now.Sub(at) > waitAge })
	for key, taken := range t.taken {
		if now.Sub(taken.at) > turnAge {
			delete(t.taken, key)
		}
	}
}

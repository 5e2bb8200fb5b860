package entitlement

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
)

// journal keeps what has happened to claims until it is reported. Without it: a claim that begins and ends between two looks is never seen.
type journal struct {
	mu    sync.Mutex
	pages map[place]*page
	// held are the holdings of the look before, by the uid of the Entitlement: its status has the first ones only. Without an entry there was no look before.
	held map[types.UID][]v1alpha1.DeviceHolding
}

// place is a namespace of a shared cluster.
type place struct {
	cluster   types.NamespacedName
	namespace string
}

// page is what has happened in one place.
type page struct {
	changes []entitlement.Change
	// writtenAt is when the last change came.
	writtenAt time.Time
}

// The limits of what is kept for a namespace that is no tenant's, or whose Entitlement cannot be reconciled. Of more than these changes the claims that are
// there are still reported.
const (
	maxPage = 1000
	pageAge = 10 * time.Minute
)

// note writes down what the change of a claim is, if it is anything.
func (j *journal) note(cluster types.NamespacedName, before, after *resourcev1.ResourceClaim, now time.Time) {
	changes := entitlement.ChangesOf(before, after)
	if len(changes) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pages == nil {
		j.pages = map[place]*page{}
	}
	at := place{cluster, changes[0].Namespace}
	if j.pages[at] == nil {
		for other, p := range j.pages {
			if now.Sub(p.writtenAt) > pageAge {
				delete(j.pages, other)
			}
		}
		j.pages[at] = &page{}
	}
	p := j.pages[at]
	p.writtenAt = now
	if p.changes = append(p.changes, changes...); len(p.changes) > maxPage {
		p.changes = slices.Clone(p.changes[len(p.changes)-maxPage:])
	}
}

// take returns what was written down of the tenant's namespaces. It is called before the claims are read: what is read is then never older.
func (j *journal) take(obs *observation) []entitlement.Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	var seen []entitlement.Change
	for _, namespace := range obs.input.Namespaces {
		at := place{clusterOf(obs.entitlement), namespace}
		if p := j.pages[at]; p != nil {
			seen = append(seen, p.changes...)
			delete(j.pages, at)
		}
	}
	return seen
}

// compare returns the holdings, with all that has changed since the look before or, in the first look, since the status was written.
func (j *journal) compare(obs *observation, seen []entitlement.Change, now []v1alpha1.DeviceHolding) ([]v1alpha1.DeviceHolding, []entitlement.Change) {
	j.mu.Lock()
	known, isKnown := j.held[obs.entitlement.UID]
	j.mu.Unlock()
	if !isKnown {
		known = obs.entitlement.Status.Holdings
	}
	return entitlement.Compare(known, seen, now, !isKnown)
}

// keep remembers the holdings, whose changes are reported.
func (j *journal) keep(uid types.UID, holdings []v1alpha1.DeviceHolding) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		j.held = map[types.UID][]v1alpha1.DeviceHolding{}
	}
	j.held[uid] = holdings
}

// forget drops what is kept of an Entitlement that is gone.
func (j *journal) forget(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.held, uid)
}

// putBack writes down again what could not be reported.
func (j *journal) putBack(cluster types.NamespacedName, changes []entitlement.Change, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range slices.Backward(changes) {
		at := place{cluster, c.Namespace}
		if j.pages == nil {
			j.pages = map[place]*page{}
		}
		if j.pages[at] == nil {
			j.pages[at] = &page{writtenAt: now}
		}
		j.pages[at].changes = slices.Insert(j.pages[at].changes, 0, c)
	}
}

func clusterOf(e *v1alpha1.Entitlement) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.TenantClusterRef.Name}
}

// reportChanges makes an Event and a log line of each change. An Event is named by what it reports, so that a manager that starts again in the middle makes no
// second one. It returns the changes that could not be reported.
func (r *Reconciler) reportChanges(ctx context.Context, e *v1alpha1.Entitlement, changes []entitlement.Change) ([]entitlement.Change, error) {
	logger := log.FromContext(ctx)
	for i, c := range changes {
		err := r.Client.Create(ctx, r.eventOf(e, c))
		switch {
		case apierrors.IsAlreadyExists(err):
			continue
		case err != nil:
			return changes[i:], fmt.Errorf("make the event of claim %s/%s: %w", c.Namespace, c.Claim, err)
		}
		logger.Info(c.Text(), "reason", c.Reason(), "tenant", e.Spec.Tenant, "claim", c.Namespace+"/"+c.Claim, "uid", c.UID, "node", c.Node, "since", c.Since.UTC())
	}
	return nil, nil
}

func (r *Reconciler) eventOf(e *v1alpha1.Entitlement, c entitlement.Change) *eventsv1.Event {
	prefix := strings.TrimRight(e.Name[:min(len(e.Name), maxEventPrefix)], ".-")
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", e.UID, c.UID, c.Reason(), c.Since.Unix()))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: prefix + "." + hex.EncodeToString(sum[:10])},
		EventTime:  metav1.NewMicroTime(r.Clock.Now()), ReportingController: name, ReportingInstance: name,
		Action: "Report", Reason: c.Reason(), Type: corev1.EventTypeNormal, Note: v1alpha1.Truncate("tenant "+e.Spec.Tenant+": "+c.Text(), maxNote),
		Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Entitlement", Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion},
	}
}

// The API server's limits on an event's note and, less what follows, on its name, in bytes.
const (
	maxNote        = 1024
	maxEventPrefix = 220
)

// ofClaim returns the Entitlements that a change of a claim may concern.
func (r *Reconciler) ofClaim(cluster types.NamespacedName, before, after *resourcev1.ResourceClaim) []reconcile.Request {
	namespace := cmp.Or(after, before).Namespace
	r.journal.note(cluster, before, after, r.Clock.Now())
	return r.requests(context.Background(), func(e *v1alpha1.Entitlement) bool {
		return clusterOf(e) == cluster && (e.Spec.Namespaces.Selector != nil || slices.Contains(e.Spec.Namespaces.Names, namespace))
	})
}

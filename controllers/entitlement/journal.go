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

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/step"
)

// journal keeps what has happened to claims until it is reported. Without it: a claim that begins and ends between two looks is never seen.
type journal struct {
	mu    sync.Mutex
	pages map[place]*page
	// held are the holdings of the look before, by the uid of the Entitlement: its status has the first ones only. Without an entry there was no look before.
	held map[types.UID][]v1alpha1.DeviceHolding
	// namespaces are those of each Entitlement in the look before.
	namespaces map[types.UID][]string
	// size is how many changes the pages have.
	size int
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
	maxPage    = 1000
	maxJournal = 20000
	pageAge    = 10 * time.Minute
)

// note writes down what the change of a claim is, if it is anything.
func (j *journal) note(cluster types.NamespacedName, before, after *resourcev1.ResourceClaim, now time.Time) {
	changes := entitlement.ChangesOf(before, after)
	if len(changes) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	at := place{cluster, changes[0].Namespace}
	if j.pages[at] == nil {
		for other, p := range j.pages {
			if now.Sub(p.writtenAt) > pageAge {
				j.remove(other)
			}
		}
	}
	p := j.page(at, now)
	// What does not fit is reported all the same where it lasts until the next look.
	if len(p.changes) < maxPage && j.size < maxJournal {
		p.changes = append(p.changes, changes...)
		j.size += len(changes)
	}
}

// page returns the page of a place. The caller must hold mu.
func (j *journal) page(at place, now time.Time) *page {
	if j.pages == nil {
		j.pages = map[place]*page{}
	}
	if j.pages[at] == nil {
		j.pages[at] = &page{}
	}
	j.pages[at].writtenAt = now
	return j.pages[at]
}

// remove drops a page. The caller must hold mu.
func (j *journal) remove(at place) {
	if p := j.pages[at]; p != nil {
		j.size -= len(p.changes)
		delete(j.pages, at)
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
			j.remove(at)
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

// keep remembers the holdings, whose changes are reported, and the namespaces.
func (j *journal) keep(uid types.UID, holdings []v1alpha1.DeviceHolding, namespaces []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		j.held, j.namespaces = map[types.UID][]v1alpha1.DeviceHolding{}, map[types.UID][]string{}
	}
	j.held[uid], j.namespaces[uid] = holdings, namespaces
}

// canConcern reports whether a namespace is, or may be, one of the Entitlement's. One that has just got the label of a selector is found by the steady look.
func (j *journal) canConcern(e *v1alpha1.Entitlement, namespace string) bool {
	if e.Spec.Namespaces.Selector == nil {
		return slices.Contains(e.Spec.Namespaces.Names, namespace)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	known, isKnown := j.namespaces[e.UID]
	return !isKnown || slices.Contains(known, namespace)
}

// forget drops what is kept of an Entitlement that is gone.
func (j *journal) forget(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.held, uid)
	delete(j.namespaces, uid)
}

// putBack writes down again what could not be reported.
func (j *journal) putBack(cluster types.NamespacedName, changes []entitlement.Change, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range slices.Backward(changes) {
		p := j.page(place{cluster, c.Namespace}, now)
		p.changes = slices.Insert(p.changes, 0, c)
		j.size++
	}
}

func clusterOf(e *v1alpha1.Entitlement) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.TenantClusterRef.Name}
}

// reportChanges makes an Event and a log line of each change. An Event is named by what it reports, so that a manager that starts again in the middle makes no
// second one.
func (r *Reconciler) reportChanges(ctx context.Context, e *v1alpha1.Entitlement, changes []entitlement.Change) error {
	logger := log.FromContext(ctx)
	for _, c := range changes {
		err := r.Client.Create(ctx, r.eventOf(e, c))
		switch {
		case apierrors.IsAlreadyExists(err):
			continue
		case err != nil:
			return fmt.Errorf("make the event of claim %s/%s: %w", c.Namespace, c.Claim, err)
		}
		logger.Info(c.Text(), "reason", c.Reason(), "tenant", e.Spec.Tenant, "claim", c.Namespace+"/"+c.Claim, "uid", c.UID, "node", c.Node, "since", c.Since.UTC())
	}
	return nil
}

func (r *Reconciler) eventOf(e *v1alpha1.Entitlement, c entitlement.Change) *eventsv1.Event {
	mark := fmt.Sprintf("%s %s %d %s", c.UID, c.Reason(), c.Since.Unix(), c.Mark)
	return r.newEvent(e, corev1.EventTypeNormal, c.Reason(), "Report", c.Text(), mark)
}

// newEvent returns an Event of an Entitlement that is named by a mark of what it reports.
func (r *Reconciler) newEvent(e *v1alpha1.Entitlement, typ, reason, action, text, mark string) *eventsv1.Event {
	prefix := strings.TrimRight(e.Name[:min(len(e.Name), maxEventPrefix)], ".-")
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", e.UID, mark))
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: prefix + "." + hex.EncodeToString(sum[:10])},
		EventTime:  metav1.NewMicroTime(r.Clock.Now()), ReportingController: name, ReportingInstance: name,
		Action: action, Reason: reason, Type: typ, Note: input.Line("tenant "+e.Spec.Tenant+": "+text, step.MaxNote),
		Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Entitlement", Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion},
	}
}

// maxEventPrefix is the API server's limit on an event's name, less what follows, in bytes.
const maxEventPrefix = 220

// ofClaim returns the Entitlements that a change of a claim may concern.
func (r *Reconciler) ofClaim(cluster types.NamespacedName, before, after *resourcev1.ResourceClaim) []reconcile.Request {
	namespace := cmp.Or(after, before).Namespace
	r.journal.note(cluster, before, after, r.Clock.Now())
	return r.requests(context.Background(), func(e *v1alpha1.Entitlement) bool {
		return clusterOf(e) == cluster && r.journal.canConcern(e, namespace)
	})
}

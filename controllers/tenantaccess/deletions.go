package tenantaccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// firstDeletionPause is how long after the first request to delete an object the tenant is not asked again. The pause doubles with each request.
	firstDeletionPause = 30 * time.Second
	// defaultDeletionPause is Deletions.MaxPause where that is 0.
	defaultDeletionPause = 2 * time.Minute
)

// Deletions remembers, by the uid of an object in a tenant's cluster, what came of the requests to delete it, and when it may be asked for again. The
// zero value is empty. It is lost at a restart, after which each deletion is requested once more. Without it: a webhook in the tenant's cluster fails,
// or an API server answers that a Node is deleted and keeps it, and the same request is sent again as fast as it is answered, for ever.
type Deletions struct {
	// MaxPause is the longest time between two requests; 0: two minutes.
	MaxPause time.Duration

	tried sync.Map
}

// deletion is what came of the last request.
type deletion struct {
	at    time.Time
	pause time.Duration
	// problem is why the object is still there, if it is.
	problem string
}

// Try requests the deletion of an object that was read with the client, under its uid. It returns why the tenant's API server refuses it, without
// the type of the error: a conflict that a tenant's webhook answers is none with another writer of an object of Ingot. An object that is gone is
// no error. A call that was ended for another tenant, or whose answer found no room
// beside others, is not remembered.
func (d *Deletions) Try(ctx context.Context, tenant client.Client, object client.Object, now time.Time) error {
	uid := object.GetUID()
	err := tenant.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) {
		d.tried.Delete(uid)
		return nil
	}
	if err != nil && (errors.Is(context.Cause(ctx), errTakenBack) || isCrowdedByOthers(err)) {
		// The tenant has refused nothing. Without it: a worker is taken back during the call, the Node counts as one that the tenant keeps, and its
		// server is powered on for the erase while the Node is still there. A call that took too long is the tenant's doing, and counts.
		return fmt.Errorf("deleting %s: %w", object.GetName(), err)
	}
	next := deletion{at: now, pause: firstDeletionPause, problem: "the tenant's API server answered that it is deleted, and keeps it"}
	if known, found := d.tried.Load(uid); found {
		next.pause = min(2*known.(deletion).pause, d.maxPause())
	}
	d.forgetOld(now)
	if err != nil {
		next.problem = RefusalText(err)
		d.tried.Store(uid, next)
		return refusal(next.problem)
	}
	d.tried.Store(uid, next)
	return nil
}

// refusal is the text of a tenant's refusal.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// Problem returns why an object that was just read is not removed. It is empty when its deletion may be requested now.
func (d *Deletions) Problem(object client.Object, now time.Time) string {
	if object.GetDeletionTimestamp() != nil {
		return FinalizersText(object)
	}
	if d.PauseLeft(object, now) == 0 {
		return ""
	}
	known, _ := d.tried.Load(object.GetUID())
	return known.(deletion).problem
}

// PauseLeft returns how long the deletion of an object must not be requested yet.
func (d *Deletions) PauseLeft(object client.Object, now time.Time) time.Duration {
	known, found := d.tried.Load(object.GetUID())
	if !found {
		return 0
	}
	last := known.(deletion)
	return max(last.at.Add(last.pause).Sub(now), 0)
}

// forgetOld removes what was not tried for twice the longest pause, so that the memory stays as small as the number of deletions under way.
func (d *Deletions) forgetOld(now time.Time) {
	d.tried.Range(func(uid, known any) bool {
		if now.Sub(known.(deletion).at) >= 2*d.maxPause() {
			d.tried.Delete(uid)
		}
		return true
	})
}

func (d *Deletions) maxPause() time.Duration { return cmp.Or(d.MaxPause, defaultDeletionPause) }

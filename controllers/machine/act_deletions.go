package machine

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// deletions remembers for lifecycle.DeletionMemory, by the uid of an object in a tenant's cluster, what came of the request to delete it. The zero
// value is empty. It is lost at a restart, after which each deletion is requested once more. Without it: a webhook in the tenant's cluster fails, or
// an API server answers that a Node is deleted and keeps it, and the same request is sent again twenty times a second, for ever.
type deletions struct{ tried sync.Map }

// deletion is what came of a request.
type deletion struct {
	at time.Time
	// problem is why the object is still there, if it is.
	problem string
}

// try requests the deletion of an object in the tenant's cluster. A refusal is returned without its type: a conflict that a tenant's webhook answers
// is none with another writer of the Machine, and must appear in its status.
func (d *deletions) try(ctx context.Context, obs *observation, object client.Object) error {
	uid := object.GetUID()
	err := obs.access.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	d.forgetOld(obs.facts.Now)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		d.tried.Store(uid, deletion{obs.facts.Now, "the tenant's API server answered that it is deleted, and keeps it"})
		return nil
	}
	problem := tenantaccess.RefusalText(err)
	d.tried.Store(uid, deletion{obs.facts.Now, problem})
	return errors.New(problem)
}

// problem returns why an object that was just read is not removed. It is empty when nobody has asked for its deletion lately.
func (d *deletions) problem(object client.Object, now time.Time) string {
	if object.GetDeletionTimestamp() != nil {
		return tenantaccess.FinalizersText(object)
	}
	known, found := d.tried.Load(object.GetUID())
	if !found || now.Sub(known.(deletion).at) >= lifecycle.DeletionMemory {
		return ""
	}
	return known.(deletion).problem
}

// forgetOld removes what is too old to be used, so that the memory stays as small as the number of deletions under way.
func (d *deletions) forgetOld(now time.Time) {
	d.tried.Range(func(uid, known any) bool {
		if now.Sub(known.(deletion).at) >= lifecycle.DeletionMemory {
			d.tried.Delete(uid)
		}
		return true
	})
}

package nodeprovider

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/step"
)

const (
	// installerInterval is how often a service that installs is asked, installerTimeout how long it has for its answer.
	installerInterval, installerTimeout = time.Minute, 10 * time.Second
)

// questions remembers when the service of a NodeProvider was asked last: every host that is created starts a reconcile.
type questions struct {
	mu   sync.Mutex
	last map[types.UID]question
}

type question struct {
	generation int64
	at         time.Time
}

// left returns the time until the service is asked again; 0 or less: now.
func (q *questions) left(provider *v1alpha1.NodeProvider, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, isAsked := q.last[provider.UID]
	if !isAsked || last.generation != provider.Generation || last.at.After(now) {
		return 0
	}
	return installerInterval - now.Sub(last.at)
}

func (q *questions) note(provider *v1alpha1.NodeProvider, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		q.last = map[types.UID]question{}
	}
	q.last[provider.UID] = question{provider.Generation, now}
}

// checkInstaller asks the service that installs the hosts, such as Ironic, and reports it in the status. It returns when it is due again; 0: never, because the NodeProvider
// has no such service, or its host namespace is not its own. Without the latter: a NodeProvider that names another one's namespace has a Secret from there sent to an address of its own.
func (r *Reconciler) checkInstaller(ctx context.Context, provider *v1alpha1.NodeProvider, ownsNamespace bool) time.Duration {
	if provider.Spec.Ironic == nil || !ownsNamespace {
		meta.RemoveStatusCondition(&provider.Status.Conditions, v1alpha1.ConditionInstallerReachable)
		return 0
	}
	now := r.Clock.Now()
	if left := r.asked.left(provider, now); left > 0 {
		return left
	}
	asking, cancel := context.WithTimeout(ctx, installerTimeout)
	defer cancel()
	answer, err := r.CheckInstaller(asking, provider)
	if ctx.Err() != nil {
		return time.Second // the manager stops, so the failed request means nothing
	}
	r.asked.note(provider, now)
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonInstallerAnswers, answer
	if err != nil {
		status, reason, message = metav1.ConditionFalse, cmp.Or(string(hardware.ReasonOf(err)), v1alpha1.ReasonInstallerUnreachable), err.Error()
	}
	// Errors have times and ports. Without this: the status is written with every question.
	if was := meta.FindStatusCondition(provider.Status.Conditions, v1alpha1.ConditionInstallerReachable); err != nil && was != nil && was.Status == status && was.Reason == reason && hardware.IsSameText(was.Message, message) {
		message = was.Message
	}
	step.SetCondition(&provider.Status.Conditions, provider.Generation, now, v1alpha1.ConditionInstallerReachable, status, reason, message)
	return installerInterval
}

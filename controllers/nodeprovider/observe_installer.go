package nodeprovider

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/step"
)

const (
	// installerInterval is how often a service that installs is asked, installerTimeout how long it has for its answer.
	installerInterval, installerTimeout = time.Minute, 10 * time.Second
)

// installerAnswer is what the service of a NodeProvider answered last.
type installerAnswer struct {
	status          metav1.ConditionStatus
	reason, message string
}

// checkInstaller asks the service that installs the hosts, such as Ironic, and reports it in the status. It returns when it is due again; 0: never, because the NodeProvider
// has no such service, or its hosts are not its own. Without the latter: a NodeProvider that names another one's namespace has a Secret from there sent to an address of its own.
func (r *Reconciler) checkInstaller(ctx context.Context, provider *v1alpha1.NodeProvider, hasHosts bool) time.Duration {
	if provider.Spec.Ironic == nil || !hasHosts {
		meta.RemoveStatusCondition(&provider.Status.Conditions, v1alpha1.ConditionInstallerReachable)
		return 0
	}
	now := r.Clock.Now()
	last, pause := r.installers.get(provider, now, installerInterval)
	if pause <= 0 {
		var isStopped bool
		if last, isStopped = r.askInstaller(ctx, provider, last); isStopped {
			return time.Second
		}
		r.installers.set(provider, last, now)
		pause = installerInterval
	}
	step.SetCondition(&provider.Status.Conditions, provider.Generation, now, v1alpha1.ConditionInstallerReachable, last.status, last.reason, last.message)
	return pause
}

// askInstaller asks the service. isStopped says that the manager stops, so that a failed request means nothing.
func (r *Reconciler) askInstaller(ctx context.Context, provider *v1alpha1.NodeProvider, last installerAnswer) (answer installerAnswer, isStopped bool) {
	asking, cancel := context.WithTimeout(ctx, installerTimeout)
	defer cancel()
	text, err := r.CheckInstaller(asking, provider)
	if err == nil {
		return installerAnswer{metav1.ConditionTrue, v1alpha1.ReasonInstallerAnswers, text}, ctx.Err() != nil
	}
	answer = installerAnswer{metav1.ConditionFalse, cmp.Or(string(hardware.ReasonOf(err)), v1alpha1.ReasonInstallerUnreachable), err.Error()}
	// Errors have times and ports. Without this: the status is written with every question.
	if last.status == answer.status && last.reason == answer.reason && hardware.IsSameText(last.message, answer.message) {
		answer = last
	}
	return answer, ctx.Err() != nil
}

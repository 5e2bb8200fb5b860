package nodeprovider

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/step"
)

// installerInterval is how often a service that installs is asked.
const installerInterval = time.Minute

// checkInstaller asks the service that installs the hosts, such as Ironic, and reports it in the status. It returns when it is due again; 0: never, because the NodeProvider
// has no such service. Without it: a wrong address or login is seen only when the first host is registered.
func (r *Reconciler) checkInstaller(ctx context.Context, provider *v1alpha1.NodeProvider) time.Duration {
	if provider.Spec.Ironic == nil {
		return 0
	}
	answer, err := r.CheckInstaller(ctx, provider)
	if ctx.Err() != nil {
		return time.Second // the manager stops, so the failed request means nothing
	}
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonInstallerAnswers, answer
	if err != nil {
		status, reason, message = metav1.ConditionFalse, cmp.Or(string(hardware.ReasonOf(err)), v1alpha1.ReasonInstallerUnreachable), err.Error()
	}
	step.SetCondition(&provider.Status.Conditions, provider.Generation, r.Clock.Now(), v1alpha1.ConditionInstallerReachable, status, reason, message)
	return installerInterval
}

package nodeprovider

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// permissionRecheckInterval is how often a missing permission is tried again: RoleBindings are not watched.
const permissionRecheckInterval = 15 * time.Second

// report sets the status to what was found.
func report(after *v1alpha1.NodeProvider, found *problem, now time.Time) step.Outcome {
	after.Status.ObservedGeneration = after.Generation
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, "the host namespace "+after.Spec.HostNamespace+" is this NodeProvider's"
	if warned, warning := caBundleWarning(after, now); warned != "" {
		reason, message = warned, message+"; "+warning
	}
	outcome := step.Done()
	if found != nil {
		status, reason, message = metav1.ConditionFalse, found.reason, found.message
		outcome = step.Stuck(found.message)
		if found.isMissingRights() {
			outcome = step.Wait(found.message, permissionRecheckInterval)
		}
	}
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionReady, status, reason, message)
	return outcome
}

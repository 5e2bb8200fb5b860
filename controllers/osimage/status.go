package osimage

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

const (
	// recheckAfter is the time between checks of an image that is Ready.
	recheckAfter = 10 * time.Minute
	// recheckAfterProblem is the time between checks of an image that is not Ready.
	recheckAfterProblem = time.Minute
)

// interval returns the time between two checks of the image.
func interval(image *v1alpha1.OSImage) time.Duration {
	if meta.IsStatusConditionTrue(image.Status.Conditions, v1alpha1.ConditionReady) && !meta.IsStatusConditionPresentAndEqual(image.Status.Conditions, v1alpha1.ConditionImageReachable, metav1.ConditionUnknown) {
		return recheckAfter
	}
	return recheckAfterProblem
}

// untilDue returns the time until the next check; zero or less: it is due. A clock that was set back does not delay it.
func untilDue(image *v1alpha1.OSImage, now time.Time) time.Duration {
	if image.Status.CheckedAt == nil || image.Status.CheckedAt.After(now) {
		return 0
	}
	return interval(image) - now.Sub(image.Status.CheckedAt.Time)
}

// report sets the status to what was observed. The pinned checksum stays, also when the image is unreachable now.
func report(after *v1alpha1.OSImage, obs observation, now time.Time, jitter float64) step.Outcome {
	after.Status.CheckedAt = &metav1.Time{Time: now}
	after.Status.Checksum = obs.checksum
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, ""
	switch {
	case obs.problem != nil:
		status, reason, message = metav1.ConditionFalse, obs.problem.reason, obs.problem.message
	case obs.untrusted != "":
		message = "the manager does not know who signed the certificate of the server: " + obs.untrusted
	case obs.unconfirmed != "":
		message = "the manager cannot see whether the file is there: " + obs.unconfirmed
	case obs.size == nil:
		after.Status.SizeBytes = nil
		reason, message = v1alpha1.ReasonSizeUnknown, "the server does not say how large the file is: progress has no percentage"
	default:
		after.Status.SizeBytes = obs.size
		message = fmt.Sprintf("the file is there, %d bytes", *obs.size)
	}
	if after.DeletionTimestamp == nil { // else the condition is the controller inuse's
		step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionReady, status, reason, message)
	}
	status, reason, message = reachability(obs, now)
	step.SetCondition(&after.Status.Conditions, after.Generation, now, v1alpha1.ConditionImageReachable, status, reason, message)
	pause := interval(after)
	return step.Wait("the next check", pause+time.Duration(jitter*float64(pause)/10))
}

// certificateWarning is how long before the end of a server's certificate the condition says so.
const certificateWarning = 14 * 24 * time.Hour

// reachability returns the condition ImageReachable.
func reachability(obs observation, now time.Time) (status metav1.ConditionStatus, reason, message string) {
	switch {
	case obs.problem != nil:
		return metav1.ConditionFalse, obs.problem.reason, obs.problem.message
	case obs.untrusted != "":
		return metav1.ConditionUnknown, v1alpha1.ReasonImageCertificateUntrusted, "the manager does not know who signed the certificate of that server, and cannot see what the installer's image trusts: " +
			obs.untrusted + ": give its CA in the NodeProvider's spec.redfish.netboot.caBundle, which both then trust; where Ironic installs (spec.ironic, spec.metal3), the ramdisk of its agent must have that CA"
	case obs.unconfirmed != "":
		return metav1.ConditionUnknown, v1alpha1.ReasonImageUnconfirmed, "the manager reaches no server there, which may be right if only the provisioning network does: " + obs.unconfirmed + ": see that servers reach it"
	}
	message = "the file is there"
	if ends := obs.certificateEnds; !ends.IsZero() && ends.Sub(now) < certificateWarning {
		message += "; the certificate of its server ends at " + ends.UTC().Format(time.RFC3339) + ": renew it"
	}
	return metav1.ConditionTrue, v1alpha1.ReasonImageAnswers, message
}

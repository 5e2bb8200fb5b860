package nodeprovider

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/step"
)

const (
	// bootInterval is how often an address is asked at which the boot service answers, bootProblemInterval how often any other one.
	bootInterval, bootProblemInterval = 10 * time.Minute, time.Minute
)

// checkBoot asks the netboot address whether the boot service answers, if that is due, and reports it in the status. It returns when it is due
// again; 0: never, because the NodeProvider has no such address.
func (r *Reconciler) checkBoot(ctx context.Context, provider *v1alpha1.NodeProvider) time.Duration {
	if provider.Spec.Redfish == nil {
		return 0
	}
	now, address := r.Clock.Now(), bootAddresses(provider.Spec.Redfish.Netboot)
	if left := untilBootCheck(provider, now); left > 0 {
		return left
	}
	err := r.CheckBoot(ctx, provider.Spec.Redfish.Netboot)
	if ctx.Err() != nil {
		return time.Second // the manager stops, so the failed request means nothing
	}
	provider.Status.BootCheckedAt, provider.Status.BootCheckedAddress = &metav1.Time{Time: now}, address
	status, reason, message := bootCondition(address, err)
	step.SetCondition(&provider.Status.Conditions, provider.Generation, now, v1alpha1.ConditionBootServiceReachable, status, reason, message)
	return bootPause(provider)
}

// untilBootCheck returns the time until the address is asked again; 0 or less: now. A clock that was set back does not delay it.
func untilBootCheck(provider *v1alpha1.NodeProvider, now time.Time) time.Duration {
	at := provider.Status.BootCheckedAt
	if at == nil || at.After(now) || provider.Status.BootCheckedAddress != bootAddresses(provider.Spec.Redfish.Netboot) {
		return 0
	}
	return bootPause(provider) - now.Sub(at.Time)
}

// bootAddresses returns the addresses of the boot service as they are shown: the one of its HTTPS where it is named.
func bootAddresses(boot v1alpha1.NetbootSpec) string {
	if boot.SecureAddress == "" {
		return boot.Address
	}
	return boot.Address + " and " + boot.SecureAddress
}

func bootPause(provider *v1alpha1.NodeProvider) time.Duration {
	if meta.IsStatusConditionTrue(provider.Status.Conditions, v1alpha1.ConditionBootServiceReachable) {
		return bootInterval
	}
	return bootProblemInterval
}

// bootCondition returns the condition BootServiceReachable for the answer of an address.
func bootCondition(address string, err error) (status metav1.ConditionStatus, reason, message string) {
	switch {
	case err == nil:
		return metav1.ConditionTrue, v1alpha1.ReasonBootServiceAnswers, "this installation's boot service answers at " + address
	case hardware.KindOf(err) == hardware.Conflict:
		return metav1.ConditionFalse, v1alpha1.ReasonBootAddressWrong, "spec.redfish.netboot.address " + address + ": expected this installation's boot service, seen: " + err.Error() +
			": correct the address; until then no server is powered on to be inspected, installed or erased"
	}
	return metav1.ConditionUnknown, v1alpha1.ReasonBootServiceUnconfirmed, "the manager cannot ask spec.redfish.netboot.address " + address + ", which may be right if only the provisioning network reaches it: " +
		err.Error() + ": see that servers reach the boot service there"
}

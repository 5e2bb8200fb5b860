package tenant

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTheGateIsToleratedWhateverItsValueIs(t *testing.T) {
	const gate = "ingot.dev/unvalidated"
	for _, c := range []struct {
		toleration corev1.Toleration
		want       bool
	}{
		{corev1.Toleration{Key: gate, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: gate}, false},
		{corev1.Toleration{Key: gate, Operator: corev1.TolerationOpEqual, Value: "ChecksWaiting"}, false},
	} {
		if got := canTolerate([]corev1.Toleration{c.toleration}, gate); got != c.want {
			t.Errorf("%+v: %t, want %t", c.toleration, got, c.want)
		}
	}
}

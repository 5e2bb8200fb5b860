package sessions

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestAnAttemptThatBeganWhileTheClockWasADayAheadIsAnAttemptOfNow: it would be closed to its agent and without time-outs for a day.
func TestAnAttemptThatBeganWhileTheClockWasADayAheadIsAnAttemptOfNow(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{0, 24 * time.Hour} {
		at := func(later time.Duration) *metav1.MicroTime {
			out := metav1.NewMicroTime(now.Add(ahead + later))
			return &out
		}
		record := &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{
			Wanted: &v1alpha1.WantedAttempt{Number: 1, Operation: "Install", Since: *at(-time.Minute), Deadline: *at(44 * time.Minute)},
			Attempt: &v1alpha1.HostAttempt{
				Number: 1, State: "Running", Step: "Writing", OpenedAt: at(-30 * time.Second), StepAt: at(-20 * time.Second), StepDeadline: at(15 * time.Minute),
				Agent: &v1alpha1.HostAgent{KeyDigest: "k", RegisteredAt: *at(-25 * time.Second), HeardAt: *at(-10 * time.Second)}, ConfigDriveAwaitedAt: at(-24 * time.Second),
				KernelFetchedAt: at(-27 * time.Second), KernelAwaited: &v1alpha1.KernelAwaited{At: *at(-28 * time.Second)},
			},
		}}
		s := (&Store{Clock: clocktesting.NewFakePassiveClock(now)}).session(&metal3.BareMetalHost{}, record)
		for name, stored := range map[string]time.Time{
			"Since": s.Since, "OpenedAt": s.OpenedAt, "StepAt": s.StepAt, "RegisteredAt": s.Agent.RegisteredAt, "HeardAt": s.Agent.HeardAt, "ConfigDriveAwaitedAt": s.ConfigDriveAwaitedAt,
			"KernelFetchedAt": s.KernelFetchedAt, "KernelAwaited": s.KernelAwaited.At,
		} {
			if stored.IsZero() || stored.After(now) || now.Sub(stored) > time.Minute {
				t.Errorf("%s ahead: %s is %s", ahead, name, stored)
			}
		}
		if left := s.Deadline.Sub(s.Since); left != 45*time.Minute || s.Deadline.After(now.Add(45*time.Minute)) {
			t.Errorf("%s ahead: the deadline is %s after the beginning, at %s", ahead, left, s.Deadline)
		}
		if left := s.StepDeadline.Sub(s.StepAt); left != 15*time.Minute+20*time.Second {
			t.Errorf("%s ahead: the step has %s", ahead, left)
		}
	}
}

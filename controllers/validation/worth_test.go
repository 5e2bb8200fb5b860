package validation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
)

func TestWhatANewNodeStillLacksIsNotToldAtOnce(t *testing.T) {
	joined := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	waits := verdict.Decision{Verdict: v1alpha1.Verdict{Result: v1alpha1.CheckWait}, Gate: verdict.KeepGate}
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.Machine, *verdict.Decision)
		after  time.Duration
		want   time.Duration
	}{
		{"it waits", func(*v1alpha1.Machine, *verdict.Decision) {}, time.Second, lifecycle.JoinGracePeriod - time.Second},
		{"it has waited long enough", func(*v1alpha1.Machine, *verdict.Decision) {}, lifecycle.JoinGracePeriod, 0},
		{"it has failed", func(_ *v1alpha1.Machine, d *verdict.Decision) { d.Verdict.Result = v1alpha1.CheckFail }, 0, 0},
		{"it passes", func(_ *v1alpha1.Machine, d *verdict.Decision) { d.Verdict.Result = v1alpha1.CheckPass }, 0, 0},
		{"the gate is placed", func(_ *v1alpha1.Machine, d *verdict.Decision) { d.Gate = verdict.PlaceGate }, 0, 0},
		{"it was judged before", func(m *v1alpha1.Machine, _ *verdict.Decision) { m.Status.Verdict = &v1alpha1.Verdict{} }, 0, 0},
		{"it comes back from Ready", func(m *v1alpha1.Machine, _ *verdict.Decision) { m.Status.Timeline[0].Phase = v1alpha1.MachineReady }, 0, 0},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Timeline: []v1alpha1.PhaseEntry{
			{Phase: v1alpha1.MachineJoining, At: metav1.NewMicroTime(joined)}, {Phase: v1alpha1.MachineValidating, At: metav1.NewMicroTime(joined)},
		}}}
		d := waits
		c.change(m, &d)
		if got := firstVerdictDelay(m, d, joined.Add(c.after)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

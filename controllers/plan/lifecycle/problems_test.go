package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestACheckIsDescribedInNumbersOrInWords(t *testing.T) {
	for _, tt := range []struct{ observed, expected, want string }{
		{"7", "8", "7 of 8"},
		{"1Gi", "2Gi", "1Gi of 2Gi"},
		{"", "complete", "nothing seen, expected complete"},
		{"gpu-0: 570.124.6", "570.172.8 or 570.172.08", "gpu-0: 570.124.6, expected 570.172.8 or 570.172.08"},
	} {
		if got := observedOfExpected(v1alpha1.Check{Observed: tt.observed, Expected: tt.expected}); got != tt.want {
			t.Errorf("%q and %q: %s, want %s", tt.observed, tt.expected, got, tt.want)
		}
	}
}

func TestAKubeletMustNotBeNewerThanTheAPIServerNorMoreThanThreeMinorVersionsOlder(t *testing.T) {
	for _, c := range []struct{ kubelet, server, want string }{
		{"1.37.0", "v1.37.2", ""}, {"1.34.9", "v1.37.0", ""},
		{"1.38.0", "v1.37.0", "newer than"}, {"1.33.0", "v1.37.0", "more than three"},
		{"2.0.0", "v1.37.0", "newer than"}, {"latest", "v1.37.0", "not a version"}, {"1.37.0", "", "not a version"},
	} {
		if got := VersionSkewProblem(c.kubelet, c.server); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("kubelet %s, server %s: %q", c.kubelet, c.server, got)
		}
	}
}

func TestAPhaseOfANewerVersionIsShownAndWaitedOn(t *testing.T) {
	for _, isDeleted := range []bool{false, true} {
		f := factsIn(t, v1alpha1.MachineReady)
		f.Machine.Status.Phase, f.Machine.Deleting = "Repairing", isDeleted
		d := Plan(f)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if d.Action != nil || d.Status.Phase != "Repairing" || d.RequeueAfter <= 0 || ready.Reason != v1alpha1.ReasonNewerShape || !strings.Contains(ready.Message, `"Repairing"`) {
			t.Errorf("deleted %t: %+v, %+v", isDeleted, d.Action, ready)
		}
	}
}

// TestWhatTheValidationPublishesIsNotPublishedAgain: both controllers see the same change at the same time, and an event each about one Machine would say it twice.
func TestWhatTheValidationPublishesIsNotPublishedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		events int
	}{
		"a check fails":                     {func(f *Facts) { rejudge(f, metav1.ConditionFalse, v1alpha1.ReasonChecksFailed) }, 0},
		"its driver is not served any more": {func(f *Facts) { rejudge(f, metav1.ConditionFalse, v1alpha1.ReasonDRANotServed) }, 0},
		"the node booted again":             {func(f *Facts) { f.Node.BootID = "another" }, 0},
		"nobody can judge it":               {func(f *Facts) { rejudge(f, metav1.ConditionUnknown, v1alpha1.ReasonRenderingUnreadable) }, 1},
		"its Node is gone":                  {func(f *Facts) { f.Node = Node{} }, 1},
	} {
		w := readyWorld(t, 0)
		f, _, _ := w.facts(w.machines[0])
		c.change(&f)
		if d := Plan(f); d.Status.Phase != v1alpha1.MachineValidating || len(d.Events) != c.events {
			t.Errorf("%s: phase %s, events %v", name, d.Status.Phase, d.Events)
		}
	}
}

// rejudge has the validation controller write another verdict.
func rejudge(f *Facts, status metav1.ConditionStatus, reason string) {
	v := *f.Machine.Status.Verdict
	v.Admitted, v.Result = false, v1alpha1.CheckFail
	f.Machine.Status.Verdict = &v
	meta.SetStatusCondition(&f.Machine.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionValidated, Status: status, Reason: reason, Message: "as the verdict says"})
}

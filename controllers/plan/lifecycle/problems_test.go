package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

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

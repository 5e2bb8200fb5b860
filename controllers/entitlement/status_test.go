package entitlement

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAFenceWithoutClassesDoesNotSayThatTheyHaveDevices(t *testing.T) {
	if is, reason, message := ready(nil); is != metav1.ConditionTrue || reason != v1alpha1.ReasonReady || message != "no classes: a fence with nothing in it" {
		t.Errorf("%s, %s: %s", is, reason, message)
	}
}

func TestOnlyWhatIsNewsIsAnEvent(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason}
	}
	within, over := condition(v1alpha1.ConditionWithinLimits, metav1.ConditionTrue, v1alpha1.ReasonWithinLimits), condition(v1alpha1.ConditionWithinLimits, metav1.ConditionFalse, v1alpha1.ReasonOverEntitled)
	early := condition(v1alpha1.ConditionEnforced, metav1.ConditionUnknown, v1alpha1.ReasonNotProvedYet)
	for _, c := range []struct {
		name          string
		before, after []metav1.Condition
		want          string
	}{
		{"nobody has too much", nil, []metav1.Condition{within}, ""},
		{"somebody has too much at once", nil, []metav1.Condition{over}, v1alpha1.ReasonOverEntitled},
		{"somebody has too much", []metav1.Condition{within}, []metav1.Condition{over}, v1alpha1.ReasonOverEntitled},
		{"nobody has too much any more", []metav1.Condition{over}, []metav1.Condition{within}, v1alpha1.ReasonWithinLimits},
		{"it is not proved yet", nil, []metav1.Condition{early}, ""},
	} {
		got := ""
		for _, e := range changesOf(c.before, c.after) {
			got += e.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

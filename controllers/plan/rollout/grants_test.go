package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// served is a broken Machine that may be at work.
func served(name string) Machine {
	m := broken(name)
	m.HasServed = true
	return m
}

// answer has the Machines of the facts answered.
func answer(t *testing.T, f *Facts, want int, a breaker.Answer) {
	t.Helper()
	asked := f.NeedsGrant()
	if len(asked) != want {
		t.Fatalf("%v ask for grants, expected %d", asked, want)
	}
	f.SetAnswers(asked, slices.Repeat([]breaker.Answer{a}, len(asked)))
}

// TestAGrantIsForThisMove has a Machine whose grant was not used be Ready again and broken with its rack: that it was broken before is no grant.
func TestAGrantIsForThisMove(t *testing.T) {
	f := factsOf(rolling(), served("a"), served("b"))
	answer(t, &f, 2, breaker.Answer{IsGranted: true})
	d := Plan(f)
	if len(d.Status.BrokenBefore) != 1 {
		t.Fatalf("recorded as broken before: %v, and one is moved next", d.Status.BrokenBefore)
	}
	f = factsOf(d.Status, served("a"), served("b"))
	answer(t, &f, 2, breaker.Answer{Cause: &breaker.Cause{Due: 2, Servers: 2, Limit: 1}, Wait: time.Minute})
	if d = Plan(f); len(d.Start) > 0 {
		t.Errorf("starts %v without a grant", d.Start)
	}
}

func TestTheConditionSaysWhatIsInTheWayAndWhatToDo(t *testing.T) {
	rack := breaker.Domain{Kind: "rack", Name: "r1"}
	for _, c := range []struct {
		cause breaker.Cause
		says  []string
	}{
		{breaker.Cause{Domain: rack, Due: 4, Servers: 18, Limit: 1}, []string{"4 of the 18 servers of rack r1 do not serve since about the same time, more than fail alone (1 within an hour)", "when they serve again"}},
		{breaker.Cause{Domain: rack, Due: 1, Done: 1, Servers: 18, Limit: 1, Until: noon}, []string{"1 server of rack r1 is broken, and 1 there had to be installed again within the hour before", "before " + noon.Format(time.RFC3339)}},
	} {
		f := factsOf(rolling(), served("a"))
		answer(t, &f, 1, breaker.Answer{Cause: &c.cause, Wait: time.Minute})
		d := Plan(f)
		var message string
		for _, condition := range d.Status.Conditions {
			if condition.Type == v1alpha1.ConditionFaultsAlone {
				message = condition.Message
			}
		}
		c.says = append(c.says, "kubectl annotate --overwrite rollouts.ingot.dev "+f.Rollout.Name+" "+v1alpha1.AnnotationConfirm+"="+confirmation(&d.Status, c.cause.Due, rack))
		for _, text := range c.says {
			if !strings.Contains(message, text) {
				t.Errorf("%q does not say %q", message, text)
			}
		}
		if len(d.Start) > 0 || len(d.Events) == 0 || d.RequeueAfter <= 0 {
			t.Errorf("starts %v, events %v, again in %s", d.Start, d.Events, d.RequeueAfter)
		}
	}
}

func TestAPhaseOfANewerVersionIsNoneWithoutANode(t *testing.T) {
	m := serving("a", "old")
	m.Ready, m.Phase, m.HasServed = false, "Repairing", true
	other := served("b")
	f := factsOf(rolling(), m, other, serving("c", "old"))
	if d := Plan(f); len(d.Start) > 0 || slices.Contains(d.Status.BrokenBefore, "research/a") {
		t.Errorf("starts %v, broken before %v", d.Start, d.Status.BrokenBefore)
	}
}

func TestFailingMachinesAreThoseThatMayServe(t *testing.T) {
	since := metav1.NewTime(noon.Add(-time.Hour))
	for about, c := range map[string]struct {
		change func(*v1alpha1.Machine)
		want   bool
	}{
		"it is not Ready":                 {func(*v1alpha1.Machine) {}, true},
		"it is Ready":                     {func(m *v1alpha1.Machine) { m.Status.Conditions[0].Status = metav1.ConditionTrue }, false},
		"it never served":                 {func(m *v1alpha1.Machine) { m.Status.Timeline = m.Status.Timeline[:1] }, false},
		"it is being drained":             {func(m *v1alpha1.Machine) { m.Status.Phase = v1alpha1.MachineDraining }, false},
		"a person has it powered off":     {func(m *v1alpha1.Machine) { m.Spec.PowerOff = true }, false},
		"a person had it powered off":     {func(m *v1alpha1.Machine) { m.Status.PowerOff = &v1alpha1.MachinePowerOff{} }, false},
		"a person deletes it":             {func(m *v1alpha1.Machine) { m.DeletionTimestamp = &since }, false},
		"nobody has looked at it so far ": {func(m *v1alpha1.Machine) { m.Status.Conditions = nil }, false},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{
			Phase:      v1alpha1.MachineValidating,
			Timeline:   []v1alpha1.PhaseEntry{{Phase: v1alpha1.MachineProvisioning}, {Phase: v1alpha1.MachineReady}, {Phase: v1alpha1.MachineValidating}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: since}},
		}}
		c.change(m)
		if at, isFailing := FailingSince(m); isFailing != c.want || isFailing && !at.Equal(since.Time) {
			t.Errorf("%s: %t, since %s", about, isFailing, at)
		}
	}
}

// TestADarkRackIsNotMovedWithinTheBudget: it is as many as the budget is for, each of them unavailable already.
func TestADarkRackIsNotMovedWithinTheBudget(t *testing.T) {
	from, to := v1alpha1.RenderedRevision{Revision: "v1"}, v1alpha1.RenderedRevision{Revision: "v2"}
	for name, phase := range map[string]v1alpha1.MachinePhase{"not Ready": v1alpha1.MachineValidating, "taken over after a restore": v1alpha1.MachineJoining} {
		for _, toStable := range []bool{false, true} {
			f := Facts{Clock: watched.Clock{Now: time.Unix(1e9, 0)}, Policy: NewPolicy(nil), Rollout: Rollout{Name: "r", From: from, To: to, ToStable: toStable}}
			for i := range 180 {
				m := Machine{Namespace: "a", Name: fmt.Sprintf("m%03d", i), Installed: from, Desired: from, Claimed: true, HasServed: true, Phase: v1alpha1.MachineReady, Ready: true}
				if i < 18 {
					m.Ready, m.Phase = false, phase
				}
				f.Machines = append(f.Machines, m)
			}
			for range 200 {
				d := Plan(f)
				f.Rollout.Status = d.Status
				for _, started := range d.Start {
					i := slices.IndexFunc(f.Machines, func(m Machine) bool { return m.key() == started })
					if i < 18 {
						t.Fatalf("%s, to stable %t: the dark %s is started", name, toStable, started)
					}
					f.Machines[i].Desired, f.Machines[i].Labeled = to, true
				}
			}
		}
	}
}

// TestAConfirmationIsForWhatWasRead: two of a rack were read of, and meanwhile a hall is dark.
func TestAConfirmationIsForWhatWasRead(t *testing.T) {
	f := factsOf(rolling(), served("a"), served("b"))
	rack, hall := breaker.Domain{Kind: "rack", Name: "r1"}, breaker.Domain{Kind: "host namespace", Name: "hall-2"}
	cause := func(d breaker.Domain, due int) []breaker.Answer {
		return []breaker.Answer{{Cause: &breaker.Cause{Domain: d, Due: due, Servers: 180, Limit: 1}, Wait: time.Minute}}
	}
	answer(t, &f, 2, cause(rack, 2)[0])
	d := Plan(f)
	value := shownConfirmation(&d.Status)
	f = factsOf(d.Status, served("a"), served("b"))
	for _, c := range []struct {
		name, value string
		answers     []breaker.Answer
		want        bool
	}{
		{"what was read", value, cause(rack, 2), true}, {"fewer", value, cause(rack, 1), true}, {"more", value, cause(rack, 3), false}, {"something else", value, cause(hall, 2), false},
		{"something else as well, of which more are", value, append(cause(rack, 2), cause(hall, 180)...), false}, {"nothing is held", value, []breaker.Answer{{IsGranted: true}}, false},
		{"a number that was made larger", strings.Replace(value, ".2.", ".200.", 1), cause(rack, 3), true}, {"yes", "yes", cause(rack, 2), false}, {"", "", cause(rack, 2), false},
	} {
		if got := f.ConfirmedDomain(c.value, c.answers); (got != nil) != c.want {
			t.Errorf("%s: %q confirms %v", c.name, c.value, got)
		}
	}
	answer(t, &f, 2, cause(hall, 180)[0])
	if d = Plan(f); len(d.Events) != 1 {
		t.Errorf("that it is something else is told by %d events", len(d.Events))
	}
}

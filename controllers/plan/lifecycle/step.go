package lifecycle

import (
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// step is one thing that a phase does or waits for, or a group of such steps.
type step struct {
	// goal says in words what holds when the step has nothing to do; of a group, what holds while its steps are taken.
	goal string
	// take is nil for a group.
	take func(situation) result
	// applies and group are nil for a single step.
	applies func(situation) bool
	group   []step
}

// goal is a single step; the words say what it works towards.
func goal(words string, take func(situation) result) step { return step{goal: words, take: take} }

// while is a group of steps that are passed over unless the condition holds.
func while(condition string, applies func(situation) bool, group ...step) step {
	return step{goal: condition, applies: applies, group: group}
}

// result is what a step returns: next, wait, record or act. A step changes nothing; the planner applies the result to the Decision.
type result struct {
	// action to try; nil: none.
	action *Action
	// notice is what people are told. The first notice ends the list; without one the following step is taken.
	notice notice
	// mark is the status field to write; empty: none.
	mark mark
	// progress of the installation that people are shown; nil: as it was, the zero value: none.
	progress *v1alpha1.Progress
	// requeue is when to look again although nothing is seen to change; 0: only when something changes.
	requeue time.Duration
	// again: plan again as soon as the action is done or, without one, as soon as the status is written.
	again bool
}

// mark is a status field that remembers what was begun: the next decision rests on it, and on no condition.
type mark string

const (
	// powerOffRequested is status.powerOffRequestedAt.
	powerOffRequested mark = "powerOffRequestedAt"
	// nodeRemainsReported is status.nodeRemainsReportedAt. The notice is an event too, of type Warning.
	nodeRemainsReported mark = "nodeRemainsReportedAt"
)

// notice is what people are told about a Machine that waits.
type notice struct {
	// condition that is not yet True; empty: only Ready is not.
	condition string
	// reason is typed; the condition and Ready have it.
	reason string
	// waitingFor is one short line; empty: the message.
	waitingFor string
	message    string
}

// next is the result of a step whose goal is reached.
var next = result{}

// wait is the result of a step that can only wait: it ends the list.
func wait(n notice) result { return result{notice: n} }

// record is the result of a step that has the status remember something before anything follows from it: it ends the list, and
// the next step is planned when the status is written.
func record(m mark, n notice) result { return result{mark: m, notice: n, again: true} }

// act is the result of a step that has a side effect to try. With an empty notice the following steps say what the Machine
// waits for, and none of their actions is tried.
func act(a Action, n notice) result { return result{action: &a, notice: n} }

// lookAgain is the result with a time after which the Machine is looked at again.
func (r result) lookAgain(after time.Duration) result {
	r.requeue = after
	return r
}

// planAgain is the result with the wish to plan again at once.
func (r result) planAgain() result {
	r.again = true
	return r
}

// isFinal says whether the list ends with this result.
func (r result) isFinal() bool { return r.notice.reason != "" }

// then is the result of two steps, one after the other: the first action, the first notice, and the earlier time to look again.
func (r result) then(following result) result {
	if r.isFinal() {
		return r
	}
	both := following
	if r.action != nil {
		both.action, both.again, both.mark = r.action, r.again, ""
	}
	if r.requeue > 0 && (both.requeue == 0 || r.requeue < both.requeue) {
		both.requeue = r.requeue
	}
	return both
}

// combined is the result of a list of steps, taken in their order until one is final.
func combined(steps []step, s situation) result {
	r := next
	for _, st := range steps {
		switch {
		case r.isFinal():
			return r
		case st.take != nil:
			r = r.then(st.take(s))
		case st.applies(s):
			r = r.then(combined(st.group, s))
		}
	}
	return r
}

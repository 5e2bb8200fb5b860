package lifecycle

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAListOfStepsHasOneActionAndOneReport(t *testing.T) {
	returning := func(r result) func(scope) result { return func(scope) result { return r } }
	holds := func(is bool) func(scope) bool { return func(scope) bool { return is } }
	never := func(scope) result { t.Error("a step was taken that must not be"); return done }
	reported := func(reason string) result { return waitResult(report{reason: reason}) }
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"nothing to do":                     {[]step{newStep("a", returning(done)), newStep("b", returning(done))}, "  0s false"},
		"the first report ends the list":    {[]step{newStep("a", returning(done)), newStep("b", returning(reported("B"))), newStep("c", never)}, " B 0s false"},
		"an action with a report ends it":   {[]step{newStep("a", returning(actionResult(Action{Kind: Evict}, report{reason: "A"}))), newStep("b", never)}, "Evict A 0s false"},
		"an action without a report":        {[]step{newStep("a", returning(actionResult(Action{Kind: Evict}, report{}).withRequeue())), newStep("b", returning(reported("B")))}, "Evict B 0s true"},
		"only the first action":             {[]step{newStep("a", returning(actionResult(Action{Kind: Evict}, report{}))), newStep("b", returning(actionResult(Action{Kind: PowerOff}, report{reason: "B"}).withRequeue()))}, "Evict B 0s false"},
		"no field beside an action":         {[]step{newStep("a", returning(actionResult(Action{Kind: Evict}, report{}))), newStep("b", returning(timestampResult(powerOffRequested, report{reason: "B"})))}, "Evict B 0s false"},
		"a field to write first":            {[]step{newStep("a", returning(timestampResult(powerOffRequested, report{reason: "A"}))), newStep("b", never)}, "powerOffRequestedAt A 0s true"},
		"the earlier time":                  {[]step{newStep("a", returning(done.withRequeueAfter(time.Minute))), newStep("b", returning(reported("B").withRequeueAfter(time.Second)))}, " B 1s false"},
		"the only time":                     {[]step{newStep("a", returning(done.withRequeueAfter(time.Minute))), newStep("b", returning(reported("B")))}, " B 1m0s false"},
		"a group that does not apply":       {[]step{stepsIf("x", holds(false), newStep("a", never)), newStep("b", returning(reported("B")))}, " B 0s false"},
		"a group that ends the list":        {[]step{stepsIf("x", holds(true), newStep("a", returning(reported("A")))), newStep("b", never)}, " A 0s false"},
		"an action before a group":          {[]step{newStep("a", returning(actionResult(Action{Kind: Evict}, report{}))), stepsIf("x", holds(true), newStep("b", returning(reported("B"))))}, "Evict B 0s false"},
		"what is asked after a group ended": {[]step{newStep("a", returning(reported("A"))), stepsIf("x", func(scope) bool { t.Error("a condition was asked in vain"); return true }, newStep("b", never))}, " A 0s false"},
	} {
		r := runSteps(c.steps, scope{})
		did := string(r.timestamp)
		if r.action != nil {
			did += string(r.action.Kind)
		}
		got := strings.Join([]string{did, r.report.reason, r.requeueAfter.String(), strconv.FormatBool(r.requeue)}, " ")
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

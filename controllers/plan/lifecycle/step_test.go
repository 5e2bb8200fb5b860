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
	never := func(scope) result { t.Error("a step was taken that must not be"); return next }
	reported := func(reason string) result { return wait(report{reason: reason}) }
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"nothing to do":                     {[]step{goal("a", returning(next)), goal("b", returning(next))}, "  0s false"},
		"the first report ends the list":    {[]step{goal("a", returning(next)), goal("b", returning(reported("B"))), goal("c", never)}, " B 0s false"},
		"an action with a report ends it":   {[]step{goal("a", returning(act(Action{Kind: Evict}, report{reason: "A"}))), goal("b", never)}, "Evict A 0s false"},
		"an action without a report":        {[]step{goal("a", returning(act(Action{Kind: Evict}, report{}).withRequeue())), goal("b", returning(reported("B")))}, "Evict B 0s true"},
		"only the first action":             {[]step{goal("a", returning(act(Action{Kind: Evict}, report{}))), goal("b", returning(act(Action{Kind: PowerOff}, report{reason: "B"}).withRequeue()))}, "Evict B 0s false"},
		"no field beside an action":         {[]step{goal("a", returning(act(Action{Kind: Evict}, report{}))), goal("b", returning(writeTimestamp(powerOffRequested, report{reason: "B"})))}, "Evict B 0s false"},
		"a field to write first":            {[]step{goal("a", returning(writeTimestamp(powerOffRequested, report{reason: "A"}))), goal("b", never)}, "powerOffRequestedAt A 0s true"},
		"the earlier time":                  {[]step{goal("a", returning(next.withRequeueAfter(time.Minute))), goal("b", returning(reported("B").withRequeueAfter(time.Second)))}, " B 1s false"},
		"the only time":                     {[]step{goal("a", returning(next.withRequeueAfter(time.Minute))), goal("b", returning(reported("B")))}, " B 1m0s false"},
		"a group that does not apply":       {[]step{while("x", holds(false), goal("a", never)), goal("b", returning(reported("B")))}, " B 0s false"},
		"a group that ends the list":        {[]step{while("x", holds(true), goal("a", returning(reported("A")))), goal("b", never)}, " A 0s false"},
		"an action before a group":          {[]step{goal("a", returning(act(Action{Kind: Evict}, report{}))), while("x", holds(true), goal("b", returning(reported("B"))))}, "Evict B 0s false"},
		"what is asked after a group ended": {[]step{goal("a", returning(reported("A"))), while("x", func(scope) bool { t.Error("a condition was asked in vain"); return true }, goal("b", never))}, " A 0s false"},
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

package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/test/crash/relay"
)

// summary sums the runs up.
type summary struct {
	began time.Time
	// lengths are how many requests the undisturbed runs had, by story.
	lengths map[string]int
	// kinds are theirs, in no order.
	kinds map[string]bool
	// killed are the kinds of requests at which the manager was killed.
	killed map[relay.Moment]map[string]bool
	// runs were made, in reached of which the manager was killed, and failed of which did not end as they must.
	runs, reached, failed int
	slowest               time.Duration
}

func newSummary() *summary {
	return &summary{lengths: map[string]int{}, kinds: map[string]bool{}, killed: map[relay.Moment]map[string]bool{relay.Before: {}, relay.After: {}}}
}

// undisturbed adds a run in which nobody was killed.
func (t *summary) undisturbed(name string, r result) {
	t.lengths[name] = len(r.requests)
	for _, request := range r.requests {
		t.kinds[name+": "+request.Kind()] = true
	}
}

// add adds a run in which the manager was to be killed, and returns its line.
func (t *summary) add(p point, r result) string {
	t.runs++
	t.slowest = max(t.slowest, r.took)
	what := "there were not so many requests"
	if p.n <= len(r.requests) {
		request := r.requests[p.n-1]
		t.reached++
		t.killed[p.when][p.story+": "+request.Kind()] = true
		what = request.String()
	}
	if r.err != nil {
		t.failed++
		what += ": FAILED"
	}
	return fmt.Sprintf("%-18s %5.1f s  %s", p, r.took.Seconds(), what)
}

// String is the summary: the numbers, and what was left out because requests do not come in the same order every time.
func (t *summary) String() string {
	var out strings.Builder
	took := time.Since(t.began)
	fmt.Fprintf(&out, "the manager was killed in %d of %d runs, %d of which failed; %.0f s, %.1f s per run, the slowest took %.1f s\n",
		t.reached, t.runs, t.failed, took.Seconds(), took.Seconds()/float64(max(t.runs, 1)), t.slowest.Seconds())
	for _, name := range slices.Sorted(maps.Keys(t.lengths)) {
		fmt.Fprintf(&out, "%s: %d requests when it is not disturbed\n", name, t.lengths[name])
	}
	for _, when := range []relay.Moment{relay.Before, relay.After} {
		var missed []string
		for kind := range t.kinds {
			if !t.killed[when][kind] {
				missed = append(missed, kind)
			}
		}
		slices.Sort(missed)
		fmt.Fprintf(&out, "%d of %d kinds of requests saw no manager killed %s them", len(missed), len(t.kinds), when)
		if len(missed) > 0 && len(missed) < len(t.kinds)/4 {
			fmt.Fprintf(&out, ":\n    %s", strings.Join(missed, "\n    "))
		}
		out.WriteString("\n")
	}
	return out.String()
}

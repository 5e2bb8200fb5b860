package crash

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/crash/relay"
)

const (
	// choiceVariable is all, sample or one point; seedVariable chooses the sample.
	choiceVariable, seedVariable = "INGOT_CRASH", "INGOT_CRASH_SEED"
	// sampleSize is how many runs a sample has, over all stories.
	sampleSize = 20
)

// stories are what is repeated, by name.
func stories() map[string]story {
	return map[string]story{"life": {prepare: (*site).hostsAvailable, tell: (*site).live}}
}

func TestNothingIsLostWhereverTheManagerDies(t *testing.T) {
	choice := cmp.Or(os.Getenv(choiceVariable), "sample")
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", seedVariable, os.Getenv(seedVariable))
	}
	s, ctx := newSite(t), context.Background()
	lengths := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(stories())) {
		undisturbed := s.run(ctx, stories()[name], point{story: name})
		if undisturbed.err != nil {
			t.Fatalf("%s, undisturbed: %v", name, undisturbed.err)
		}
		lengths[name] = len(undisturbed.requests)
		t.Logf("%s, undisturbed, %.1f s:\n%s", name, undisturbed.took.Seconds(), listed(undisturbed.requests))
	}
	began := time.Now()
	runs, reached := 0, 0
	for _, p := range points(choice, seed, lengths) {
		r := s.run(ctx, stories()[p.story], p)
		runs++
		if r.at(p.n) != "" {
			reached++
		}
		t.Logf("%-16s %5.1f s  %s", p, r.took.Seconds(), cmp.Or(r.at(p.n), "there were not so many requests"))
		if r.err != nil {
			t.Errorf("%s: %v\n  again: %s=%s make test ARGS=./test/crash\n%s", p, r.err, choiceVariable, p, listed(r.requests))
		}
	}
	t.Logf("%s (seed %d): the manager was killed in %d of %d runs; %.1f s, %.1f s per run", choice, seed, reached, runs, time.Since(began).Seconds(), time.Since(began).Seconds()/float64(max(runs, 1)))
	if 2*reached < runs || runs == 0 {
		t.Errorf("the manager was killed in %d of %d runs only: this proves nothing", reached, runs)
	}
	s.judge(ctx, t)
}

// points are where the manager is killed in stories that have so many requests undisturbed.
func points(choice string, seed uint64, lengths map[string]int) []point {
	if name, rest, one := strings.Cut(choice, ":"); one {
		when, number, _ := strings.Cut(rest, ":")
		n, _ := strconv.Atoi(number)
		return []point{{name, relay.Moment(when), n}}
	}
	var every []point
	for _, name := range slices.Sorted(maps.Keys(lengths)) {
		for n := 1; n <= lengths[name]; n++ {
			every = append(every, point{name, relay.Before, n}, point{name, relay.After, n})
		}
	}
	if choice == "all" {
		return every
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(every), func(i, j int) { every[i], every[j] = every[j], every[i] })
	return every[:min(sampleSize, len(every))]
}

// listed numbers the requests.
func listed(requests []relay.Request) string {
	var out strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&out, "%4d  %s\n", r.Number, r)
	}
	return out.String()
}

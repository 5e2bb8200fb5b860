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
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// choiceVariable is all, sample or points; seedVariable chooses the sample.
	choiceVariable, seedVariable = "INGOT_CRASH", "INGOT_CRASH_SEED"
	// sampleSize is how many runs a sample has, over all stories.
	sampleSize = 8
	// maxFailed runs are enough to see what is wrong.
	maxFailed = 3
)

// kind is a way in which hosts are served.
type kind struct {
	// variable is all, sample or points, as choiceVariable.
	variable string
	// scenarios by name.
	scenarios map[string]scenario
	// isMetal3 is true where a baremetal-operator serves the hosts, and isIronic where Ironic installs them.
	isMetal3, isIronic bool
	// sampleSize is how many runs a sample has, over all stories.
	sampleSize int
	// seed of the sample.
	seed uint64
}

func redfish() kind {
	return kind{variable: choiceVariable, sampleSize: sampleSize, scenarios: map[string]scenario{
		"inspection": {prepare: (*testbed).prepareLife, tell: (*testbed).runInspection},
		"life":       {prepare: (*testbed).prepareLife, tell: (*testbed).runLife},
		"rollout":    {prepare: (*testbed).prepareRollout, tell: (*testbed).runRollout},
	}}
}

func TestNothingIsLostWhereverTheManagerDies(t *testing.T) { testEveryDeath(t, redfish()) }

// testEveryDeath kills the manager as the variable says.
func testEveryDeath(t *testing.T, k kind) {
	t.Helper()
	byDefault := "sample"
	isWhole, seedByDefault := require.Sample()
	if isWhole {
		byDefault = "all"
	}
	choice := cmp.Or(os.Getenv(k.variable), os.Getenv(choiceVariable), byDefault)
	if k.variable != choiceVariable && os.Getenv(k.variable) == "" && strings.Contains(choice, ":") {
		t.Skipf("%s names points of another test", choiceVariable)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), strconv.FormatUint(seedByDefault, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", seedVariable, os.Getenv(seedVariable))
	}
	k.seed = seed
	s, ctx := newTestbed(t, k), context.Background()
	sum := newSummary()
	stories := slices.Sorted(maps.Keys(k.scenarios))
	// With the first Machine the manager writes what is written once for a site: those requests would be points that no later run has.
	if first := s.run(ctx, k.scenarios[stories[0]], point{story: stories[0]}); first.err != nil {
		t.Fatalf("%s, for the first time: %v", stories[0], first.err)
	}
	for _, name := range stories {
		undisturbed := s.run(ctx, k.scenarios[name], point{story: name})
		if undisturbed.err != nil {
			t.Fatalf("%s, undisturbed: %v", name, undisturbed.err)
		}
		sum.undisturbed(name, undisturbed)
		t.Logf("%s, undisturbed, %.1f s:\n%s", name, undisturbed.took.Seconds(), formatRequests(undisturbed.requests))
	}
	all := points(choice, seed, sum.lengths, k.sampleSize)
	for _, p := range all {
		if sum.lengths[p.story] == 0 || p.n < 1 || p.when != relay.Before && p.when != relay.After {
			t.Fatalf("%s=%q: want all, sample, or points such as life:before:17,life:after:17", k.variable, choice)
		}
	}
	s.repeat(ctx, t, all, sum)
	t.Log(sum)
	if 2*sum.reached < sum.runs {
		t.Error("the manager was killed in so few runs that they prove nothing")
	}
	s.reportViolations(ctx, t)
	s.checkSessions(t)
}

// checkSessions: however often the manager was killed, a BMC has the session of the one that runs and at most one of the one before. Without an
// end to what each of them left, a BMC's slots would be full after a few runs.
func (s *testbed) checkSessions(t *testing.T) {
	t.Helper()
	for _, server := range s.env.Rack.Servers() {
		if n := server.BMC().Sessions(); n > 2 {
			t.Errorf("%d sessions are open at the BMC of %s, expected at most 2", n, server.Name())
		}
	}
}

// repeat runs the stories with the manager killed at each of the points.
func (s *testbed) repeat(ctx context.Context, t *testing.T, all []point, sum *summary) {
	t.Helper()
	sum.began = time.Now()
	for i, p := range all {
		r := s.run(ctx, s.kind.scenarios[p.story], p)
		t.Log(sum.add(p, r))
		if r.err == nil {
			continue
		}
		t.Errorf("%s: %v\n  again: %s=%s make test ARGS=./test/crash\n%s", p, r.err, s.kind.variable, p, formatRequests(r.requests))
		left := len(all) - i - 1
		if err := s.cleanUp(ctx); err != nil {
			t.Fatalf("what the failed run left cannot be removed, and %d runs are left out: %v", left, err)
		}
		if sum.failed == maxFailed {
			t.Logf("%d runs failed, which is enough; %d are left out", sum.failed, left)
			return
		}
	}
}

// points are where the manager is killed in stories that have so many requests undisturbed.
func points(choice string, seed uint64, lengths map[string]int, size int) []point {
	if strings.Contains(choice, ":") {
		return parsePoints(choice)
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
	return every[:min(size, len(every))]
}

// parsePoints reads points as they name themselves, separated by commas.
func parsePoints(choice string) []point {
	var out []point
	for one := range strings.SplitSeq(choice, ",") {
		fields := append(strings.Split(one, ":"), "", "")
		n, _ := strconv.Atoi(fields[2])
		out = append(out, point{fields[0], relay.Moment(fields[1]), n})
	}
	return out
}

// formatRequests numbers the requests.
func formatRequests(requests []relay.Request) string {
	var out strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&out, "%4d  %s\n", r.Number, r)
	}
	return out.String()
}

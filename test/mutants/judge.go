package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// fate is what became of a mutant.
type fate string

const (
	notJudged  fate = "not judged"
	killed     fate = "killed"
	timedOut   fate = "timed out"
	survived   fate = "survived"
	equivalent fate = "equivalent" // no test can kill it
)

// quickTest is the processor time below which a test runs before the others.
const quickTest = 200 * time.Millisecond

// chooseMutants returns the mutants to judge, in the order that the seed decides. A run that ends early has then judged some of
// every package.
func chooseMutants(all []*mutant, o options) []*mutant {
	var chosen []*mutant
	for _, m := range all {
		m.fate = notJudged
		if o.match.MatchString(m.String()) {
			chosen = append(chosen, m)
		}
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen[:int(float64(len(chosen))*o.sample+0.5)]
}

// judgeMutants runs the tests against each mutant until the budget is spent.
func judgeMutants(ctx context.Context, mutants []*mutant, o options) {
	if o.budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.budget)
		defer cancel()
	}
	shown := &progress{total: len(mutants)}
	concurrently(o.workers, mutants, func(m *mutant) {
		if m.fate == notJudged && ctx.Err() == nil {
			if f := m.judge(ctx, o.grace); ctx.Err() == nil {
				m.fate = f
			}
		}
		shown.add(m)
	})
}

// progress shows on the standard error how far the run is.
type progress struct {
	lock                   sync.Mutex
	total, judged, survive int
	next                   time.Time
}

// progressInterval is the time between two lines of progress.
const progressInterval = 15 * time.Second

func (p *progress) add(m *mutant) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.judged++
	if m.fate == survived {
		p.survive++
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressInterval)
		fmt.Fprintf(os.Stderr, "%d of %d mutants, %d survived\n", p.judged, p.total, p.survive)
	}
}

// judge runs the tests that reach the mutant, the quick ones first, until one of them fails.
func (m *mutant) judge(ctx context.Context, grace time.Duration) fate {
	for _, tests := range m.rounds() {
		var cpu time.Duration
		for _, t := range tests {
			cpu += t.cpu
		}
		r := tests[0].program.run(ctx, tests, grace+5*cpu, mutantVariable+"="+m.name())
		switch {
		case r.timedOut:
			return timedOut
		case r.err != nil:
			return killed
		}
	}
	return survived
}

// rounds groups the tests that reach the mutant: first the quick ones of each program, then each slow one, the fastest first.
func (m *mutant) rounds() [][]*testFunction {
	var rounds [][]*testFunction
	quick := map[*testProgram]int{}
	tests := slices.SortedStableFunc(slices.Values(m.reached), func(a, b *testFunction) int {
		return cmp.Or(cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.name, b.name))
	})
	for _, t := range tests {
		i, found := quick[t.program]
		switch {
		case t.cpu >= quickTest:
			rounds = append(rounds, []*testFunction{t})
		case found:
			rounds[i] = append(rounds[i], t)
		default:
			quick[t.program] = len(rounds)
			rounds = append(rounds, []*testFunction{t})
		}
	}
	return rounds
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// purePackages are mutated when no package is named.
var purePackages = []string{"./controllers/plan/...", "./presentation/...", "./cloudinit/..."}

// noLimit is more processor time than any test needs.
const noLimit = time.Hour

// options are the flags.
type options struct {
	root     string // the folder of the module
	patterns []string
	budget   time.Duration
	sample   float64
	seed     uint64
	workers  int
	match    *regexp.Regexp
	longest  time.Duration // processor time of the slowest test that judges
	grace    time.Duration // processor time that a mutant may use beyond a multiple of its tests'
	proofs   map[string][]string
	known    string // the file of equivalent mutants
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseFlags(os.Args[1:])
	if err == nil {
		err = measure(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func parseFlags(args []string) (options, error) {
	o := options{root: ".", proofs: proofs, known: "test/mutants/equivalent.txt", grace: 2 * time.Second}
	match := ""
	set := flag.NewFlagSet("mutants", flag.ExitOnError)
	set.DurationVar(&o.budget, "budget", 45*time.Minute, "how long to judge mutants; those left are counted as not judged; 0: no limit")
	set.Float64Var(&o.sample, "sample", 1, "the `share` of the mutants to judge, from 0 to 1")
	set.Uint64Var(&o.seed, "seed", 1, "the `number` that decides the order of the mutants and which are in the sample")
	set.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many mutants to judge at once")
	set.DurationVar(&o.longest, "longest", noLimit, "leave out tests that need more processor time than this")
	set.StringVar(&match, "match", "", "judge only mutants whose printed line matches this regular `expression`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.match, err = regexp.Compile(match); err != nil {
		return o, fmt.Errorf("-match: %w", err)
	}
	if o.sample <= 0 || o.sample > 1 || o.workers < 1 || o.budget < 0 {
		return o, fmt.Errorf("-sample %v, -workers %d, -budget %v: expected a share above 0 and at most 1, at least one worker and no negative time", o.sample, o.workers, o.budget)
	}
	if o.patterns = set.Args(); len(o.patterns) == 0 {
		o.patterns = purePackages
	}
	return o, nil
}

// measure finds the mutants, builds the test programs, judges the mutants and prints the report.
func measure(ctx context.Context, o options) error {
	report, err := judgeAll(ctx, o)
	if err != nil {
		return err
	}
	return report.print(os.Stdout)
}

// judgeAll returns what became of every mutant.
func judgeAll(ctx context.Context, o options) (*report, error) {
	equivalents, err := readEquivalents(o.known)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "ingot-mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	packages, err := loadPackages(ctx, o.root, o.patterns)
	if err != nil {
		return nil, err
	}
	mutants, err := instrumentAll(packages, work)
	if err != nil {
		return nil, err
	}
	programs, err := buildPrograms(ctx, o, packages, work)
	if err != nil {
		return nil, err
	}
	if err := recordReach(ctx, programs, mutants, o); err != nil {
		return nil, err
	}
	chosen := chooseMutants(mutants, o)
	markEquivalents(chosen, equivalents)
	judgeMutants(ctx, chosen, o)
	return newReport(chosen, equivalents, o), nil
}

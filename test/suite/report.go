package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is an event of go test -json, see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Time    time.Time
}

// result is how long a package or a test took, in seconds.
type result struct {
	name    string
	seconds float64
}

// results are those of a run.
type results struct {
	packages, tests []result
	passed          int
	// failed and skipped are names of packages and tests.
	failed, skipped []string
	// first and last are the times of the first and the last event.
	first, last time.Time
}

// maxEvent is the greatest length of an event, which holds a line of output.
const maxEvent = 16 << 20

// read adds the events of a file.
func (r *results) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("an event: %w", err)
		}
		r.add(e)
	}
	return lines.Err()
}

func (r *results) add(e event) {
	r.addTime(e.Time)
	name := strings.TrimPrefix(e.Package, module)
	switch e.Action {
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Test == "" {
		if e.Action != "skip" { // a package without tests
			r.packages = append(r.packages, result{name, e.Elapsed})
		}
		if e.Action == "fail" && !slices.ContainsFunc(r.failed, func(f string) bool { return strings.HasPrefix(f, name+" ") }) {
			r.failed = append(r.failed, name) // it does not compile, or its TestMain failed
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed = append(r.failed, name+" "+e.Test)
	default:
		r.skipped = append(r.skipped, name+" "+e.Test)
	}
	if !strings.Contains(e.Test, "/") { // the time of subtests is a part of it
		r.tests = append(r.tests, result{name + " " + e.Test, e.Elapsed})
	}
}

func (r *results) addTime(at time.Time) {
	if r.first.IsZero() || !at.IsZero() && at.Before(r.first) {
		r.first = at
	}
	if at.After(r.last) {
		r.last = at
	}
}

// module is what the names of all packages begin with.
const module = "github.com/ingot-dev/ingot/"

// How many of the slowest are printed.
const slowPackages, slowTests = 10, 20

// tolerance is how many times its budget a package may take.
const tolerance = 1.5

// writeReport writes the report, and reports whether a package took more than its budget allows.
func writeReport(w io.Writer, r *results, budgets map[string]float64) (hasSlow bool) {
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	for _, part := range []struct {
		title string
		of    []result
		most  int
	}{{"slowest packages", r.packages, slowPackages}, {"slowest tests", r.tests, slowTests}} {
		write("\n%s, seconds:", part.title)
		for _, one := range slowest(part.of, part.most) {
			write("%8.1f  %s", one.seconds, one.name)
		}
	}
	write("")
	for _, one := range slowest(r.packages, len(r.packages)) {
		if limit := cmp.Or(budgets[one.name], budgets[otherPackages]); limit > 0 && one.seconds > limit*tolerance {
			hasSlow = true
			write("%s took %.0f s, and its budget is %.0f s (test/suite/budgets): make its tests faster, or let the slow ones run in make test-deep alone (require.Deep)", one.name, one.seconds, limit)
		}
	}
	for _, part := range []struct {
		title, each string
		names       []string
	}{{"Skipped", "SKIP", r.skipped}, {"Failed", "FAIL", r.failed}} {
		if len(part.names) > 0 {
			write("\n=== %s", part.title)
		}
		for _, name := range part.names {
			write("=== %s: %s", part.each, name)
		}
	}
	write("\nDONE %d tests, %d skipped, %d failures in %.0fs", r.passed+len(r.failed)+len(r.skipped), len(r.skipped), len(r.failed), r.last.Sub(r.first).Seconds())
	return hasSlow
}

func slowest(of []result, most int) []result {
	sorted := slices.SortedFunc(slices.Values(of), func(a, b result) int { return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name)) })
	return sorted[:min(most, len(sorted))]
}

// order returns the packages that have a budget, the slowest first. Tests end sooner when these begin first.
func order(budgets map[string]float64) []string {
	var of []result
	for name, seconds := range budgets {
		if name != otherPackages {
			of = append(of, result{name, seconds})
		}
	}
	var out []string
	for _, one := range slowest(of, len(of)) {
		out = append(out, "./"+one.name)
	}
	return out
}

// otherPackages is the name of the budget of all packages that have none of their own.
const otherPackages = "*"

// parseBudgets reads lines of a package and its seconds. Empty lines and those that begin with # are left out.
func parseBudgets(text string) (map[string]float64, error) {
	out := map[string]float64{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || seconds <= 0 {
			return nil, fmt.Errorf("line %d: expected a package and its seconds, seen %q", n, line)
		}
		out[name] = seconds
	}
	return out, nil
}

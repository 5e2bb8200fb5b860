package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// equivalentMutant is an entry of the list of mutants that no test can kill.
type equivalentMutant struct {
	key    string // package, function and change
	reason string
	used   bool
}

// name is how the test programs know the mutant.
func (m *mutant) name() string { return m.pkg.path + ":" + strconv.Itoa(m.id) }

// key names the mutant without its line, which moves whenever somebody writes above it.
func (m *mutant) key() string { return m.pkg.shortPath() + " " + m.function + ": " + m.change }

// readEquivalents reads a list: a line with the key of a mutant, and below it its reason in indented lines. A line that begins
// with # is a comment. A file that does not exist is an empty list.
func readEquivalents(path string) ([]*equivalentMutant, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []*equivalentMutant
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case text == line:
			list = append(list, &equivalentMutant{key: text})
		case len(list) == 0:
			return nil, fmt.Errorf("%s: a reason without a mutant: %s", path, text)
		default:
			last := list[len(list)-1]
			last.reason = strings.TrimSpace(last.reason + " " + text)
		}
	}
	for _, e := range list {
		if e.reason == "" {
			return nil, fmt.Errorf("%s: %s: say why no test can kill it", path, e.key)
		}
	}
	return list, nil
}

// markEquivalents marks the mutants that the list names.
func markEquivalents(mutants []*mutant, list []*equivalentMutant) {
	byKey := map[string]*equivalentMutant{}
	for _, e := range list {
		byKey[e.key] = e
	}
	for _, m := range mutants {
		if e := byKey[m.key()]; e != nil {
			e.used = true
			m.fate, m.reason = equivalent, e.reason
		}
	}
}

// report is what became of the mutants.
type report struct {
	mutants []*mutant
	stale   []*equivalentMutant // entries of the list that name no mutant
	options options
}

func newReport(mutants []*mutant, list []*equivalentMutant, o options) *report {
	r := &report{mutants: slices.SortedFunc(slices.Values(mutants), func(a, b *mutant) int { return cmp.Or(cmp.Compare(a.pkg.path, b.pkg.path), cmp.Compare(a.id, b.id)) }), options: o}
	packages := map[string]bool{}
	for _, m := range mutants {
		packages[m.pkg.shortPath()] = true
	}
	for _, e := range list {
		path, _, _ := strings.Cut(e.key, " ")
		if !e.used && packages[path] && o.sample == 1 && o.match.String() == "" {
			r.stale = append(r.stale, e)
		}
	}
	return r
}

// score counts the mutants of a package by what became of them.
type score map[fate]int

// percent returns the share of the judged mutants that a test kills.
func (s score) percent() float64 {
	noticed := s[killed] + s[timedOut]
	if noticed+s[survived] == 0 {
		return 100
	}
	return 100 * float64(noticed) / float64(noticed+s[survived])
}

// print writes the mutants that survived and a table of the packages. It returns an error when the list of equivalent mutants
// names some that do not exist.
func (r *report) print(w io.Writer) error {
	scores := map[string]score{}
	total := score{}
	var paths []string
	for _, m := range r.mutants {
		path := m.pkg.shortPath()
		if scores[path] == nil {
			scores[path] = score{}
			paths = append(paths, path)
		}
		scores[path][m.fate]++
		total[m.fate]++
		if m.fate == survived {
			fmt.Fprintf(w, "%s (%s)\n", m, reachedBy(len(m.reached)))
		}
	}
	fmt.Fprintf(w, "\nseed %d\n\n", r.options.seed)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "mutants\tkilled\ttimed out\tsurvived\tequivalent\tnot judged\tscore\t package")
	line := func(s score, name string) {
		sum := 0
		for _, n := range s {
			sum += n
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t %s\n", sum, s[killed], s[timedOut], s[survived], s[equivalent], s[notJudged], s.percent(), name)
	}
	for _, path := range paths {
		line(scores[path], path)
	}
	line(total, "in all")
	if err := table.Flush(); err != nil {
		return err
	}
	var errs []error
	for _, e := range r.stale {
		errs = append(errs, fmt.Errorf("%s: no such mutant: remove it from %s", e.key, r.options.known))
	}
	return errors.Join(errs...)
}

func reachedBy(tests int) string {
	if tests == 0 {
		return "no test reaches it"
	}
	return fmt.Sprintf("reached by %d tests", tests)
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fixtureOptions are those for the fixture, a small module with tests that are good, tests that miss something, and none.
func fixtureOptions() options {
	return options{
		root: "testdata/fixture", patterns: []string{"./..."}, sample: 1, seed: 1, workers: 1, match: regexp.MustCompile(""), longest: noLimit,
		proofs: map[string][]string{"store": {"stories"}}, known: "testdata/fixture/equivalent.txt",
	}
}

// TestEveryMutantOfTheFixtureHasTheFateThatItsTestsGiveIt compares all mutants with testdata/fixture/fates.txt, which was
// written by hand from the tests of the fixture.
func TestEveryMutantOfTheFixtureHasTheFateThatItsTestsGiveIt(t *testing.T) {
	r, err := judgeAll(t.Context(), fixtureOptions())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.mutants {
		got = append(got, string(m.fate)+": "+m.key())
	}
	data, err := os.ReadFile("testdata/fixture/fates.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("unexpected: %s", line)
		}
	}
	var printed bytes.Buffer
	if err := r.print(&printed); err == nil || !strings.Contains(err.Error(), "Wait: 5 -> 6: no such mutant") {
		t.Errorf("the entry of the list that names no mutant is not reported: %v", err)
	}
	for _, text := range []string{
		"fixture.go:19:9: IsFull: count >= limit -> count > limit (reached by 1 tests)\n",
		"Untested: n + 1 -> n - 1 (no test reaches it)\n",
	} {
		if !strings.Contains(printed.String(), text) {
			t.Errorf("the report lacks %q:\n%s", text, printed.String())
		}
	}
}

func TestATestThatFailsWithoutAMutantEndsTheRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.org/broken\n\ngo 1.26.0\n",
		"a.go":      "package broken\n\nfunc two() int { return 2 }\n",
		"a_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif two() != 3 {\n\t\tt.Fatal(\"not three\")\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := fixtureOptions()
	o.root = root
	if _, err := judgeAll(t.Context(), o); err == nil || !strings.Contains(err.Error(), "TestTwo fails without a mutant") || !strings.Contains(err.Error(), "not three") {
		t.Errorf("got %v", err)
	}
}

func TestASampleIsTheSameForTheSameSeed(t *testing.T) {
	var all []*mutant
	for i := range 100 {
		all = append(all, &mutant{id: i, pkg: &goPackage{}})
	}
	choose := func(seed uint64) []*mutant {
		return chooseMutants(all, options{sample: 0.25, seed: seed, match: regexp.MustCompile("")})
	}
	if first := choose(1); len(first) != 25 || !slices.Equal(first, choose(1)) || slices.Equal(first, choose(2)) {
		t.Errorf("a quarter of 100 mutants: %d; the same again: %t", len(first), slices.Equal(first, choose(1)))
	}
}

func TestAnEquivalentMutantNeedsAReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte("# a comment\nstore Count: a -> b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readEquivalents(path); err == nil || !strings.Contains(err.Error(), "say why") {
		t.Errorf("got %v", err)
	}
}

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+\b`)

// TestTheThreatModelIsCompleteAndNamesTestsThatExist: each guarantee has each adversary once, no cell is empty, and what shows it is there.
func TestTheThreatModelIsCompleteAndNamesTestsThatExist(t *testing.T) {
	root := loadTree(t).root
	text, err := os.ReadFile(filepath.Join(root, ".github", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := declaredTests(t, root)
	for _, name := range testName.FindAllString(string(text), -1) {
		if !declared[name] {
			t.Errorf("there is no %s", name)
		}
	}
	adversaries := regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*:`).FindAllStringSubmatch(string(text), -1)
	guarantees := 0
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		var seen []string
		for _, line := range strings.Split(body, "\n") {
			if !strings.HasPrefix(line, "|") || strings.Trim(line, "|- ") == "" {
				continue
			}
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for _, c := range cells {
				if strings.TrimSpace(c) == "" {
					t.Errorf("%s: an empty cell in %s", title, line)
				}
			}
			seen = append(seen, strings.TrimSpace(cells[0]))
		}
		if len(seen) == 0 || seen[0] != "adversary" {
			continue
		}
		guarantees++
		for _, a := range adversaries {
			if n := len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s != a[1] })); n != 1 {
				t.Errorf("%s: %d rows of %q", title, n, a[1])
			}
		}
	}
	if guarantees != 7 || len(adversaries) != 8 {
		t.Errorf("%d guarantees and %d adversaries, expected 7 and 8", guarantees, len(adversaries))
	}
}

// declaredTests returns the names of all tests.
func declaredTests(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared, pattern := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range pattern.FindAllSubmatch(source, -1) {
			declared[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

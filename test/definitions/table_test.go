package definitions_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// minRows is how many rows the table of what is in use must have.
const minRows = 30

// TestEveryRowOfTheTableOfWhatIsInUseHasItsTest: the last column of config/policy/README.md names a file and a test in it.
func TestEveryRowOfTheTableOfWhatIsInUseHasItsTest(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "config/policy/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("^`([^`]+_test\\.go)` (\\w+)$")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.TrimSpace(cells[0]) == "kind" {
			continue
		}
		rows++
		last := named.FindStringSubmatch(strings.TrimSpace(cells[3]))
		if last == nil {
			t.Errorf("the row names no test: %s", line)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, last[1]))
		if err != nil {
			t.Errorf("%v: %s", err, line)
			continue
		}
		// A test that is a part of another one is called by it.
		if name := last[2]; !strings.Contains(string(source), "func "+name+"(") {
			t.Errorf("%s has no test %s", last[1], name)
		}
	}
	if rows < minRows {
		t.Errorf("%d rows, want at least %d", rows, minRows)
	}
}

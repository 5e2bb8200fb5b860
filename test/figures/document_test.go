package main

import (
	"strings"
	"testing"
	"time"
)

const page = pageHeading + "\n\n<!-- figures fleet: bench -machines 3 -->\n<!-- end of figures fleet -->\nSince then it is calm.\n"

// filled returns the page with what its command has measured.
func filled(t *testing.T) string {
	t.Helper()
	d, err := parse(page)
	if err != nil || len(d.blocks) != 1 || d.String() != page {
		t.Fatalf("%v: %+v", err, d)
	}
	d.blocks[0].fill(stamp{commit: "abc", machine: machineText("model name : A\n", "MemTotal: 25000000 kB\n"), date: "2026-11-27", took: 150 * time.Second}, "| a | 1.5 s |\n")
	return d.String()
}

func TestABlockSaysByWhatOnWhatAndWhenItWasMeasured(t *testing.T) {
	text := filled(t)
	for _, want := range []string{"`bench -machines 3` took 2.5 minutes at commit abc on ", " cores (A), 24 GiB of memory, go", ", 2026-11-27.\n", "\n| a | 1.5 s |\n", "Since then it is calm.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestWhatNoCommandHasWrittenIsFound(t *testing.T) {
	for _, c := range []struct {
		sentence, text, want string
	}{
		{"as it was written", filled(t), ""},
		{"a figure was changed", strings.Replace(filled(t), "1.5 s", "1.4 s", 1), "not as `bench -machines 3` has written them"},
		{"its commit was changed", strings.Replace(filled(t), "commit abc", "commit abd", 1), "not as"},
		{"its command was changed", strings.Replace(filled(t), ": bench -machines 3 -->", ": bench -machines 4 -->", 1), "not as"},
		{"nothing was measured yet", page, "are not measured"},
		{"a figure was typed beside it", filled(t) + "Later it was 3.1 s.\n", `"3.1 s" is typed`},
		{"a share was typed", filled(t) + "It is 40% of all.\n", `"40%" is typed`},
		{"a number that is no measurement", filled(t) + "There are 3 steps, and 2 clusters.\n", ""},
		{"another document with settings", "# Ingot\nIt asks every 15 seconds.\n", ""},
		{"another document with a measurement", "# Ingot\n`make test` takes 15 minutes.\n", `"15 minutes" is typed`},
	} {
		d, err := parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(d.findings(), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", c.sentence, got, c.want)
		}
	}
	if _, err := parse(strings.Replace(page, "<!-- end of figures fleet -->", "", 1)); err == nil {
		t.Error("a block without an end is accepted")
	}
}

func TestFiguresAreOlderThanADate(t *testing.T) {
	d, err := parse(filled(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.olderThan("2026-11-27")) != 0 || len(d.olderThan("")) != 0 || len(d.olderThan("2026-11-28")) != 1 {
		t.Errorf("older: %v and %v", d.olderThan("2026-11-27"), d.olderThan("2026-11-28"))
	}
}

package display

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var colours = regexp.MustCompile("\x1b\\[[0-9]*m")

func TestAFrameFitsItsTerminal(t *testing.T) {
	f := Frame{Title: strings.Repeat("long ", 40), Elapsed: time.Minute}
	for i := range 50 {
		f.Rows = append(f.Rows, Row{
			Host: fmt.Sprintf("server-with-a-long-name-%d", i), HostState: "provisioning", Power: "On", Machine: "training-abcde",
			Phase: "Validating", Waiting: strings.Repeat("nvidia.com/gpu: 0 of 8 ", 10),
		})
		f.Notes = append(f.Notes, strings.Repeat("note ", 30))
	}
	for _, size := range [][2]int{{100, 30}, {80, 24}, {60, 12}} {
		lines := Render(f, size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(colours.ReplaceAllString(l, "")); n > size[0] {
				t.Errorf("%v: a line of %d columns: %q", size, n, l)
			}
		}
	}
}

// TestANoteIsReadToItsEnd: a refusal says at its end what is allowed.
func TestANoteIsReadToItsEnd(t *testing.T) {
	note := "  40.1s  resourceclaims is forbidden: " + strings.Repeat("for some reason ", 8) + "may name only these DeviceClasses: research-ai-mig-1g"
	lines := Render(Frame{Notes: []string{"   1.0s  short", note, "   2.0s  " + strings.Repeat("x", 150)}}, 120, 40)
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	if !strings.Contains(text, strings.Join(strings.Fields(note), " ")) {
		t.Errorf("the note is cut:\n%s", strings.Join(lines, "\n"))
	}
	if !slices.Contains(lines, "         "+strings.Repeat("x", 39)) {
		t.Errorf("a word that is longer than a line:\n%s", strings.Join(lines, "\n"))
	}
}

func TestProgressIsShownWhileBytesFlow(t *testing.T) {
	r := Row{Phase: "Provisioning", Step: "Writing", Done: 3 << 20, Total: 4 << 20}
	if got, want := r.detail(), "[#########...]  75% Writing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlainLinesTellEveryChangeOnce(t *testing.T) {
	before := []Row{{Machine: "a", Phase: "Joining"}, {Machine: "b", Phase: "Ready", Ready: true}, {Machine: "gone", Phase: "Releasing"}}
	after := []Row{
		{Machine: "a", Phase: "Validating", Host: "server-1", Reason: "ResourcesMissing", Waiting: "nvidia.com/gpu: 0 of 8"},
		{Machine: "b", Phase: "Ready", Ready: true},
		{Host: "server-2"},
	}
	got := strings.Join(ChangeLines(before, after), "\n")
	want := "a                Validating    on server-1  ResourcesMissing: nvidia.com/gpu: 0 of 8\ngone             released"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheSummaryNamesMedianSlowestAndBrokenPromises(t *testing.T) {
	durations := []MachineDurations{
		{"a", map[string]time.Duration{"Joining": 2 * time.Second}},
		{"b", map[string]time.Duration{"Joining": 5 * time.Second}},
		{"c", map[string]time.Duration{"Joining": 1 * time.Second}},
	}
	got := Summary(durations, []Cost{{What: "API writes", PerMachine: 23.5, Detail: "machines 19.0"}}, []Assertion{{Text: "every pod runs", Passed: true}, {Text: "no gate was missed", Detail: "node x"}})
	for _, want := range []string{"Joining            2.0s      5.0s  b", "API writes         23.5 per Machine  machines 19.0", "ok    every pod runs", "FAIL  no gate was missed\n      node x"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwithout %q", got, want)
		}
	}
}

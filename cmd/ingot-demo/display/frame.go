package display

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Row is a server and its Machine, either of which may be missing.
type Row struct {
	Host, HostState, Power string
	Machine, Phase         string
	// Reason is the reason of the condition Ready while it is not True.
	Reason string
	// Waiting is what the Machine waits for, in one line.
	Waiting string
	// Step, Done and Total (in bytes) are the progress of the installation; Total is 0 while it is unknown.
	Step        string
	Done, Total int64
	// Ready means that the gate is lifted.
	Ready bool
	// Failing means that a check of the verdict fails.
	Failing bool
}

// Frame is the content of the screen.
type Frame struct {
	// Title is the title of the step.
	Title   string
	Elapsed time.Duration
	Rows    []Row
	// Rollouts has a line for each Rollout that is active or stopped.
	Rollouts []string
	// Notes are the notes, oldest first. The newest ones are drawn, each in as many lines as it needs.
	Notes []string
}

// The escape sequences for colours on a terminal.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// Render returns the lines of a frame: at most height lines of at most width columns.
func Render(f Frame, width, height int) []string {
	lines := []string{bold + clip(fmt.Sprintf("Ingot demo  %5.1fs  %s", f.Elapsed.Seconds(), f.Title), width) + reset, ""}
	head := fmt.Sprintf("%-10s %-15s %-5s %-16s %-13s %s", "SERVER", "HOST", "POWER", "MACHINE", "PHASE", "REASON, AND WHAT IT WAITS FOR")
	lines = append(lines, dim+clip(head, width)+reset)
	notes := wrapAll(f.Notes, width)
	room := height - len(lines) - 1 - len(f.Rollouts) - min(len(notes), 6)
	for i, r := range f.Rows {
		if i == room-1 && len(f.Rows) > room {
			lines = append(lines, dim+fmt.Sprintf("... and %d more servers", len(f.Rows)-i)+reset)
			break
		}
		lines = append(lines, r.draw(width))
	}
	lines = append(lines, "")
	for _, r := range f.Rollouts {
		lines = append(lines, yellow+clip(r, width)+reset)
	}
	lines = append(lines, notes[max(0, len(notes)-max(0, height-len(lines))):]...)
	return lines[:min(len(lines), height)]
}

// noteIndent is the number of columns before the text of a note: its time.
const noteIndent = 9

// wrapAll breaks notes into lines of at most width columns, between words where that is possible. The point of a message is often at its end.
func wrapAll(notes []string, width int) []string {
	var lines []string
	indent := min(noteIndent, width/2)
	for _, note := range notes {
		rest := []rune(note)
		for len(rest) > width {
			at := width
			for at > indent && rest[at] != ' ' {
				at--
			}
			if at <= indent {
				at = width
			}
			lines = append(lines, strings.TrimRight(string(rest[:at]), " "))
			rest = []rune(strings.Repeat(" ", indent) + strings.TrimLeft(string(rest[at:]), " "))
		}
		lines = append(lines, string(rest))
	}
	return lines
}

func (r Row) draw(width int) string {
	left := fmt.Sprintf("%-10s %-15s %-5s %-16s ", clip(r.Host, 10), clip(r.HostState, 15), clip(r.Power, 5), clip(r.Machine, 16))
	left = clip(left, max(0, width-14))
	rest := width - utf8.RuneCountInString(left) - 14
	return left + r.colour() + fmt.Sprintf("%-13s", clip(r.Phase, 13)) + reset + " " + clip(r.detail(), max(0, rest))
}

func (r Row) colour() string {
	switch {
	case r.Ready:
		return green
	case r.Failing:
		return red
	case r.Phase != "":
		return yellow
	}
	return dim
}

// detail returns the progress bar while an image is written, else what the Machine waits for.
func (r Row) detail() string {
	if r.Phase == "Provisioning" && r.Total > 0 && r.Done < r.Total {
		return bar(r.Done, r.Total) + " " + r.Step
	}
	if r.Phase == "Provisioning" && r.Step != "" {
		return r.Step
	}
	if r.Reason != "" && r.Waiting != "" {
		return r.Reason + ": " + r.Waiting
	}
	return r.Waiting
}

// bar returns a progress bar of twelve cells with the percentage.
func bar(done, total int64) string {
	const cells = 12
	n := int(min(done, total) * cells / total)
	return fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("#", n), strings.Repeat(".", cells-n), min(done, total)*100/total)
}

// clip cuts text to n columns.
func clip(text string, n int) string {
	if n <= 0 {
		return ""
	}
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	runes := []rune(text)
	if n <= 3 {
		return string(runes[:n])
	}
	return string(runes[:n-3]) + "..."
}

// ChangeLines returns a line for every Machine whose phase or reason differs between two observations.
func ChangeLines(before, after []Row) []string {
	was := map[string]Row{}
	for _, r := range before {
		if r.Machine != "" {
			was[r.Machine] = r
		}
	}
	var lines []string
	for _, r := range after {
		old, known := was[r.Machine]
		delete(was, r.Machine)
		if r.Machine == "" || r.Phase == "" || known && old.Phase == r.Phase && old.Reason == r.Reason {
			continue
		}
		lines = append(lines, r.line())
	}
	for _, r := range before {
		if _, gone := was[r.Machine]; gone && r.Machine != "" {
			lines = append(lines, fmt.Sprintf("%-16s released", r.Machine))
		}
	}
	return lines
}

func (r Row) line() string {
	text := fmt.Sprintf("%-16s %-13s", r.Machine, r.Phase)
	if r.Host != "" {
		text += " on " + r.Host
	}
	if r.Reason != "" && r.Reason != r.Phase {
		text += "  " + r.Reason
	}
	if r.Waiting != "" && !r.Ready {
		text += ": " + r.Waiting
	}
	return strings.TrimRight(text, " ")
}

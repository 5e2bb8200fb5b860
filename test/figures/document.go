package main

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// document is a text with blocks of figures.
type document struct {
	// texts stand before, between and after the blocks: there is one more of them.
	texts  []string
	blocks []block
}

// block is what one command has measured.
type block struct {
	name, command, text, digest string
}

// stamp says of what figures are.
type stamp struct {
	commit, machine, date string
	took                  time.Duration
}

var (
	opening = regexp.MustCompile(`(?m)^<!-- figures ([a-z0-9-]+): (.+) -->\n`)
	closing = regexp.MustCompile(`(?m)^<!-- end of figures ([a-z0-9-]+)(?:, sha256 ([0-9a-f]+))? -->$`)
	dated   = regexp.MustCompile(`, (\d{4}-\d\d-\d\d)`)
)

// parse splits a text into its blocks and what stands between them.
func parse(text string) (document, error) {
	var d document
	for {
		begin := opening.FindStringSubmatchIndex(text)
		if begin == nil {
			d.texts = append(d.texts, text)
			return d, nil
		}
		b := block{name: text[begin[2]:begin[3]], command: text[begin[4]:begin[5]]}
		rest := text[begin[1]:]
		end := closing.FindStringSubmatchIndex(rest)
		if end == nil || rest[end[2]:end[3]] != b.name {
			return d, fmt.Errorf("the figures %s have no end: expected the line <!-- end of figures %s -->", b.name, b.name)
		}
		b.text = rest[:end[0]]
		if end[4] >= 0 {
			b.digest = rest[end[4]:end[5]]
		}
		d.texts, d.blocks = append(d.texts, text[:begin[0]]), append(d.blocks, b)
		text = rest[end[1]:]
	}
}

// String returns the text of the document.
func (d document) String() string {
	var out strings.Builder
	for i, b := range d.blocks {
		out.WriteString(d.texts[i])
		fmt.Fprintf(&out, "<!-- figures %s: %s -->\n%s<!-- end of figures %s", b.name, b.command, b.text, b.name)
		if b.digest != "" {
			out.WriteString(", sha256 " + b.digest)
		}
		out.WriteString(" -->")
	}
	out.WriteString(d.texts[len(d.blocks)])
	return out.String()
}

// isTime reports whether the block says only how long its command took.
func (b *block) isTime() bool { return strings.HasPrefix(b.name, "time-") }

// fill sets what was measured.
func (b *block) fill(s stamp, printed string) {
	b.text = fmt.Sprintf("`%s` took %s at commit %s on %s, %s.\n", b.command, formatDuration(s.took), s.commit, s.machine, s.date)
	if printed = strings.TrimSpace(printed); printed != "" && !b.isTime() {
		b.text += "\n" + printed + "\n"
	}
	b.digest = b.computeDigest()
}

// computeDigest returns the digest that the block has when nobody has changed it.
func (b *block) computeDigest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(b.name+"\n"+b.command+"\n"+b.text)))[:16]
}

// typed are measurements: a number with a unit of time, of a processor's work or of memory, or a share.
var typed = regexp.MustCompile(`\b\d[\d,.]*\s?(ms|s|min|MiB|GiB|%|seconds|minutes)\b|\b\d[\d,.]*\s?%`)

// isMeasurement reports whether such a number in the line is a measurement: on a page of measurements each is, elsewhere those beside a target of make.
func (d document) isMeasurement(line string) bool {
	return strings.HasPrefix(d.texts[0], pageHeading) || targets.MatchString(line)
}

// targets are commands whose time is worth a figure.
var targets = regexp.MustCompile(`\bmake (demo|test|unit|e2e|bench|costs|lint|verify|build|image)\b`)

// pageHeading begins a page of measurements.
const pageHeading = "# What a fleet costs"

// findings returns what is not as a command has written it.
func (d document) findings() []string {
	var out []string
	for _, b := range d.blocks {
		switch {
		case b.digest == "":
			out = append(out, fmt.Sprintf("the figures %s are not measured: go run ./test/figures update -only %s", b.name, b.name))
		case b.digest != b.computeDigest():
			out = append(out, fmt.Sprintf("the figures %s are not as `%s` has written them: measure them again: go run ./test/figures update -only %s", b.name, b.command, b.name))
		}
	}
	for _, text := range d.texts {
		for line := range strings.Lines(text) {
			if found := typed.FindString(line); found != "" && d.isMeasurement(line) {
				out = append(out, fmt.Sprintf("%q is typed: expected that a command measures it, see go doc ./test/figures; the line is %q", found, strings.TrimSpace(line)))
			}
		}
	}
	return out
}

// olderThan returns the names of the blocks from before a date, which is written as 2026-11-27.
func (d document) olderThan(date string) []string {
	var out []string
	for _, b := range d.blocks {
		if at := dated.FindStringSubmatch(b.text); at != nil && at[1] < date {
			out = append(out, b.name)
		}
	}
	return out
}

// formatDuration formats how long a command took.
func formatDuration(took time.Duration) string {
	if took < 2*time.Minute {
		return strconv.Itoa(int(took.Seconds()+0.5)) + " s"
	}
	return strconv.FormatFloat(took.Minutes(), 'f', 1, 64) + " minutes"
}

// machineText describes a machine by its /proc/cpuinfo and /proc/meminfo.
func machineText(processors, memory string) string {
	model := "unknown processors"
	for line := range strings.Lines(processors) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
		}
	}
	var kib int
	_, _ = fmt.Sscanf(memory, "MemTotal: %d kB", &kib) // 0 where it is not Linux's
	return fmt.Sprintf("%d cores (%s), %d GiB of memory, %s", runtime.NumCPU(), model, (kib+1<<19)>>20, runtime.Version())
}

package console

import (
	"fmt"
	"strings"
)

const (
	// columns and rows are the size of the smallest terminal, VT100's, less the column in which some terminals wrap.
	columns, rows = 79, 24
	// labelColumns is the width of what stands before a text.
	labelColumns = 14
	// maxTextLines and maxListLines limit what one part of the page takes.
	maxTextLines, maxListLines = 4, 6
)

// Page is what is shown. Empty parts are left out.
type Page struct {
	// Title says in a few words what has happened.
	Title string
	// Host is NAMESPACE/NAME, and Attempt the number of its attempt.
	Host    string
	Attempt int64
	// Reason is the reason in UpperCamel, Seen what was expected and seen, and Look what a person should look at, after the word "look".
	Reason, Seen, Look string
	// BootService is the URL of the boot service.
	BootService string
	// NICs are the interfaces, a line each.
	NICs []string
	// Next says what happens next.
	Next string
	// Log are the last lines of the log, of which as many are shown as there is room for.
	Log []string
}

// Lines returns the page in printable ASCII.
func (p Page) Lines() []string {
	rule := strings.Repeat("=", columns)
	lines := []string{rule, " Ingot: " + p.Title, rule}
	add := func(label string, parts []string) {
		for i, part := range parts {
			if i > 0 {
				label = ""
			}
			lines = append(lines, fmt.Sprintf(" %-*s%s", labelColumns-1, label, part))
		}
	}
	host := p.Host
	if p.Attempt > 0 {
		host = strings.TrimPrefix(fmt.Sprintf("%s, attempt %d", p.Host, p.Attempt), ", ")
	}
	add("Host", wrap(host, maxTextLines))
	add("Reason", wrap(p.Reason, 1))
	add("Seen", wrap(p.Seen, maxTextLines))
	add("Look", wrap(p.Look, maxTextLines))
	add("Boot service", wrap(p.BootService, 1))
	add("Network", list(p.NICs))
	add("Next", wrap(p.Next, maxTextLines))
	if room := rows - len(lines) - 3; room > 0 && len(p.Log) > 0 {
		lines = append(lines, strings.Repeat("-", columns))
		lines = append(lines, p.Log[max(0, len(p.Log)-room):]...)
	}
	lines = append(lines[:min(len(lines), rows-2)], rule)
	for i, line := range lines {
		lines[i] = cut(line, columns)
	}
	return lines
}

// list returns the first lines, and how many are left out.
func list(lines []string) []string {
	if len(lines) <= maxListLines {
		return lines
	}
	return append(append([]string(nil), lines[:maxListLines-1]...), fmt.Sprintf("and %d more", len(lines)-maxListLines+1))
}

// wrap returns the text in lines that fit beside the label, at most limit; the last one then ends with three points.
func wrap(text string, limit int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns-labelColumns {
			out = append(out, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		out = append(out, line)
	}
	if len(out) > limit {
		out = out[:limit]
		out[limit-1] = cut(out[limit-1], columns-labelColumns-4) + " ..."
	}
	return out
}

// cut returns the line in printable ASCII, so that nothing in it moves the cursor, and with limit characters at most.
func cut(line string, limit int) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, line)
	return line[:min(len(line), limit)]
}

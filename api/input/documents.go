package input

import (
	"bytes"
)

// Document is one document of a YAML stream.
type Document struct {
	// Text of the document, with the marker that begins it where that has content on its line or directives before it.
	Text []byte
	// Line is the number of its first line in the stream, from 1.
	Line int
}

// SplitDocuments splits a YAML stream where the standard says that a document begins or ends (YAML 1.2.2, 9.1.2 and 9.2): at a line that begins with three
// hyphens or three full stops, alone or before white space. A marker may have the document's content behind it on its line. Documents of comments alone are
// left out.
func SplitDocuments(stream []byte) []Document {
	var out []Document
	current := Document{Line: 1}
	end := func(next int) {
		if hasContent(current.Text) {
			out = append(out, current)
		}
		current = Document{Line: next}
	}
	line := 0
	for rest := stream; len(rest) > 0; {
		line++
		var text []byte
		if at := bytes.IndexByte(rest, '\n'); at >= 0 {
			text, rest = rest[:at+1], rest[at+1:]
		} else {
			text, rest = rest, nil
		}
		switch {
		case isMarker(text, "..."):
			end(line + 1)
			continue
		case isMarker(text, "---") && !hasOnlyDirectives(current.Text):
			end(line)
			if !hasContent(text) {
				current.Line++
				continue
			}
		}
		current.Text = append(current.Text, text...)
	}
	end(line)
	return out
}

// isMarker reports whether the line begins with the marker of a document. It has that meaning in the middle of a block of text too.
func isMarker(line []byte, marker string) bool {
	rest, is := bytes.CutPrefix(line, []byte(marker))
	return is && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// hasOnlyDirectives reports whether the text has directives, which belong to the document that the next marker begins, and no content.
func hasOnlyDirectives(text []byte) bool {
	return !hasContent(text) && bytes.Contains(append([]byte("\n"), text...), []byte("\n%"))
}

// hasContent reports whether the text has more than markers, comments and directives.
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isMarker(line, "---") {
			line = line[len("---"):]
		} else if bytes.HasPrefix(line, []byte("%")) {
			continue
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

package input

import (
	"strings"
	"unicode"
)

// cutMark ends a text that was cut, and hidden takes the place of a character that cannot be seen.
const cutMark, hidden = "...", '?'

// Line returns the text on one line, as characters that can be seen: white space becomes a space, and what moves the cursor, changes colours, is drawn from
// right to left, is not drawn or is no UTF-8 becomes a question mark. A text that takes more bytes than most is cut, and ends with a mark.
//
// Without it: a server's serial number draws a false row in a table, or types a command into the terminal of whoever looks.
func Line(text string, most int) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			r = hidden
		}
		if out.WriteRune(r); out.Len() > most {
			return Truncate(out.String(), most)
		}
	}
	return out.String()
}

// Text returns the text as characters that can be seen, as Line does, with its lines and tabs.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r != unicode.ReplacementChar && unicode.IsPrint(r) {
			return r
		}
		return hidden
	}, text)
}

// Truncate shortens text to at most limit bytes, for a field that has a limit or a message that quotes it. A text that was shortened
// ends with "...", after a whole character: the API server would replace half a character, and what is stored would differ from what
// was written for ever.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(limit-len(cutMark), 0)], "") + cutMark
}

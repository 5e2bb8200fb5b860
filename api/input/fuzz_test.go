package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

func FuzzATextIsOneLineOfWhatCanBeSeen(f *testing.F) {
	f.Add("PowerEdge \x1b[31m\u202e\xff\u2028", 12)
	f.Add(strings.Repeat("é", 9), 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most %= 1 << 10
		line := Line(text, most)
		if len(line) > max(most, len(cutMark)) || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
			t.Errorf("%q in %d bytes: %q", text, most, line)
		}
		if again := Line(line, max(most, len(cutMark))); again != line {
			t.Errorf("%q, and of that %q", line, again)
		}
		if shown := Text(text); strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", text, shown)
		}
		if word := ShellWord(text); strings.Count(strings.ReplaceAll(word, `'\''`, ""), "'")%2 != 0 {
			t.Errorf("%q: %s", text, word)
		}
	})
}

// elements counts the values of a decoded document, and how deep they are.
func elements(value any) (count, depth int) {
	count = 1
	add := func(part any) {
		n, d := elements(part)
		count, depth = count+n, max(depth, d)
	}
	switch v := value.(type) {
	case []any:
		for _, part := range v {
			add(part)
		}
		depth++
	case map[string]any:
		for _, part := range v {
			add(part)
		}
		depth++
	case map[any]any:
		for key, part := range v {
			add(key)
			add(part)
		}
		depth++
	}
	return count, depth
}

var fuzzed = Bounds{Bytes: 4 << 10, Depth: 12, Elements: 500}

func FuzzJSONThatPassesIsWithinTheBounds(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"[[[,,,\"]"}]}`))
	f.Add([]byte(`[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := CheckJSON(text, fuzzed)
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		count, depth := elements(value)
		if err == nil && (count > fuzzed.Elements || depth > fuzzed.Depth || len(text) > int(fuzzed.Bytes)) {
			t.Errorf("%d elements, %d levels, %d bytes passed: %q", count, depth, len(text), text)
		}
		if large := (*Error)(nil); err != nil && !errors.As(err, &large) {
			t.Errorf("%v", err)
		}
	})
}

func FuzzYAMLThatPassesIsWithinTheBounds(f *testing.F) {
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("<<: {a: 1}\n---\nb: 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if CheckYAML(text, fuzzed) != nil {
			return
		}
		var value any
		if yaml.Unmarshal(text, &value) != nil {
			return
		}
		if count, depth := elements(value); count > fuzzed.Elements || depth > fuzzed.Depth {
			t.Errorf("%d elements and %d levels passed: %q", count, depth, text)
		}
	})
}

func FuzzEveryLineOfAStreamIsInOneDocument(f *testing.F) {
	f.Add([]byte("%YAML 1.2\n---\na: 1\n...\n# no more\n--- b\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		lines := bytes.SplitAfter(stream, []byte("\n"))
		end := 0
		for _, d := range SplitDocuments(stream) {
			first := d.Line - 1
			if first < end || first >= len(lines) {
				t.Fatalf("a document begins at line %d, after one that ends with %d, of %d: %q", d.Line, end, len(lines), stream)
			}
			if end = first + bytes.Count(d.Text, []byte("\n")); !bytes.HasSuffix(d.Text, []byte("\n")) {
				end++
			}
			if got := bytes.Join(lines[first:min(end, len(lines))], nil); !bytes.Equal(got, d.Text) {
				t.Errorf("from line %d: %q, and the stream has %q", d.Line, d.Text, got)
			}
		}
	})
}

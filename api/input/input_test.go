package input

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var small = Bounds{Bytes: 1000, Depth: 4, Elements: 20}

func TestATextBecomesOneLineThatCanBeRead(t *testing.T) {
	for _, c := range []struct {
		text, want string
		most       int
	}{
		{"PowerEdge XE9680", "PowerEdge XE9680", 64},
		{"Größe 日本 ±½", "Größe 日本 ±½", 64},
		{"a\nb\tc\r\nd\u2028e\u00a0f", "a b c  d e f", 64},
		{"\x1b[31mred\x1b[0m", "?[31mred?[0m", 64},
		{"abc\u202Egpj.exe\u200b\ufeff\u0007", "abc?gpj.exe???", 64},
		{"\xff\xfe", "??", 64},
		{"abcdefgh", "abcdefgh", 8},
		{"abcdefghi", "abcde...", 8},
		{"ééééé", "éé...", 8},
		{"\x00\x00\x00", "???", 8},
		{"abc", "...", 2},
		{"", "", 0},
	} {
		if got := Line(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestTruncateKeepsWholeCharactersWithinTheLimit(t *testing.T) {
	const limit = 80
	fits := strings.Repeat("a", limit)
	for text, want := range map[string]string{
		fits:                            fits,
		fits + "a":                      fits[:limit-3] + "...",
		fits[:limit-2] + "é":            fits[:limit-2] + "é",
		fits[:limit-4] + "é" + "abcdef": fits[:limit-4] + "...",
	} {
		if got := Truncate(text, limit); got != want {
			t.Errorf("Truncate(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Truncate("abcd", 2); got != "..." {
		t.Errorf("a limit below the ellipsis gives %q", got)
	}
}

func TestATextKeepsItsLines(t *testing.T) {
	if got, want := Text("a\tb\nc\r\n\x1b[2J\u202ed\xff"), "a\tb\nc?\n?[2J?d?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestJSONIsCountedBeforeItIsDecoded(t *testing.T) {
	for _, c := range []struct{ text, unit string }{
		{`{"a":[1,2,{"b":"[[[[[[,,,,,\"]"}]}`, ""},
		{"[" + strings.Repeat("0,", 30) + "0]", "elements"},
		{strings.Repeat("[", 5) + strings.Repeat("]", 5), "levels"},
		{strings.Repeat("{},", 15) + "{}", "elements"},
		{`"` + strings.Repeat("x", 1000) + `"`, "bytes"},
		{`"open`, ""}, {`"open\`, ""}, {"]]]]", ""}, {"", ""},
	} {
		checkUnit(t, c.text, CheckJSON([]byte(c.text), small), c.unit)
	}
}

func checkUnit(t *testing.T, text string, err error, unit string) {
	t.Helper()
	var large *Error
	if errors.As(err, &large) != (unit != "") || large != nil && large.Unit != unit {
		t.Errorf("%.60q: %v, want too many %s", text, err, unit)
	}
}

// aliases returns YAML of a few lines whose last value has 9^levels elements.
func aliases(levels int) string {
	var out strings.Builder
	out.WriteString("a0: &a0 lol\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return out.String()
}

func TestWhatAliasesOfYAMLExpandToIsCounted(t *testing.T) {
	large := Bounds{Bytes: 64 << 10, Depth: 20, Elements: 10_000}
	for _, c := range []struct {
		text, unit string
		bounds     Bounds
	}{
		{"a: &x 1\nb: *x\nc: [1, 2]\n", "", small},
		{aliases(3), "", large},
		{aliases(12), "elements", large},
		{"a: &a " + strings.Repeat("x", 900) + "\nb: [*a, *a]\n", "bytes", small},
		{"a: {b: {c: {d: {e: 1}}}}", "levels", small},
		{strings.Repeat("x", 1001), "bytes", small},
	} {
		checkUnit(t, c.text, CheckYAML([]byte(c.text), c.bounds), c.unit)
	}
	// YAML ends lines at a carriage return alone, and version 1.1 of it at more characters.
	for _, text := range []string{"a: 1\n---\nb: 1\n", "a: 1\r---\rb: 1\r", "a: 1\u0085---\u0085b: 1\u0085", "a: 1\u2028--- {b: 1}\n", "a: 1\r--- {b: 1}\n"} {
		if err := CheckYAML([]byte(text), small); !errors.Is(err, ErrDocuments) {
			t.Errorf("%q has two documents: %v", text, err)
		}
	}
	if err := CheckYAML([]byte("a: &a [*a]\n"), small); err == nil {
		t.Error("a value that contains itself is accepted")
	}
	if err := CheckYAML([]byte("a: [\n"), small); err == nil {
		t.Error("a text that is no YAML is accepted")
	}
}

func TestAReaderOfMoreIsAnError(t *testing.T) {
	if text, err := ReadAll(strings.NewReader("12345"), 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := ReadAll(strings.NewReader("123456"), 5)
	checkUnit(t, "123456", err, "bytes")
}

func TestAStreamIsSplitAsTheStandardSays(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		// want has the line and the parsed value of each document.
		want []string
	}{
		{"one", "a: 1\n", []string{"1 map[a:1]"}},
		{"two", "a: 1\n---\nb: 2\n", []string{"1 map[a:1]", "3 map[b:2]"}},
		{"content behind the marker", "--- {a: 1}\n--- [2]\n--- 3", []string{"1 map[a:1]", "2 [2]", "3 3"}},
		{"an end, and a document without a marker", "a: 1\n...\nb: 2\n... # end\n# nothing\n", []string{"1 map[a:1]", "3 map[b:2]"}},
		{"directives", "%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n--- {b: 2}\n", []string{"1 map[a:1]", "5 map[b:2]"}},
		{"comments and empty documents", "# head\n---\n---\n# none\n--- # here\na: 1\n", []string{"6 map[a:1]"}},
		{"hyphens that are no marker", "a: ---\nb: |\n  ---\n ---c\n----: 1\n", nil},
		{"Windows", "a: 1\r\n---\r\nb: 2\r\n", []string{"1 map[a:1]", "3 map[b:2]"}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			documents := SplitDocuments([]byte(c.stream))
			if c.want == nil && c.stream != "" {
				if len(documents) != 1 {
					t.Errorf("%d documents, want 1", len(documents))
				}
				return
			}
			var got []string
			for _, d := range documents {
				var value any
				if err := yaml.Unmarshal(d.Text, &value); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(d.Line, " ", value))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestEveryTextOfAValueIsCleanedAndItsListsAreCounted(t *testing.T) {
	type part struct{ Name string }
	type server struct {
		Model  string
		Parts  []part
		Of     map[string]part
		Best   *part
		Bytes  []byte
		Cores  int
		hidden string
	}
	raw := "a\x1b[31m\nb"
	value := server{Model: raw, Parts: []part{{raw}}, Of: map[string]part{"k": {raw}}, Best: &part{raw}, Bytes: []byte(raw), Cores: 1 << 40, hidden: raw}
	if err := Clean(&value, 20, 3); err != nil {
		t.Fatal(err)
	}
	const want = "a?[31m b"
	if value.Model != want || value.Parts[0].Name != want || value.Of["k"].Name != want || value.Best.Name != want {
		t.Errorf("%+v", value)
	}
	if string(value.Bytes) != raw || value.hidden != raw || value.Cores != 1<<31-1 {
		t.Errorf("more than texts is changed: %+v", value)
	}
	checkUnit(t, "4 parts", Clean(&server{Parts: make([]part, 4)}, 20, 3), "items of a list")
	checkUnit(t, "4 entries", Clean(&map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, 20, 3), "items of a list")
}

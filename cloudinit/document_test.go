package cloudinit

import (
	"strings"
	"testing"
)

func TestALayerIsReadWithItsAliasesAndMergeKeys(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"null", "null", "{}\n"},
		{"an alias", "a: &x [1, 2]\nb: *x", "a: [1, 2]\nb: [1, 2]\n"},
		{"an alias as a key", "a: &x word\n*x : 1", "a: word\nword: 1\n"},
		{"an empty value", "a:\nb: ~", "a: null\nb: null\n"},
		{"a merge key", "a: &x {one: 1, two: 2}\nb:\n  <<: *x\n  two: 3", "a: {one: 1, two: 2}\nb:\n  two: 3\n  one: 1\n"},
		{"a list of merge keys", "a: &x {one: 1, two: 2}\nb: &y {two: 3, four: 4}\nc:\n  <<: [*x, *y]", "a: {one: 1, two: 2}\nb: {two: 3, four: 4}\nc:\n  one: 1\n  two: 2\n  four: 4\n"},
		{"a merge key of a word", "a:\n  <<: word\n  b: 1", "a:\n  b: 1\n"},
		{"a block", "a: |\n  one\n  two\n", "a: |\n  one\n  two\n"},
		{"a folded block", "a: >\n  one\n  two\n", "a: |\n  one two\n"},
		{"a block that begins with a space", "a: |2\n   one\n", "a: \" one\\n\"\n"},
	} {
		d, err := Parse(Layer{Name: "NodeType n", Text: header + "\n" + c.text})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := d.bytes()
		if want := header + "\n" + c.want; err != nil || string(got) != want {
			t.Errorf("%s: got %q, error %v, want %q", c.name, got, err, want)
		}
	}
}

func TestALayerThatCloudInitWouldMisreadIsRefusedWithItsLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "a: [", "it is not YAML, see line "},
		{"no YAML, without a line", "a: \x01", "it is not YAML"},
		{"two documents", "a: 1\n---\nb: 1", "it holds more than one YAML document: cloud-init reads one"},
		{"a list", "- a", "line 2: it must be a mapping of cloud-init's keys"},
		{"a list as a key", "? [a]\n: 1", "line 2: a key must be a plain word"},
		{"an empty key", "~: 1", "line 2: a key must be a plain word"},
		{"a key twice", "a: 1\na: 2", "a: line 3: the key is there twice: cloud-init would take the last one"},
		{"lists that are nested too deeply", "a: " + strings.Repeat("[", 2*maxDepth) + strings.Repeat("]", 2*maxDepth), "it is nested too deeply"},
		{"mappings that are nested too deeply", "a: " + strings.Repeat("{a: ", 2*maxDepth) + strings.Repeat("}", 2*maxDepth), "it is nested too deeply"},
	} {
		_, err := Parse(Layer{Name: "NodeType n", Text: header + "\n" + c.text})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

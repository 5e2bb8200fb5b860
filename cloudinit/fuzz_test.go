package cloudinit

import (
	"testing"

	"gopkg.in/yaml.v3"
)

func FuzzUserData(f *testing.F) {
	for _, s := range []string{"#cloud-config\na: 1\n", "#cloud-config\nruncmd: [[a, b], 'c: d']\n", "#cloud-config\nw: |\n   x\n  y\n", "#cloud-config\nw: >\n x\n y\n", "#cloud-config\na: &a [1]\nb: *a\n<<: {c: d}\n", "#cloud-config\non: yes\nt: 2020-01-01\np: 0644\n", "#cloud-config\n{a: {b: [c]}}\n", "#cloud-config\nb: !!binary aGk=\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := Parse(Layer{Name: "l", Text: text})
		if err != nil {
			return
		}
		// What is written again must read the same.
		out, err := doc.bytes()
		if err != nil {
			t.Fatalf("%q cannot be written: %v", text, err)
		}
		again, err := Parse(Layer{Name: "l", Text: string(out)})
		if err != nil {
			t.Fatalf("%q was written as %q, which cannot be read: %v", text, out, err)
		}
		if !equal(doc.root, again.root) {
			t.Fatalf("%q was written as %q, which says something else", text, out)
		}
		in := plain()
		in.Layers = []Layer{{Name: "l", Text: text}}
		_, _ = Render(in)
	})
}

func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

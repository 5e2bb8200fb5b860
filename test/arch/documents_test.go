package arch

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link to a file of this repository.
var link = regexp.MustCompile(`\]\(([A-Za-z0-9._/-]+)(?:#[^)]*)?\)`)

func TestTheREADMEListsEveryDocument(t *testing.T) {
	root := filepath.Join("..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"README.md": true}
	for _, m := range link.FindAllStringSubmatch(string(readme), -1) {
		listed[m[1]] = true
	}
	for _, document := range documents(t, root) {
		if !listed[document] {
			t.Errorf("%s: README.md does not link to this document: add it to the section on documents", document)
		}
		checkLinks(t, root, document)
	}
}

// checkLinks checks that the files that a document links to exist.
func checkLinks(t *testing.T, root, document string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range link.FindAllStringSubmatch(string(text), -1) {
		target := path.Join(path.Dir(document), m[1])
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("%s links to %s, which does not exist", document, target)
		}
	}
}

// documents returns the Markdown files of the repository, those below testdata left out.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return filepath.SkipDir
		}
		if relative, err := filepath.Rel(root, file); err == nil && strings.HasSuffix(file, ".md") {
			out = append(out, filepath.ToSlash(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

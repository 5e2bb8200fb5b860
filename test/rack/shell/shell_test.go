package shell

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tree are files in memory; what a path ends with /full of takes nothing.
type tree map[string]string

func (f tree) ReadFile(path string) ([]byte, error) {
	if text, ok := f[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (f tree) WriteFile(path string, content []byte) error {
	if strings.HasSuffix(path, "/full") {
		return errors.New("invalid argument")
	}
	f[path] = string(content)
	return nil
}

func (f tree) Remove(path string) { delete(f, path) }

func (f tree) List(path string) ([]string, error) {
	found := map[string]bool{}
	for name := range f {
		if below, ok := strings.CutPrefix(name, strings.TrimSuffix(path, "/")+"/"); ok {
			first, _, _ := strings.Cut(below, "/")
			found[first] = true
		}
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (f tree) Readlink(path string) (string, bool) {
	target, ok := strings.CutPrefix(f[path], "link ")
	return target, ok
}

func TestScriptsReadAndWriteTheMachinesFilesAndEndAsAShellDoes(t *testing.T) {
	files := func() tree {
		return tree{"/d/1/vendor": "0x10de\n", "/d/2/vendor": "0x1002\n", "/d/1/driver": "link /drivers/nouveau", "/d/full": "", "/script": "echo \"$1\" $2 >/o\n", "/list": "ID    : Name\n12    : NVIDIA A40-4Q\n13    : NVIDIA A40-8Q\n"}
	}
	for script, want := range map[string]string{
		"if false; then exit 3; fi":                "",
		"set -e\nif answers no; then exit 3; fi\n": "",
		"set -e\nfalse\n":                          "exit status 1",
		"set -eu\necho $nothing\n":                 "nothing: unbound variable",
		"set -e\necho x >/d/full\n":                "invalid argument",
		"for d in /d/*; do case $(cat $d/vendor) in 0x10de) echo ${d##*/} >/o;; esac; done":               "/o=1",
		"basename $(readlink -f /d/1/driver) >/o":                                                         "/o=nouveau",
		"sed -n 's/^ *\\([0-9]*\\) *: *\\(NVIDIA \\)\\{0,1\\}A40-8Q *$/\\1/p' /list >/o":                  "/o=13",
		"cat /list | grep -c A40 >/o":                                                                     "/o=2",
		"cat /list | grep -v ' NVIDIA' >/o":                                                               "/o=ID    : Name",
		"echo a >/o; echo b >>/o; wc -l </o >/n; cat /n >/o":                                              "/o=2",
		"echo 'N/A 1' | tr -cd 'A-Za-z/\\n' | tr '\\n' ' ' >/o":                                           "/o=N/A",
		"umask 077; command -v answers >/o":                                                               "/o=answers",
		"if command -v missing >/n || command -v ls >/n || ! command -v cat >/n; then echo wrong >/o; fi": "",
		"sh /script a b": "/o=a b",
		"echo new >/d/1/vendor; mv /d/1/vendor /o; [ ! -e /d/1/vendor ] || echo both >/o": "/o=new",
		"missing":                          "127",
		"while true; do answers yes; done": "without an end",
		"while :; do unheard-of; done":     "without an end",
	} {
		seen := files()
		err := Machine{Files: seen, Programs: map[string]Program{"missing": nil, "answers": func(c Call) error {
			if _, err := io.ReadAll(c.Stdin); err != nil || c.Arguments[0] == "no" {
				return errors.New("no")
			}
			return nil
		}}}.Run(script, nil)
		got := ""
		if name, _, isFile := strings.Cut(want, "="); isFile && strings.HasPrefix(want, "/") {
			got = name + "=" + strings.TrimSpace(seen[name])
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

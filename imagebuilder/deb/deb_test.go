package deb_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ingot-dev/ingot/imagebuilder/deb"
)

// entry is a file of the package.
type entry struct {
	name, content, link string
	kind                byte
}

// makePackage returns a package with the entries, compressed as the suffix says.
func makePackage(t testing.TB, suffix string, entries ...entry) []byte {
	t.Helper()
	var data bytes.Buffer
	var z io.WriteCloser
	var err error
	switch suffix {
	case ".xz":
		z, err = xz.NewWriter(&data)
	case ".zst":
		z, err = zstd.NewWriter(&data)
	case ".gz":
		z = gzip.NewWriter(&data)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644, Size: int64(len(e.content))}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, member := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.xz", []byte("odd")}, {"data.tar" + suffix, data.Bytes()}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, 0, 0, 0, "100644", len(member.content))
		out.Write(member.content)
		if len(member.content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

func TestThePackagesFilesAreUnpackedWithEachCompression(t *testing.T) {
	for _, suffix := range []string{".xz", ".zst", ".gz"} {
		dir := t.TempDir()
		content := makePackage(t, suffix, entry{name: "./lib/", kind: tar.TypeDir}, entry{name: "./lib/a", content: "AAA", kind: tar.TypeReg},
			entry{name: "./usr/share/doc/b", content: "B", kind: tar.TypeReg}, entry{name: "./lib/c", link: "a", kind: tar.TypeSymlink},
			entry{name: "./lib/d", link: "./lib/a", kind: tar.TypeLink}, entry{name: "./lib/null", kind: tar.TypeChar})
		if err := deb.Unpack(bytes.NewReader(content), dir, func(name string) bool { return strings.HasPrefix(name, "lib/") }); err != nil {
			t.Fatalf("%s: %v", suffix, err)
		}
		for _, name := range []string{"a", "c", "d"} {
			if got, err := os.ReadFile(filepath.Join(dir, "lib", name)); err != nil || string(got) != "AAA" {
				t.Errorf("%s: lib/%s: %q, %v", suffix, name, got, err)
			}
		}
		for _, name := range []string{"usr", "lib/null"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s: %s was unpacked", suffix, name)
			}
		}
	}
}

func TestNothingIsWrittenOutsideTheDirectory(t *testing.T) {
	all := func(string) bool { return true }
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][]entry{
		"a path": {{name: "../../outside", content: "x", kind: tar.TypeReg}},
		"a link": {{name: "./link", link: "../..", kind: tar.TypeSymlink}, {name: "./link/outside", content: "x", kind: tar.TypeReg}},
	} {
		err := deb.Unpack(bytes.NewReader(makePackage(t, ".gz", entries...)), inside, all)
		if _, statErr := os.Stat(filepath.Join(dir, "outside")); statErr == nil {
			t.Errorf("%s: a file was written outside; error %v", name, err)
		}
	}
}

func TestWhatIsNoPackageIsRefused(t *testing.T) {
	good := makePackage(t, ".gz", entry{name: "./a", content: strings.Repeat("a", 1000), kind: tar.TypeReg})
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world"), "no data.tar": good[:100], "cut": good[:len(good)-20],
		"unknown compression": bytes.Replace(good, []byte("data.tar.gz"), []byte("data.tar.br"), 1),
	} {
		if err := deb.Unpack(bytes.NewReader(content), t.TempDir(), func(string) bool { return true }); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	if err := deb.UnpackFile(filepath.Join(t.TempDir(), "none.deb"), t.TempDir(), nil); !os.IsNotExist(err) {
		t.Errorf("a package that is not there: %v", err)
	}
}

// FuzzUnpack unpacks whatever is called a package: nothing lies beside the directory afterwards, and no link is followed on the way.
func FuzzUnpack(f *testing.F) {
	entries := []entry{
		{name: "./a/", kind: tar.TypeDir}, {name: "./a/file", content: "content", kind: tar.TypeReg}, {name: "./a/link", link: "../..", kind: tar.TypeSymlink},
		{name: "./a/link/outside", content: "x", kind: tar.TypeReg}, {name: "../outside", content: "x", kind: tar.TypeReg}, {name: "./hard", link: "a/file", kind: tar.TypeLink},
	}
	for _, suffix := range []string{".xz", ".zst", ".gz"} {
		f.Add(makePackage(f, suffix, entries...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		inside := filepath.Join(dir, "inside")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = deb.Unpack(bytes.NewReader(content), inside, func(name string) bool { return len(name) < 100 })
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("beside the directory: %v %v", left, err)
		}
	})
}

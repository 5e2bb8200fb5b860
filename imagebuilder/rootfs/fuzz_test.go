package rootfs_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
)

// FuzzAnArchive: whatever the archive has, every file of the tree is found once below the root, and has bytes of the archive alone. The archive is written
// from lines TYPE NAME TARGET, because hardly any change of its bytes has a valid checksum.
func FuzzAnArchive(f *testing.F) {
	f.Add("5 etc\n0 etc/passwd root\n2 link /etc\n0 link/shadow x\n1 hard etc/passwd\n", []byte{})
	f.Add("0 a b\n0 a/b c\n5 .\n2 x x\n0 x/y z\n1 . a\n5 a\n", []byte{})
	f.Add("2 up ../../..\n0 up/outside x\n2 0 1/1\n2 1 2/2\n2 2 0\n0 0/a b\n", []byte("no archive"))
	f.Fuzz(func(t *testing.T, lines string, raw []byte) {
		if len(lines) > 1<<12 {
			return
		}
		var written bytes.Buffer
		w := tar.NewWriter(&written)
		for line := range strings.Lines(lines) {
			fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
			if len(fields) < 2 || len(fields[0]) != 1 {
				continue
			}
			fields = append(fields, "")
			h := &tar.Header{Typeflag: fields[0][0], Name: fields[1], Linkname: fields[2], Mode: 0o644, Format: tar.FormatPAX}
			if h.Typeflag == tar.TypeReg {
				h.Linkname, h.Size = "", int64(len(fields[2]))
			}
			if w.WriteHeader(h) == nil && h.Typeflag == tar.TypeReg {
				_, _ = io.WriteString(w, fields[2])
			}
		}
		written.Write(raw)
		tree, err := rootfs.Read(bytes.NewReader(written.Bytes()))
		if err != nil {
			return
		}
		files := 0
		err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") && (name == ".." || name[2] == '/') {
				t.Errorf("%q: %v", name, err)
			}
			if files++; files > len(lines)+len(raw)/512+1 {
				t.Fatal("the tree has more files than the archive")
			}
			if !d.Type().IsRegular() {
				return nil
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil || !bytes.Contains(written.Bytes(), text) {
				t.Errorf("%q: %q, %v", name, text, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

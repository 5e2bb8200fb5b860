package rootfs_test

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
)

// archive returns a tar archive with the entries.
func archive(t *testing.T, entries ...tar.Header) *bytes.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		content := []byte("content of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out.Bytes())
}

func system(t *testing.T) *rootfs.Tree {
	t.Helper()
	tree, err := rootfs.Read(archive(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./usr/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "./usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin", Mode: 0o777},
		tar.Header{Name: "./usr/bin/ping", Typeflag: tar.TypeReg, Mode: 0o755, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "\x01\x00"}},
		tar.Header{Name: "./usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755, Uid: 1, Gid: 43},
		tar.Header{Name: "./usr/bin/other", Typeflag: tar.TypeLink, Linkname: "./usr/bin/su"},
		tar.Header{Name: "./null", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 3},
		tar.Header{Name: "./loop", Typeflag: tar.TypeSymlink, Linkname: "loop"},
	))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTheTreeIsThatOfTheArchive(t *testing.T) {
	tree := system(t)
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if want := []string{".", "bin", "loop", "null", "usr", "usr/bin", "usr/bin/other", "usr/bin/ping", "usr/bin/su"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	info, err := tree.Lstat("usr/bin/other")
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if info.Mode() != 0o755|fs.ModeSetuid || owner.Uid != 1 || owner.Gid != 43 || owner.Nlink != 2 {
		t.Errorf("%s, %+v", info.Mode(), owner)
	}
	if got, err := tree.ReadFile("bin/other"); err != nil || string(got) != "content of ./usr/bin/su" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := tree.Capability("usr/bin/ping"); err != nil || string(got) != "\x01\x00" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := tree.ReadFile("loop"); err == nil {
		t.Error("a link to itself was followed")
	}
}

func TestChangesReplaceFilesAndFollowLinksOfDirectories(t *testing.T) {
	tree := system(t)
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("from outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]rootfs.File{
		"bin/su": {Mode: 0o700, Content: []byte("new")}, "etc/a/b/c": {Mode: 0o644, Source: source}, "etc/link": {Mode: fs.ModeSymlink | 0o777, Target: "a/b"},
	} {
		if err := tree.Add(name, f); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"usr/bin/su": "new", "usr/bin/other": "content of ./usr/bin/su", "etc/link/c": "from outside"} {
		if got, err := tree.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// The file that lost its second name is no hard link any more.
	if info, err := tree.Lstat("usr/bin/other"); err != nil || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Errorf("%v, %v", info, err)
	}
	if got := tree.Glob("bin/*"); !slices.Equal(got, []string{"bin/other", "bin/ping", "bin/su"}) {
		t.Errorf("%v", got)
	}
	tree.Remove("bin/ping")
	if _, err := tree.Stat("usr/bin/ping"); err == nil {
		t.Error("a removed file is there")
	}
	for _, name := range []string{"..", "/etc/x", "etc/../../x", ".", "usr/bin/su/x", "loop/x", "usr"} {
		if err := tree.Add(name, rootfs.File{Mode: 0o644}); err == nil {
			t.Errorf("%s was added", name)
		}
	}
}

func TestAnArchiveThatIsCutOrLinksToNothingIsRefused(t *testing.T) {
	good := archive(t, tar.Header{Name: "./a", Typeflag: tar.TypeReg, Mode: 0o644})
	cut := make([]byte, 600)
	if _, err := good.ReadAt(cut, 0); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*bytes.Reader{
		"cut": bytes.NewReader(cut[:520]), "no parent": archive(t, tar.Header{Name: "a/b", Typeflag: tar.TypeReg}),
		"no target": archive(t, tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}),
	} {
		if _, err := rootfs.Read(r); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestOwnersAreReadByName(t *testing.T) {
	tree := system(t)
	if err := tree.Add("etc/passwd", rootfs.File{Mode: 0o644, Content: []byte("root:x:0:0::/root:/bin/sh\nodd\n_chrony:x:101:102::/:/x\n")}); err != nil {
		t.Fatal(err)
	}
	if got, err := tree.ReadOwners("etc/passwd"); err != nil || len(got) != 2 || got["_chrony"] != 101 {
		t.Errorf("%v, %v", got, err)
	}
}

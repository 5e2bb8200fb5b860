package ext4_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	readext4 "github.com/diskfs/go-diskfs/filesystem/ext4"
	"github.com/ingot-dev/ingot/imagebuilder/ext4"
	"github.com/ingot-dev/ingot/test/require"
)

const mib = 1 << 20

func regular(mode uint16, content []byte) *ext4.Node {
	return &ext4.Node{Mode: ext4.ModeRegular | mode, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func directory(entries ...ext4.Entry) *ext4.Node {
	return &ext4.Node{Mode: ext4.ModeDir | 0o755, Entries: entries}
}

// pattern is content that differs from block to block in every eighth MiB, and zeros elsewhere, so that large files are
// quick. It is read in multiples of 512 bytes.
type pattern struct{ at, size int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-p.at))
	clear(b[:n])
	for i := 0; i < n; i += 512 {
		if at := p.at + int64(i); at>>20%8 == 0 {
			b[i] = byte(at>>9) ^ byte(at>>20) | 1
		}
	}
	p.at += int64(n)
	return n, nil
}

func large(size int64) *ext4.Node {
	return &ext4.Node{Mode: ext4.ModeRegular | 0o644, Size: size, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(&pattern{size: size}), nil
	}}
}

// everything is a tree with one of each kind of node, and the large ones that change the layout.
func everything(bigFile int64) *ext4.Node {
	shared := regular(0o644, []byte("two names"))
	crowd := directory()
	for i := range 3000 {
		name := fmt.Sprintf("%05d-%s", i, strings.Repeat("n", i%200))
		crowd.Entries = append(crowd.Entries, ext4.Entry{Name: name, Node: regular(0o600, []byte(name))})
	}
	owned := regular(0o4755, []byte("setuid"))
	owned.UID, owned.GID = 70001, 70002
	ping := regular(0o755, []byte("ping"))
	ping.Capability = []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return directory(
		ext4.Entry{Name: "big", Node: large(bigFile)},
		ext4.Entry{Name: "crowd", Node: crowd},
		ext4.Entry{Name: "empty", Node: regular(0o644, nil)},
		ext4.Entry{Name: "dev", Node: directory(
			ext4.Entry{Name: "null", Node: &ext4.Node{Mode: ext4.ModeChar | 0o666, Major: 1, Minor: 3}},
			ext4.Entry{Name: "nvme", Node: &ext4.Node{Mode: ext4.ModeBlock | 0o660, Major: 259, Minor: 300}},
			ext4.Entry{Name: "pipe", Node: &ext4.Node{Mode: ext4.ModeFIFO | 0o600}},
			ext4.Entry{Name: "sock", Node: &ext4.Node{Mode: ext4.ModeSocket | 0o600}},
		)},
		ext4.Entry{Name: "deep", Node: directory(ext4.Entry{Name: "deeper", Node: directory(ext4.Entry{Name: "name-1", Node: shared})})},
		ext4.Entry{Name: "name-2", Node: shared},
		ext4.Entry{Name: "owned", Node: owned},
		ext4.Entry{Name: "ping", Node: ping},
		ext4.Entry{Name: "short", Node: &ext4.Node{Mode: ext4.ModeSymlink | 0o777, Target: "deep/deeper"}},
		ext4.Entry{Name: "long", Node: &ext4.Node{Mode: ext4.ModeSymlink | 0o777, Target: strings.Repeat("d/", 200) + "end"}},
		ext4.Entry{Name: "edge", Node: &ext4.Node{Mode: ext4.ModeSymlink | 0o777, Target: strings.Repeat("e", 60)}},
	)
}

func write(t *testing.T, size int64, root *ext4.Node) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fs")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := ext4.Write(f, size, root, ext4.Params{Label: "root", Time: 1700000000, UUID: [16]byte{1, 2, 3, 4}, HashSeed: [16]byte{5, 6, 7, 8}}); err != nil {
		t.Fatal(err)
	}
	return path
}

// check runs e2fsck, the reference for what is a sound file system. Without it the test ends as skipped, so it comes last.
func check(t *testing.T, path string) {
	t.Helper()
	tool := require.Tool(t, "e2fsck", "apt-get install e2fsprogs")
	out, err := exec.Command(tool, "-fn", path).CombinedOutput()
	if err != nil {
		t.Errorf("e2fsck: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "?") {
		t.Errorf("e2fsck would change something:\n%s", out)
	}
}

func read(t *testing.T, path string) *readext4.FileSystem {
	t.Helper()
	b, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := readext4.Read(b, info.Size(), 0, 512)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestEveryKindOfNodeIsSoundAndReadsBack(t *testing.T) {
	root := everything(5 * mib)
	size, err := ext4.MinSize(root, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, size, root)
	fs := read(t, path)
	for name, want := range map[string]string{
		"/name-2": "two names", "/deep/deeper/name-1": "two names", "/empty": "", "/owned": "setuid",
		"/crowd/02999-" + strings.Repeat("n", 199): "02999-" + strings.Repeat("n", 199),
	} {
		got, err := fs.ReadFile(name[1:])
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"short": "deep/deeper", "long": strings.Repeat("d/", 200) + "end", "edge": strings.Repeat("e", 60),
	} {
		if got, err := fs.ReadLink(name); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := fs.ReadFile("big"); err != nil || sha256.Sum256(got) != patternSum(5*mib) {
		t.Errorf("big: %d bytes, %v: not what was written", len(got), err)
	}
	if entries, err := fs.ReadDir("crowd"); err != nil || len(entries) < 3000 {
		t.Errorf("crowd: %d entries, %v; want 3000", len(entries), err)
	}
	check(t, path)
}

func patternSum(size int64) [32]byte {
	h := sha256.New()
	io.Copy(h, &pattern{size: size})
	return [32]byte(h.Sum(nil))
}

func TestAFileOfManyExtentsIsSound(t *testing.T) {
	const size = 900 * mib // crosses seven groups: more runs than an inode holds
	root := everything(size)
	least, err := ext4.MinSize(root, 100*mib)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, least, root)
	f, err := read(t, path).Open("big")
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if n, err := io.CopyBuffer(struct{ io.Writer }{h}, f, make([]byte, mib)); err != nil || n != size || [32]byte(h.Sum(nil)) != patternSum(size) {
		t.Errorf("big: read %d bytes, %v: not what was written", n, err)
	}
	check(t, path)
}

func TestTheSameTreeGivesTheSameBytes(t *testing.T) {
	var sums [2][32]byte
	for i := range sums {
		b, err := os.ReadFile(write(t, 64*mib, everything(mib)))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(b)
	}
	if sums[0] != sums[1] {
		t.Errorf("two runs gave %x and %x", sums[0], sums[1])
	}
}

func TestSizesAroundTheEdgesOfGroupsAreSound(t *testing.T) {
	for _, size := range []int64{16 * mib, 127 * mib, 128*mib + 4096, 129 * mib, 256*mib - 4096, 1300 * mib} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			check(t, write(t, size, directory(ext4.Entry{Name: "a", Node: regular(0o644, []byte("a"))})))
		})
	}
}

func TestManyFilesGetManyInodes(t *testing.T) {
	root := directory()
	for i := range 20000 {
		root.Entries = append(root.Entries, ext4.Entry{Name: fmt.Sprint(i), Node: regular(0o644, nil)})
	}
	size, err := ext4.MinSize(root, 0)
	if err != nil {
		t.Fatal(err)
	}
	check(t, write(t, size, root))
}

func TestWhatCannotBeWrittenIsNamed(t *testing.T) {
	liar := regular(0o644, []byte("short"))
	liar.Size = 10
	for name, c := range map[string]struct {
		root *ext4.Node
		want string
	}{
		"a file that shrank":       {directory(ext4.Entry{Name: "liar", Node: liar}), "/liar: read"},
		"a tree that does not fit": {directory(ext4.Entry{Name: "big", Node: large(64 * mib)}), "choose a larger size"},
		"a name twice":             {directory(ext4.Entry{Name: "a", Node: directory()}, ext4.Entry{Name: "a", Node: directory()}), `entry "a"`},
		"a name that is a path":    {directory(ext4.Entry{Name: "..", Node: directory()}), `entry ".."`},
		"an empty link":            {directory(ext4.Entry{Name: "l", Node: &ext4.Node{Mode: ext4.ModeSymlink}}), "/l: the target"},
		"a root that is a file":    {regular(0o644, nil), "no directory"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "fs"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			err = ext4.Write(f, 32*mib, c.root, ext4.Params{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if name == "a tree that does not fit" && !errors.Is(err, ext4.ErrNoSpace) {
				t.Errorf("%v is not ErrNoSpace", err)
			}
		})
	}
}

package pack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/imagebuilder/ext4"
	"github.com/ingot-dev/ingot/imagebuilder/fat32"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

const espDir = "boot/efi"

// maxSmallFileBytes is the maximum length of the small files that are read into memory.
const maxSmallFileBytes = 1 << 20

// tree is a directory tree in the form that the file systems need.
type tree struct {
	fsys      Source
	rootOwned bool // root owns every file
	withESP   bool

	root    *ext4.Node
	espRoot *fat32.Node
	dirs    map[string]*ext4.Node
	espDirs map[string]*fat32.Node
	links   map[linkKey]*ext4.Node
	facts   recipe.Facts
}

// scan reads names, modes and links, and the small files that describe the tree.
func scan(source Source, opts Options) (*tree, error) {
	t := &tree{
		fsys: source, rootOwned: opts.RootOwned, withESP: !opts.NoESP,
		dirs: map[string]*ext4.Node{}, espDirs: map[string]*fat32.Node{}, links: map[linkKey]*ext4.Node{},
	}
	err := fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return t.addEntry(name, d)
	})
	if err != nil {
		return nil, err
	}
	return t, t.readFacts()
}

// addEntry adds an entry to the root file system or to the EFI system partition.
func (t *tree) addEntry(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if inner, ok := strings.CutPrefix(name, espDir+"/"); ok && t.withESP {
		return t.addESPEntry(inner, name, info)
	}
	n, err := t.newNode(name, info)
	if err != nil {
		return err
	}
	if info.IsDir() {
		t.dirs[name] = n
	}
	if name == "." {
		t.root = n
		return nil
	}
	if name == espDir && info.IsDir() && t.withESP {
		t.espRoot = &fat32.Node{Dir: true}
		t.espDirs["."] = t.espRoot
	}
	parent := t.dirs[path.Dir(name)]
	parent.Entries = append(parent.Entries, ext4.Entry{Name: path.Base(name), Node: n})
	return nil
}

// fileTypes are the file types of ext4 by those of package fs.
var fileTypes = map[fs.FileMode]uint16{
	0: ext4.ModeRegular, fs.ModeDir: ext4.ModeDir, fs.ModeSymlink: ext4.ModeSymlink, fs.ModeNamedPipe: ext4.ModeFIFO,
	fs.ModeSocket: ext4.ModeSocket, fs.ModeDevice: ext4.ModeBlock, fs.ModeDevice | fs.ModeCharDevice: ext4.ModeChar,
}

func (t *tree) newNode(name string, info fs.FileInfo) (*ext4.Node, error) {
	kind, ok := fileTypes[info.Mode().Type()]
	if !ok {
		return nil, fmt.Errorf("%s: a file of kind %s cannot be packed; remove it", name, info.Mode().Type())
	}
	n := &ext4.Node{Mode: kind | permissions(info.Mode())}
	if kind == ext4.ModeRegular {
		n.Size, n.Open = info.Size(), t.openFunc(name)
	}
	if kind == ext4.ModeSymlink {
		target, err := fs.ReadLink(t.fsys, name)
		if err != nil {
			return nil, err
		}
		n.Target = target
	}
	if shared := t.applyOwner(n, info); shared != nil {
		return shared, nil
	}
	if kind != ext4.ModeRegular {
		return n, nil
	}
	var err error
	n.Capability, err = t.fsys.Capability(name)
	return n, err
}

func permissions(m fs.FileMode) uint16 {
	out := uint16(m.Perm())
	for bit, value := range map[fs.FileMode]uint16{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			out |= value
		}
	}
	return out
}

func (t *tree) openFunc(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return t.fsys.Open(name) }
}

func (t *tree) addESPEntry(inner, name string, info fs.FileInfo) error {
	n := &fat32.Node{Name: path.Base(inner), Dir: info.IsDir()}
	switch {
	case n.Dir:
		t.espDirs[inner] = n
	case info.Mode().IsRegular():
		n.Size, n.Open = info.Size(), t.openFunc(name)
		if strings.EqualFold(path.Ext(inner), ".efi") {
			t.facts.Loaders = append(t.facts.Loaders, inner)
		}
	default:
		return fmt.Errorf("%s: expected a file or a directory, seen %s: the EFI system partition is FAT and has no other; replace it by a copy", name, info.Mode().Type())
	}
	parent := t.espDirs[path.Dir(inner)]
	parent.Entries = append(parent.Entries, n)
	return nil
}

// readFacts reads the facts about the tree.
func (t *tree) readFacts() error {
	t.facts.ESP = t.withESP
	var err error
	// etc/os-release is often an absolute link, which leads out of the tree. Then its usual target is read.
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		if t.facts.OSRelease == nil {
			if t.facts.OSRelease, err = t.readSmallFile(name); err != nil {
				return err
			}
		}
	}
	if t.facts.Manifest, err = t.readSmallFile(recipe.ManifestPath); err != nil {
		return err
	}
	for _, dir := range []string{"usr/lib/modules", "lib/modules"} {
		entries, err := fs.ReadDir(t.fsys, dir)
		if err != nil || len(t.facts.Kernels) > 0 {
			continue // it does not exist, or it is the same directory with another name
		}
		for _, e := range entries {
			if e.IsDir() {
				t.facts.Kernels = append(t.facts.Kernels, e.Name())
			}
		}
	}
	return nil
}

// readSmallFile returns the content of a small file; nil when it does not exist or is a link out of the tree.
func (t *tree) readSmallFile(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		return nil, nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFileBytes))
	if err != nil {
		return nil, err
	}
	return append([]byte{}, b...), nil
}

// setManifest replaces the manifest in the root file system with the completed one.
func (t *tree) setManifest(content []byte) error {
	n := &ext4.Node{Mode: ext4.ModeRegular | 0o644, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
	// The manifest is read through links, but it can be replaced only in a real directory.
	dir := t.dirs[path.Dir(recipe.ManifestPath)]
	if dir == nil {
		return &recipe.Problem{
			Path: path.Dir(recipe.ManifestPath), Expected: "a directory", Found: "a link to one",
			Remedy: "put a directory in its place",
		}
	}
	for i, e := range dir.Entries {
		if e.Name == path.Base(recipe.ManifestPath) {
			dir.Entries[i].Node = n
		}
	}
	return nil
}

// addBootFile adds the file to the EFI system partition.
func (t *tree) addBootFile(f *BootFile, id recipe.Identity) error {
	if f == nil {
		return nil
	}
	dir := t.espDirs[path.Dir(f.Path)]
	if dir == nil {
		return fmt.Errorf("%s/%s: its directory does not exist", espDir, f.Path)
	}
	content := f.Content(id)
	dir.Entries = append(dir.Entries, &fat32.Node{Name: path.Base(f.Path), Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}})
	return nil
}

// digest returns the digest of the content of the image, including names and modes.
func (t *tree) digest(ctx context.Context) ([32]byte, error) {
	h := sha256.New()
	numbers := map[*ext4.Node]int{}
	if err := digestNode(ctx, h, "", t.root, numbers); err != nil {
		return [32]byte{}, err
	}
	if t.espRoot != nil {
		if err := digestESPNode(ctx, h, t.espRoot); err != nil {
			return [32]byte{}, err
		}
	}
	return [32]byte(h.Sum(nil)), nil
}

func digestNode(ctx context.Context, h hash.Hash, name string, n *ext4.Node, numbers map[*ext4.Node]int) error {
	first, again := numbers[n]
	if !again {
		numbers[n] = len(numbers)
	}
	fmt.Fprintf(h, "%q %o %d %d %d %q %d %d %x %d %v %d\n", name, n.Mode, n.UID, n.GID, n.Size, n.Target, n.Major, n.Minor, n.Capability, len(n.Entries), again, first)
	if again {
		return nil
	}
	if err := digestContent(ctx, h, n.Open); err != nil {
		return err
	}
	for _, e := range n.Entries {
		if err := digestNode(ctx, h, e.Name, e.Node, numbers); err != nil {
			return err
		}
	}
	return nil
}

func digestESPNode(ctx context.Context, h hash.Hash, n *fat32.Node) error {
	fmt.Fprintf(h, "efi %q %v %d %d\n", n.Name, n.Dir, n.Size, len(n.Entries))
	if err := digestContent(ctx, h, n.Open); err != nil {
		return err
	}
	for _, e := range n.Entries {
		if err := digestESPNode(ctx, h, e); err != nil {
			return err
		}
	}
	return nil
}

func digestContent(ctx context.Context, h hash.Hash, open func() (io.ReadCloser, error)) error {
	if err := ctx.Err(); err != nil || open == nil {
		return err
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.Copy(h, r)
	if err != nil {
		return err
	}
	return binary.Write(h, binary.LittleEndian, n)
}

// linkKey identifies a file that may have several names.
type linkKey struct{ device, inode uint64 }

// applyOwner sets owner and device numbers of the node. When the file already has a node under another name, it returns that node.
func (t *tree) applyOwner(n *ext4.Node, info fs.FileInfo) *ext4.Node {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if !t.rootOwned {
		n.UID, n.GID = st.Uid, st.Gid
	}
	if info.Mode()&fs.ModeDevice != 0 {
		n.Major, n.Minor = unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	}
	if info.IsDir() || st.Nlink < 2 {
		return nil
	}
	key := linkKey{uint64(st.Dev), st.Ino}
	if first := t.links[key]; first != nil {
		return first
	}
	t.links[key] = n
	return nil
}

// directory is a Source below a directory.
type directory struct {
	fs.ReadLinkFS
	dir string
}

// Capability implements Source. Programs such as ping have the attribute.
func (d directory) Capability(name string) ([]byte, error) {
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	value := make([]byte, 64)
	n, err := unix.Lgetxattr(file, "security.capability", value)
	switch {
	case err == nil:
		return value[:n], nil
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return nil, nil
	}
	return nil, fmt.Errorf("read security.capability of %s: %w", file, err)
}

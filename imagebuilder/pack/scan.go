package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
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

// maxText bounds the small files that are read whole.
const maxText = 1 << 20

// tree is a directory tree as the file systems take it.
type tree struct {
	fsys  fs.FS
	dir   string // for what package fs has no call for
	owned bool   // everything belongs to root
	esp   bool

	root    *ext4.Node
	efi     *fat32.Node
	dirs    map[string]*ext4.Node
	efiDirs map[string]*fat32.Node
	links   map[linkKey]*ext4.Node
	facts   recipe.Facts
}

// scan reads names, modes and links, and the few small files that say what the tree is.
func scan(root *os.Root, opts Options) (*tree, error) {
	t := &tree{
		fsys: root.FS(), dir: opts.Dir, owned: opts.RootOwned, esp: !opts.NoESP,
		dirs: map[string]*ext4.Node{}, efiDirs: map[string]*fat32.Node{}, links: map[linkKey]*ext4.Node{},
	}
	err := fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return t.add(name, d)
	})
	if err != nil {
		return nil, err
	}
	return t, t.look()
}

// add puts one entry into the root, or into the EFI system partition.
func (t *tree) add(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if inner, ok := strings.CutPrefix(name, espDir+"/"); ok && t.esp {
		return t.addEFI(inner, name, info)
	}
	n, err := t.node(name, info)
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
	if name == espDir && info.IsDir() && t.esp {
		t.efi = &fat32.Node{Dir: true}
		t.efiDirs["."] = t.efi
	}
	parent := t.dirs[path.Dir(name)]
	parent.Entries = append(parent.Entries, ext4.Entry{Name: path.Base(name), Node: n})
	return nil
}

// kinds of files but regular ones.
var kinds = map[fs.FileMode]uint16{
	0: ext4.ModeRegular, fs.ModeDir: ext4.ModeDir, fs.ModeSymlink: ext4.ModeSymlink, fs.ModeNamedPipe: ext4.ModeFIFO,
	fs.ModeSocket: ext4.ModeSocket, fs.ModeDevice: ext4.ModeBlock, fs.ModeDevice | fs.ModeCharDevice: ext4.ModeChar,
}

func (t *tree) node(name string, info fs.FileInfo) (*ext4.Node, error) {
	kind, ok := kinds[info.Mode().Type()]
	if !ok {
		return nil, fmt.Errorf("%s: a file of kind %s cannot be packed; remove it", name, info.Mode().Type())
	}
	n := &ext4.Node{Mode: kind | permissions(info.Mode())}
	if kind == ext4.ModeRegular {
		n.Size, n.Open = info.Size(), t.opener(name)
	}
	if kind == ext4.ModeSymlink {
		target, err := fs.ReadLink(t.fsys, name)
		if err != nil {
			return nil, err
		}
		n.Target = target
	}
	if shared := t.owner(n, info); shared != nil {
		return shared, nil
	}
	if kind != ext4.ModeRegular {
		return n, nil
	}
	var err error
	n.Capability, err = capability(filepath.Join(t.dir, filepath.FromSlash(name)))
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

func (t *tree) opener(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return t.fsys.Open(name) }
}

func (t *tree) addEFI(inner, name string, info fs.FileInfo) error {
	n := &fat32.Node{Name: path.Base(inner), Dir: info.IsDir()}
	switch {
	case n.Dir:
		t.efiDirs[inner] = n
	case info.Mode().IsRegular():
		n.Size, n.Open = info.Size(), t.opener(name)
		if strings.EqualFold(path.Ext(inner), ".efi") {
			t.facts.Loaders = append(t.facts.Loaders, inner)
		}
	default:
		return fmt.Errorf("%s: expected a file or a directory, seen %s: the EFI system partition is FAT and has no other; replace it by a copy", name, info.Mode().Type())
	}
	parent := t.efiDirs[path.Dir(inner)]
	parent.Entries = append(parent.Entries, n)
	return nil
}

// look reads what the tree says of itself.
func (t *tree) look() error {
	t.facts.ESP = t.esp
	var err error
	// etc/os-release is a link, often an absolute one, which leaves the tree: then its usual target is what is meant.
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		if t.facts.OSRelease == nil {
			if t.facts.OSRelease, err = t.text(name); err != nil {
				return err
			}
		}
	}
	if t.facts.Manifest, err = t.text(recipe.ManifestPath); err != nil {
		return err
	}
	for _, dir := range []string{"usr/lib/modules", "lib/modules"} {
		entries, err := fs.ReadDir(t.fsys, dir)
		if err != nil || len(t.facts.Kernels) > 0 {
			continue // not there, or the same directory by its other name
		}
		for _, e := range entries {
			if e.IsDir() {
				t.facts.Kernels = append(t.facts.Kernels, e.Name())
			}
		}
	}
	return nil
}

// text reads a small file; nil when there is none, or only a link that leads out of the tree.
func (t *tree) text(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		return nil, nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return nil, err
	}
	return append([]byte{}, b...), nil
}

// setManifest replaces the manifest of the root by the completed one.
func (t *tree) setManifest(content []byte) error {
	n := &ext4.Node{Mode: ext4.ModeRegular | 0o644, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
	// It was read through links, if there are any, but it can only be replaced where it lies.
	dir := t.dirs[path.Dir(recipe.ManifestPath)]
	if dir == nil {
		return &recipe.Problem{
			Path: path.Dir(recipe.ManifestPath), Expected: "a directory", Seen: "a link to one",
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

// digest reads everything and gives the digest of all that ends up in the image, names and modes included.
func (t *tree) digest(ctx contextErr) ([32]byte, error) {
	h := sha256.New()
	seen := map[*ext4.Node]int{}
	if err := digestNode(ctx, h, "", t.root, seen); err != nil {
		return [32]byte{}, err
	}
	if t.efi != nil {
		if err := digestEFI(ctx, h, t.efi); err != nil {
			return [32]byte{}, err
		}
	}
	return [32]byte(h.Sum(nil)), nil
}

func digestNode(ctx contextErr, h hash.Hash, name string, n *ext4.Node, seen map[*ext4.Node]int) error {
	first, again := seen[n]
	if !again {
		seen[n] = len(seen)
	}
	fmt.Fprintf(h, "%q %o %d %d %d %q %d %d %x %d %v %d\n", name, n.Mode, n.UID, n.GID, n.Size, n.Target, n.Major, n.Minor, n.Capability, len(n.Entries), again, first)
	if again {
		return nil
	}
	if err := digestContent(ctx, h, n.Open); err != nil {
		return err
	}
	for _, e := range n.Entries {
		if err := digestNode(ctx, h, e.Name, e.Node, seen); err != nil {
			return err
		}
	}
	return nil
}

func digestEFI(ctx contextErr, h hash.Hash, n *fat32.Node) error {
	fmt.Fprintf(h, "efi %q %v %d %d\n", n.Name, n.Dir, n.Size, len(n.Entries))
	if err := digestContent(ctx, h, n.Open); err != nil {
		return err
	}
	for _, e := range n.Entries {
		if err := digestEFI(ctx, h, e); err != nil {
			return err
		}
	}
	return nil
}

// contextErr is the part of a context that reading needs.
type contextErr interface{ Err() error }

func digestContent(ctx contextErr, h hash.Hash, open func() (io.ReadCloser, error)) error {
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

// linkKey tells files with several names apart.
type linkKey struct{ device, inode uint64 }

// owner sets what only the operating system knows of a file, and gives the node of an earlier name of the same file.
func (t *tree) owner(n *ext4.Node, info fs.FileInfo) *ext4.Node {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if !t.owned {
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

// capability reads the attribute without which ping and its like do not work; nil when there is none.
func capability(path string) ([]byte, error) {
	value := make([]byte, 64)
	n, err := unix.Lgetxattr(path, "security.capability", value)
	switch {
	case err == nil:
		return value[:n], nil
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return nil, nil
	}
	return nil, fmt.Errorf("read security.capability of %s: %w", path, err)
}

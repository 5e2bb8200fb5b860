package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through, as in the kernel.
const maxLinks = 40

// capabilityRecord is the name of a file's capabilities in a tar archive.
const capabilityRecord = "SCHILY.xattr.security.capability"

// Tree is a root file system. It implements fs.ReadDirFS and fs.ReadLinkFS. Names are as in package fs; symbolic links are followed below the
// root of the tree.
type Tree struct {
	archive io.ReaderAt
	root    *node
	inodes  uint64
}

// node is a file. Hard links are the same node at several places.
type node struct {
	mode         fs.FileMode
	uid, gid     int
	links        uint32
	inode        uint64
	size         int64
	open         func() (io.ReadCloser, error)
	target       string
	major, minor uint32
	capability   []byte
	children     map[string]*node
}

// Archive is an uncompressed tar archive.
type Archive interface {
	io.ReadSeeker
	io.ReaderAt
}

// Read reads the names of the files in the archive. The tree is valid as long as the archive is open.
func Read(archive Archive) (*Tree, error) {
	t := &Tree{archive: archive}
	t.root = t.newNode(fs.ModeDir | 0o755)
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the archive of the root file system: %w", err)
		}
		at, err := archive.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if err := t.addEntry(h, at); err != nil {
			return nil, fmt.Errorf("the archive of the root file system: %s: %w", h.Name, err)
		}
	}
}

// newNode returns a node with an inode number of its own.
func (t *Tree) newNode(mode fs.FileMode) *node {
	t.inodes++
	n := &node{mode: mode, inode: t.inodes}
	if mode.IsDir() {
		n.children = map[string]*node{}
	}
	return n
}

// addEntry adds an entry whose content begins at the offset.
func (t *Tree) addEntry(h *tar.Header, at int64) error {
	name := cleanName(h.Name)
	if h.Typeflag == tar.TypeLink {
		n := t.find(cleanName(h.Linkname))
		if n == nil || n.mode.IsDir() {
			return fmt.Errorf("a hard link to %s, which is no file before it", h.Linkname)
		}
		return t.put(name, n)
	}
	n := t.newNode(h.FileInfo().Mode())
	n.uid, n.gid, n.target = h.Uid, h.Gid, h.Linkname
	n.major, n.minor = uint32(h.Devmajor), uint32(h.Devminor)
	if value := h.PAXRecords[capabilityRecord]; value != "" {
		n.capability = []byte(value)
	}
	if n.mode.IsRegular() {
		n.size = h.Size
		n.open = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(t.archive, at, h.Size)), nil }
	}
	if name == "." {
		n.children = t.root.children
		t.root = n
		return nil
	}
	return t.put(name, n)
}

func cleanName(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return name
}

// put gives the node a name. A directory keeps the entries of the directory that it replaces.
func (t *Tree) put(name string, n *node) error {
	dir, err := t.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	if !dir.mode.IsDir() || name == "." {
		return errors.New("it lies in what is no directory")
	}
	base := path.Base(name)
	if old := dir.children[base]; old != nil {
		if old.mode.IsDir() != n.mode.IsDir() && len(old.children) > 0 {
			return errors.New("is a directory with entries")
		}
		if n.mode.IsDir() {
			maps.Copy(n.children, old.children)
		}
		old.links--
	}
	dir.children[base] = n
	n.links++
	return nil
}

// find returns the node of the name without following its last part; nil when there is none.
func (t *Tree) find(name string) *node {
	if name == "." {
		return t.root
	}
	dir, err := t.resolve(path.Dir(name))
	if err != nil {
		return nil
	}
	return dir.children[path.Base(name)]
}

// resolve returns the node that the name leads to through all links.
func (t *Tree) resolve(name string) (*node, error) {
	at, parents := t.root, []*node{}
	left := strings.Split(name, "/")
	for links := 0; len(left) > 0; {
		part := left[0]
		left = left[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if n := len(parents); n > 0 {
				at, parents = parents[n-1], parents[:n-1]
			}
			continue
		}
		next := at.children[part]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		if next.mode.Type() == fs.ModeSymlink {
			if links++; links > maxLinks {
				return nil, errors.New("too many symbolic links")
			}
			if strings.HasPrefix(next.target, "/") {
				at, parents = t.root, nil
			}
			left = append(strings.Split(next.target, "/"), left...)
			continue
		}
		parents, at = append(parents, at), next
	}
	return at, nil
}

// names returns the names of the entries, sorted.
func (n *node) names() []string { return slices.Sorted(maps.Keys(n.children)) }

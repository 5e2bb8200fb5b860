package ext4

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNoSpace means that the tree does not fit.
var ErrNoSpace = errors.New("ext4: the file system is full: choose a larger size")

// Params are the properties of a file system that are not part of the tree.
type Params struct {
	// Label is the volume name of at most 16 bytes.
	Label string
	// Time is the time of all files, in seconds since 1970.
	Time uint32
	// UUID identifies the file system. HashSeed is the seed of its directory hashes.
	UUID, HashSeed [16]byte
}

// writer writes one file system.
type writer struct {
	out      io.WriterAt
	params   Params
	geometry geometry

	next        int64    // the next block to allocate
	blockMaps   [][]byte // per group
	used        []int64  // blocks in use per group, overhead included
	dirs        []int64  // directories per group
	inodes      int64    // inodes in use, the reserved ones included
	journalRoot [60]byte // i_block of the journal, which the superblock repeats
}

// Write writes the file system with the content of root into the first size bytes of out, which must read as zeros. An error at a path
// of the tree is a *PathError.
func Write(out io.WriterAt, size int64, root *Node, p Params) error {
	if root.fileType() != ModeDir {
		return errors.New("ext4: the root is no directory")
	}
	if len(p.Label) > 16 {
		return fmt.Errorf("ext4: label %q is longer than 16 bytes", p.Label)
	}
	root, inodes, err := numberNodes(root)
	if err != nil {
		return err
	}
	geometry, err := newGeometry(size, inodes)
	if err != nil {
		return err
	}
	w := &writer{out: out, params: p, geometry: geometry, inodes: inodes}
	w.reserveMetadata()
	if err := w.writeJournal(); err != nil {
		return err
	}
	if err := walk(root, w.writeNode); err != nil {
		return err
	}
	return w.writeMetadata()
}

// numberNodes returns a copy of root with lost+found added, and the number of inodes in use. It sets the inode number and the link count
// of every node.
func numberNodes(root *Node) (*Node, int64, error) {
	lost := &Node{Mode: ModeDir | 0o700}
	top := *root
	top.Entries = []Entry{{Name: "lost+found", Node: lost}}
	for _, e := range root.Entries {
		if e.Name == "lost+found" {
			if e.Node.fileType() != ModeDir || len(e.Node.Entries) > 0 {
				return nil, 0, &PathError{Path: "/lost+found", Err: errors.New("must be an empty directory: e2fsck owns it")}
			}
			continue
		}
		top.Entries = append(top.Entries, e)
	}
	next := uint32(firstInode)
	err := walk(&top, func(_ string, n, _ *Node) error {
		n.links = 0
		n.ino = next
		if n == &top {
			n.ino = rootInode
			return nil
		}
		next++
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	top.links = 2
	err = walk(&top, func(_ string, n, _ *Node) error { return countLinks(n) })
	return &top, int64(next - 1), err
}

// countLinks adds the entries of a directory to the link counts of their nodes.
func countLinks(dir *Node) error {
	names := make(map[string]bool, len(dir.Entries))
	for _, e := range dir.Entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || len(e.Name) > 255 || names[e.Name] || strings.ContainsAny(e.Name, "/\x00") {
			return fmt.Errorf("entry %q: names have 1 to 255 bytes, without a slash and the byte 0, and are unique", e.Name)
		}
		names[e.Name] = true
		if e.Node.fileType() != ModeDir {
			e.Node.links++
			continue
		}
		if e.Node.links != 0 {
			return fmt.Errorf("entry %q: a directory has one name", e.Name)
		}
		e.Node.links = 2
		dir.links++
	}
	return nil
}

// reserveMetadata marks the blocks of superblocks, descriptors, bitmaps and inode tables, and those after the end, as used.
func (w *writer) reserveMetadata() {
	w.blockMaps = make([][]byte, w.geometry.groups)
	w.used = make([]int64, w.geometry.groups)
	w.dirs = make([]int64, w.geometry.groups)
	for g := range w.geometry.groups {
		m := make([]byte, BlockSize)
		setBits(m, 0, w.geometry.overhead(g))
		setBits(m, w.geometry.size(g), blocksPerGroup)
		w.blockMaps[g], w.used[g] = m, w.geometry.overhead(g)
	}
	w.next = w.geometry.overhead(0)
}

func setBits(m []byte, from, to int64) {
	for i := from; i < to; i++ {
		m[i/8] |= 1 << (i % 8)
	}
}

// extent is a run of blocks.
type extent struct {
	logical, physical, length int64
}

// allocate allocates n blocks in order, in as few runs as the tables of the groups allow.
func (w *writer) allocate(n int64) ([]extent, error) {
	var out []extent
	for logical := int64(0); n > 0; {
		g := w.next / blocksPerGroup
		if g >= w.geometry.groups {
			return nil, ErrNoSpace
		}
		at := max(w.next-w.geometry.first(g), w.geometry.overhead(g))
		w.next = w.geometry.first(g) + at
		run := min(n, w.geometry.size(g)-at, maxExtent)
		if run <= 0 {
			return nil, ErrNoSpace // the last group, which may be shorter, is full
		}
		setBits(w.blockMaps[g], at, at+run)
		w.used[g] += run
		out = append(out, extent{logical: logical, physical: w.next, length: run})
		w.next += run
		logical += run
		n -= run
	}
	return out, nil
}

func (w *writer) writeBlocks(b []byte, block int64) error {
	if _, err := w.out.WriteAt(b, block*BlockSize); err != nil {
		return fmt.Errorf("write block %d: %w", block, err)
	}
	return nil
}

// Modes are the file types in Node.Mode, as in stat(2).
const (
	ModeMask    uint16 = 0xF000
	ModeFIFO    uint16 = 0x1000
	ModeChar    uint16 = 0x2000
	ModeDir     uint16 = 0x4000
	ModeBlock   uint16 = 0x6000
	ModeRegular uint16 = 0x8000
	ModeSymlink uint16 = 0xA000
	ModeSocket  uint16 = 0xC000
)

// Node is one inode. The same *Node under two names is a hard link.
type Node struct {
	// Mode holds file type and permissions as in stat(2).
	Mode     uint16
	UID, GID uint32
	// Size is the size of a regular file in bytes.
	Size int64
	// Open returns the content of a regular file, which must have exactly Size bytes.
	Open func() (io.ReadCloser, error)
	// Target is the target of a symbolic link.
	Target string
	// Major and Minor are the numbers of a device.
	Major, Minor uint32
	// Capability is the value of the extended attribute security.capability; nil means none.
	Capability []byte
	// Entries are the entries of a directory, in the order in which they are written.
	Entries []Entry

	ino   uint32
	links int
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Node *Node
}

func (n *Node) fileType() uint16 { return n.Mode & ModeMask }

// PathError is an error at a path of the tree.
type PathError struct {
	Path string
	Err  error
}

// Error returns path and cause.
func (e *PathError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }

// walk calls visit once for every node, for parents before their entries.
func walk(root *Node, visit func(path string, n, parent *Node) error) error {
	visited := map[*Node]bool{}
	var visitTree func(path string, n, parent *Node) error
	visitTree = func(path string, n, parent *Node) error {
		if visited[n] {
			return nil
		}
		visited[n] = true
		if err := visit(path, n, parent); err != nil {
			return &PathError{Path: path, Err: err}
		}
		for _, e := range n.Entries {
			if err := visitTree(path+"/"+e.Name, e.Node, n); err != nil {
				return err
			}
		}
		return nil
	}
	return visitTree("", root, root)
}

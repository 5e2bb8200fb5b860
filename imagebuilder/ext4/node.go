package ext4

import (
	"fmt"
	"io"
)

// Type bits of Node.Mode, as in stat(2).
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
	// Mode holds type and permission bits as stat(2) does.
	Mode     uint16
	UID, GID uint32
	// Size of a regular file in bytes.
	Size int64
	// Open gives a regular file's content, which must be exactly Size bytes long.
	Open func() (io.ReadCloser, error)
	// Target of a symbolic link.
	Target string
	// Major and Minor of a device.
	Major, Minor uint32
	// Capability is the value of the extended attribute security.capability; nil: none.
	Capability []byte
	// Entries of a directory, in the order in which they are written.
	Entries []Entry

	ino   uint32
	links int
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Node *Node
}

func (n *Node) kind() uint16 { return n.Mode & ModeMask }

// PathError says at which path in the tree writing failed.
type PathError struct {
	Path string
	Err  error
}

// Error gives path and cause.
func (e *PathError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap gives the cause.
func (e *PathError) Unwrap() error { return e.Err }

// walk visits every node once, parents first, with the inode number of its parent set.
func walk(root *Node, visit func(path string, n, parent *Node) error) error {
	seen := map[*Node]bool{}
	var down func(path string, n, parent *Node) error
	down = func(path string, n, parent *Node) error {
		if seen[n] {
			return nil
		}
		seen[n] = true
		if err := visit(path, n, parent); err != nil {
			return &PathError{Path: path, Err: err}
		}
		for _, e := range n.Entries {
			if err := down(path+"/"+e.Name, e.Node, n); err != nil {
				return err
			}
		}
		return nil
	}
	return down("", root, root)
}

package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/imagebuilder/ext4"
)

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

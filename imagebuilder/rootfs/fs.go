package rootfs

import (
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// info is a file as package fs shows it.
type info struct {
	name string
	node *node
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return i.node.size }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode { return i.node.mode }

// ModTime implements fs.FileInfo. An image has one time for all files.
func (i info) ModTime() time.Time { return time.Unix(0, 0) }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.node.mode.IsDir() }

// Sys implements fs.FileInfo: owner, device and links.
func (i info) Sys() any {
	out := &syscall.Stat_t{Uid: uint32(i.node.uid), Gid: uint32(i.node.gid), Ino: i.node.inode, Rdev: unix.Mkdev(i.node.major, i.node.minor)}
	setNumber(&out.Nlink, i.node.links)
	return out
}

// setNumber sets a number whose size depends on the architecture.
func setNumber[N uint32 | uint64](to *N, value uint32) { *to = N(value) }

// file is an open file.
type file struct {
	io.ReadCloser
	info info
}

// Stat implements fs.File.
func (f file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Open implements fs.FS for regular files.
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.resolve(name)
	if err == nil && n.open == nil {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	content, err := n.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file{content, info{path.Base(name), n}}, nil
}

// Stat implements fs.StatFS.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info{path.Base(name), n}, nil
}

// Lstat implements fs.ReadLinkFS.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	n := t.find(name)
	if n == nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return info{path.Base(name), n}, nil
}

// ReadLink implements fs.ReadLinkFS.
func (t *Tree) ReadLink(name string) (string, error) {
	n := t.find(name)
	if n == nil || n.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return n.target, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.resolve(name)
	if err == nil && !n.mode.IsDir() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var out []fs.DirEntry
	for _, child := range n.names() {
		out = append(out, fs.FileInfoToDirEntry(info{child, n.children[child]}))
	}
	return out, nil
}

// Capability returns the attribute security.capability of a file; nil when there is none.
func (t *Tree) Capability(name string) ([]byte, error) {
	n := t.find(name)
	if n == nil {
		return nil, &fs.PathError{Op: "getxattr", Path: name, Err: fs.ErrNotExist}
	}
	return n.capability, nil
}

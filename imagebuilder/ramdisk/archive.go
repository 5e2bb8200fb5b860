package ramdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// File types in the modes of the archive, as in stat(2).
const (
	modeChar    = 0o020000
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeSymlink = 0o120000
)

// maxFile is the maximum size of a file in this format.
const maxFile = 1<<32 - 1

// Tree is what a ramdisk contains.
type Tree struct {
	// Init is a statically linked program of InitSize bytes, which becomes /init.
	Init     io.Reader
	InitSize int64
	// Files are the other files by path, without a leading slash.
	Files map[string][]byte
	// Links are symbolic links by path.
	Links map[string]string
}

// Write writes the ramdisk. Beside the tree it contains the mount points /dev, /proc, /run, /sys and /tmp, and /dev/console, without which the
// kernel starts init without standard output.
func Write(w io.Writer, tree Tree) error {
	if tree.InitSize <= 0 || tree.InitSize > maxFile {
		return fmt.Errorf("ramdisk: init has %d bytes, expected 1 byte to 4 GiB", tree.InitSize)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(4<<20), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return err
	}
	a := &archive{w: z}
	for _, dir := range directories(tree) {
		a.addEntry(header{name: dir, mode: modeDir | 0o755, links: 2}, nil)
	}
	a.addEntry(header{name: "dev/console", mode: modeChar | 0o600, links: 1, major: 5, minor: 1}, nil)
	a.addEntry(header{name: "init", mode: modeRegular | 0o755, links: 1, size: tree.InitSize}, tree.Init)
	for _, name := range slices.Sorted(maps.Keys(tree.Files)) {
		content := tree.Files[name]
		a.addEntry(header{name: name, mode: modeRegular | 0o644, links: 1, size: int64(len(content))}, bytes.NewReader(content))
	}
	for _, name := range slices.Sorted(maps.Keys(tree.Links)) {
		target := tree.Links[name]
		a.addEntry(header{name: name, mode: modeSymlink | 0o777, links: 1, size: int64(len(target))}, strings.NewReader(target))
	}
	a.inode = 0
	a.addEntry(header{name: "TRAILER!!!", links: 1}, nil)
	return errors.Join(a.err, z.Close())
}

// directories returns the mount points and the directories of all files, parents first.
func directories(tree Tree) []string {
	dirs := map[string]bool{"dev": true, "proc": true, "run": true, "sys": true, "tmp": true}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(tree.Files)), slices.Collect(maps.Keys(tree.Links))) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// header describes an entry of the archive.
type header struct {
	name               string
	mode, links        int64
	size, major, minor int64
}

// archive writes entries and keeps the first error.
type archive struct {
	w     io.Writer
	inode int64
	err   error
}

// addEntry writes an entry with its content.
func (a *archive) addEntry(h header, content io.Reader) {
	if a.err != nil {
		return
	}
	a.inode++
	fields := []int64{a.inode, h.mode, 0, 0, h.links, 0, h.size, 0, 0, h.major, h.minor, int64(len(h.name) + 1), 0}
	var b strings.Builder
	b.WriteString("070701")
	for _, f := range fields {
		fmt.Fprintf(&b, "%08X", f)
	}
	b.WriteString(h.name)
	b.WriteByte(0)
	b.WriteString(padding(int64(b.Len())))
	if _, a.err = io.WriteString(a.w, b.String()); a.err != nil || content == nil {
		return
	}
	n, err := io.Copy(a.w, io.LimitReader(content, h.size+1))
	if err == nil && n != h.size {
		err = fmt.Errorf("ramdisk: %s: expected %d bytes, seen %d: the file changed while it was read", h.name, h.size, n)
	}
	if a.err = err; err == nil {
		_, a.err = io.WriteString(a.w, padding(n))
	}
}

// padding returns the bytes that pad n to a multiple of four.
func padding(n int64) string { return "\x00\x00\x00"[:-n&3] }

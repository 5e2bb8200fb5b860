package rootfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// File is a file to add. Exactly one of Content, Source and Target is used, according to Mode: a directory and an empty file have none.
type File struct {
	// Mode is the type and the permissions: those of a regular file, a directory or a symbolic link.
	Mode     fs.FileMode
	UID, GID int
	// Content of a regular file. Source is the path outside of the tree of a file that has the content.
	Content []byte
	Source  string
	// Target of a symbolic link.
	Target string
}

// Add adds a file, or replaces one. Directories that are missing above it belong to root.
func (t *Tree) Add(name string, f File) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("%s: expected a path below the root directory", name)
	}
	n := t.newNode(f.Mode)
	n.uid, n.gid, n.target = f.UID, f.GID, f.Target
	if f.Mode.IsRegular() {
		n.size = int64(len(f.Content))
		n.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Content)), nil }
	}
	if f.Source != "" {
		info, err := os.Stat(f.Source)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: expected a file", f.Source)
		}
		n.size = info.Size()
		n.open = func() (io.ReadCloser, error) { return os.Open(f.Source) }
	}
	if err := t.makeDirs(path.Dir(name)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := t.put(name, n); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// makeDirs makes the directories of the path that are missing.
func (t *Tree) makeDirs(dir string) error {
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != '/' || dir == "." {
			continue
		}
		n, err := t.resolve(dir[:i])
		if err == nil && !n.mode.IsDir() {
			return fmt.Errorf("%s is no directory", dir[:i])
		}
		if err == nil {
			continue
		}
		if old := t.find(dir[:i]); old != nil {
			return fmt.Errorf("%s is a link that leads nowhere", dir[:i])
		}
		if err := t.put(dir[:i], t.newNode(fs.ModeDir|0o755)); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a file or a directory with all that is in it. What is not there needs no removal.
func (t *Tree) Remove(name string) {
	n := t.find(name)
	if n == nil || n == t.root {
		return
	}
	if dir, err := t.resolve(path.Dir(name)); err == nil {
		delete(dir.children, path.Base(name))
		n.links--
	}
}

// Glob returns the names that match the pattern of path.Match. Only the last part of the pattern may have wildcards.
func (t *Tree) Glob(pattern string) []string {
	dir, err := t.resolve(path.Dir(pattern))
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range dir.names() {
		if matches, _ := path.Match(path.Base(pattern), name); matches {
			out = append(out, path.Join(path.Dir(pattern), name))
		}
	}
	return out
}

// ReadFile returns the content of a file.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// ReadOwners returns the numbers in etc/passwd or etc/group by their names.
func (t *Tree) ReadOwners(file string) (map[string]int, error) {
	content, err := t.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		var number int
		if len(fields) < 3 {
			continue
		}
		if _, err := fmt.Sscanf(fields[2], "%d", &number); err == nil {
			out[fields[0]] = number
		}
	}
	return out, nil
}

package build

import (
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
	"github.com/ingot-dev/ingot/imagebuilder/spdx"
)

// listFile adds a file of the recipe to the list of contents. Links and directories have no content.
func (b *builder) listFile(path string, f rootfs.File) (err error) {
	if !f.Mode.IsRegular() {
		return nil
	}
	content, err := b.tree.Open(path[1:])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	// SPDX demands SHA-1 for files (8.4 of the specification).
	old, current := sha1.New(), sha256.New()
	if _, err := io.Copy(io.MultiWriter(old, current), content); err != nil {
		return err
	}
	b.contents.Files = append(b.contents.Files, spdx.File{Path: path, SHA1: hex.EncodeToString(old.Sum(nil)), SHA256: hex.EncodeToString(current.Sum(nil))})
	return nil
}

// findPrograms returns the Go programs that the recipe built or gave as files.
func (b *builder) findPrograms() ([]spdx.Program, error) {
	var out []spdx.Program
	for i, p := range b.Recipe.Programs {
		info, err := buildinfo.ReadFile(b.programPath(i))
		if err != nil {
			return nil, err
		}
		out = append(out, spdx.Program{Path: p.Path, Info: *info})
	}
	for _, f := range b.Recipe.Files {
		if f.From == "" {
			continue
		}
		if _, err := os.Stat(b.path(f.From)); err != nil {
			return nil, err
		}
		// Most files are no Go programs.
		if info, err := buildinfo.ReadFile(b.path(f.From)); err == nil {
			out = append(out, spdx.Program{Path: f.Path, Info: *info})
		}
	}
	return out, nil
}

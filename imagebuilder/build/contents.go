package build

import (
	"debug/buildinfo"
	"errors"
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
	listed, err := spdx.ReadFile(path, content)
	if err != nil {
		return err
	}
	b.contents.Files = append(b.contents.Files, listed)
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

package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
	"github.com/ingot-dev/ingot/imagebuilder/spdx"
)

// DefaultEpoch is the time of all files when nothing else is said: 2026-01-01. With 0 the accounts in /etc/shadow would count as expired.
const DefaultEpoch = 1767225600

// Options configure Build.
type Options struct {
	Recipe recipe.Recipe
	// Dir is the directory that paths in the recipe are relative to.
	Dir string
	// Output is the directory for the image. It is created when it is missing.
	Output string
	// URLBase is the URL at which Output is served: http(s)://server/path.
	URLBase string
	// Epoch is the time of all files in the image, in seconds since 1970.
	Epoch uint32
	// Progress gets a line when a step begins and ends.
	Progress io.Writer
}

// Result is an image and what is in it.
type Result struct {
	pack.Result
	// Contents lists the packages, modules and files.
	Contents spdx.Document
	// Warnings are what nodes of the image would lack.
	Warnings []string
}

// builder has what the steps share.
type builder struct {
	Options
	// scratch is a directory that the user namespace can read, work one with room for the archive.
	scratch, work string
	tree          *rootfs.Tree
	contents      spdx.Contents
	release       string
	result        Result
}

// Build makes the image. When it fails it leaves nothing in Output but the log of the step that failed.
func Build(ctx context.Context, opts Options) (out Result, err error) {
	b := &builder{Options: opts}
	if err := b.checkInputs(); err != nil {
		return out, err
	}
	if err := os.MkdirAll(opts.Output, 0o755); err != nil {
		return out, err
	}
	if b.work, err = os.MkdirTemp(opts.Output, ".build-*"); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	if b.scratch, err = os.MkdirTemp("", "ingot-image-*"); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.scratch)) }()
	if err := os.Chmod(b.scratch, 0o755); err != nil {
		return out, err
	}
	// The archive stays open until the image is written, because the files' content is read from it.
	archive := &archiveFile{}
	defer func() { err = errors.Join(err, archive.close()) }()
	steps := []step{{"install the packages", b.bootstrap}}
	for i, p := range opts.Recipe.Programs {
		steps = append(steps, step{"build " + filepath.Base(p.Path), func(ctx context.Context, log io.Writer) error { return b.buildProgram(ctx, i, log) }})
	}
	steps = append(steps,
		step{"put the files together", func(context.Context, io.Writer) error { return b.assemble(archive) }},
		step{"write the disk", func(ctx context.Context, _ io.Writer) error { return b.pack(ctx) }})
	if err := runSteps(ctx, steps, opts.Output, opts.Progress); err != nil {
		return out, err
	}
	return b.result, nil
}

// checkInputs returns an error that names all files of the recipe that are not there, before minutes are spent.
func (b *builder) checkInputs() error {
	var err error
	check := func(field, p string) {
		if p == "" {
			return
		}
		if _, statErr := os.Stat(b.path(p)); statErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", field, statErr))
		}
	}
	for i, r := range b.Recipe.Debian.Repositories {
		check(fmt.Sprintf("debian.repositories[%d].keyFile", i), r.KeyFile)
	}
	for i, p := range b.Recipe.Debian.LocalPackages {
		check(fmt.Sprintf("debian.localPackages[%d]", i), p)
	}
	for i, f := range b.Recipe.Files {
		check(fmt.Sprintf("files[%d].from", i), f.From)
	}
	for i, p := range b.Recipe.Programs {
		check(fmt.Sprintf("programs[%d].sums", i), p.Sums)
	}
	return err
}

// archiveFile is the archive of the packages' files.
type archiveFile struct{ file *os.File }

// close closes the file if it was opened.
func (a *archiveFile) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

func (b *builder) archivePath() string { return filepath.Join(b.work, "root.tar") }

func (b *builder) programPath(i int) string {
	return filepath.Join(b.work, fmt.Sprintf("program-%d", i))
}

// path returns a path of the recipe.
func (b *builder) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(b.Dir, p)
}

// pack writes the disk.
func (b *builder) pack(ctx context.Context) error {
	size, err := b.Recipe.DiskBytes()
	if err != nil {
		return err
	}
	packed, err := pack.Pack(ctx, pack.Options{
		Source: b.tree, Output: b.Output, Name: b.Recipe.Name, URLBase: b.URLBase, Size: size, Epoch: b.Epoch,
		BootFile: &pack.BootFile{Path: recipe.GRUBConfigPath, Content: func(id recipe.Identity) []byte {
			return recipe.GRUBConfig(b.release, b.Recipe.Kernel.Arguments, id)
		}},
	})
	if err != nil {
		return err
	}
	b.contents.Image = spdx.Image{Name: filepath.Base(packed.Path), SHA256: packed.Checksum[len("sha256:"):]}
	b.result = Result{Result: packed, Contents: b.contents.Document(b.Epoch)}
	config, err := b.tree.ReadFile(recipe.ContainerdConfigPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.result.Warnings = recipe.ContainerdWarnings(config, packed.OSImage.Spec.Software.Containerd)
	return nil
}

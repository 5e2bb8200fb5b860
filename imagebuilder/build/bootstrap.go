package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// bootstrap installs the packages into the archive.
func (b *builder) bootstrap(ctx context.Context, log io.Writer) error {
	in := recipe.BootstrapInputs{Archive: b.archivePath()}
	for i, r := range b.Recipe.Debian.Repositories {
		key, err := b.readKey(r)
		if err != nil {
			return err
		}
		file := filepath.Join(b.scratch, filepath.Base(recipe.KeyPath(i, isArmored(key))))
		if err := os.WriteFile(file, key, 0o644); err != nil {
			return err
		}
		in.Keys = append(in.Keys, file)
	}
	for _, p := range b.Recipe.Debian.LocalPackages {
		file, err := filepath.Abs(b.path(p))
		if err != nil {
			return err
		}
		in.LocalPackages = append(in.LocalPackages, file)
	}
	var err error
	if in.Initramfs, err = b.writeInitramfsFiles(); err != nil {
		return err
	}
	c := command{name: "mmdebstrap", args: b.Recipe.BootstrapArguments(in), environment: []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.Epoch), "LC_ALL=C.UTF-8"}}
	return c.run(ctx, log, log)
}

// readKey returns the public key of the repository.
func (b *builder) readKey(r recipe.Repository) ([]byte, error) {
	if r.Key != "" {
		return []byte(r.Key), nil
	}
	key, err := os.ReadFile(b.path(r.KeyFile))
	if err != nil {
		return nil, fmt.Errorf("the key of %s: %w", r.URL, err)
	}
	return key, nil
}

// isArmored reports whether the key is text. apt tells by the ending of the file's name.
func isArmored(key []byte) bool { return strings.Contains(string(key), "BEGIN PGP PUBLIC KEY BLOCK") }

// writeInitramfsFiles writes an archive with the files that the initial ramdisk is made with. It returns "" when there are none.
func (b *builder) writeInitramfsFiles() (name string, err error) {
	var files []recipe.File
	for _, f := range b.Recipe.Files {
		if f.IsForInitramfs() && f.Link == "" && !f.Directory {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return "", nil
	}
	name = filepath.Join(b.scratch, "initramfs.tar")
	out, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	for _, f := range files {
		content, err := b.fileContent(f)
		if err != nil {
			return "", err
		}
		mode, err := f.Permissions()
		if err != nil {
			return "", err
		}
		if err := w.WriteHeader(&tar.Header{Name: "." + f.Path, Mode: int64(mode), Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return "", err
		}
		if _, err := w.Write(content); err != nil {
			return "", err
		}
	}
	return name, w.Close()
}

// fileContent returns the content of a small file of the recipe.
func (b *builder) fileContent(f recipe.File) ([]byte, error) {
	if f.Content != nil {
		return []byte(*f.Content), nil
	}
	return os.ReadFile(b.path(f.From))
}

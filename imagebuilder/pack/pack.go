package pack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/ext4"
	"github.com/ingot-dev/ingot/imagebuilder/fat32"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// rootSlack is the free space in the root file system, in addition to a tenth of the content. A server needs it to boot and to grow the
// file system.
const rootSlack = 64 << 20

// Source is the root file system of an installed system.
type Source interface {
	fs.ReadLinkFS
	// Capability returns the attribute security.capability of a file; nil when there is none.
	Capability(name string) ([]byte, error)
}

// BootFile is a file of the EFI system partition whose content names the image's partitions.
type BootFile struct {
	// Path is the path below boot/efi.
	Path string
	// Content returns the content for the identifiers of the image.
	Content func(recipe.Identity) []byte
}

// Options configure Pack.
type Options struct {
	// Dir is the root directory of an installed system.
	Dir string
	// Source is used instead of Dir when it is set.
	Source Source
	// BootFile is added after the identifiers are derived from the content, which must determine it; nil: there is none.
	BootFile *BootFile
	// Output is the directory for the image. It is created when it is missing. It must not be in Dir.
	Output string
	// Name is the name of the OSImage and the start of the file name. When it is empty, both start with operating system and version, and
	// the name of the OSImage ends with 12 digits of the digest.
	Name string
	// URLBase is the URL at which Output is served: http(s)://server/path.
	URLBase string
	// Size is the size of the disk in bytes. 0 means the size of the content and rootSlack.
	Size int64
	// NoESP leaves out the EFI system partition, for disks that boot in another way.
	NoESP bool
	// RootOwned makes root the owner of every file, for trees that an ordinary user created.
	RootOwned bool
	// Epoch is the time of all files in the image, in seconds since 1970.
	Epoch uint32
}

// Result is a packed image.
type Result struct {
	// Path is the path of the image file.
	Path string
	// Checksum is "sha256:" followed by the digest of the file as it is served.
	Checksum string
	// SizeBytes is the size of the file. DiskBytes is the size of the disk in it.
	SizeBytes, DiskBytes int64
	// OSImage is the object to apply.
	OSImage v1alpha1.OSImage
}

// Pack builds an image from opts.Dir in opts.Output. It returns a *recipe.Problem for an unsuitable tree. When it fails it leaves no file
// in Output.
func Pack(ctx context.Context, opts Options) (Result, error) {
	if err := validateOptions(opts); err != nil {
		return Result{}, err
	}
	source := opts.Source
	if source == nil {
		root, err := os.OpenRoot(opts.Dir)
		if err != nil {
			return Result{}, err
		}
		defer root.Close()
		source = directory{root.FS().(fs.ReadLinkFS), opts.Dir}
	}
	t, err := scan(source, opts)
	if err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	manifest, err := t.completeManifest()
	if err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	digest, err := t.digest(ctx)
	if err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	id := recipe.NewIdentity(digest)
	if err := t.addBootFile(opts.BootFile, id); err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	disk, err := t.diskLayout(opts.Size, manifest.Architecture, id)
	if err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	name := opts.Name
	if name == "" {
		name = manifest.Name()
	}
	out, err := t.write(ctx, opts, name, disk, id)
	if err != nil {
		return Result{}, explainError(opts.Dir, err)
	}
	object := opts.Name
	if object == "" {
		object = name + "-" + out.sha256[:12]
	}
	return Result{
		Path: out.path, Checksum: "sha256:" + out.sha256, SizeBytes: out.size, DiskBytes: disk.Size,
		OSImage: manifest.OSImage(object, opts.URLBase, filepath.Base(out.path), out.sha256),
	}, nil
}

// completeManifest completes the manifest with what the tree has, and puts it into the tree.
func (t *tree) completeManifest() (recipe.Manifest, error) {
	manifest, err := recipe.CompleteManifest(t.facts)
	if err != nil {
		return manifest, err
	}
	content, err := manifest.JSON()
	if err != nil {
		return manifest, err
	}
	return manifest, t.setManifest(content)
}

// validateOptions refuses options that cannot work.
func validateOptions(opts Options) error {
	if opts.Name != "" && !recipe.IsValidName(opts.Name) {
		return fmt.Errorf("name %q: expected at most 200 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit", opts.Name)
	}
	if opts.Source != nil {
		return nil
	}
	info, err := os.Stat(opts.Dir)
	if err != nil {
		return fmt.Errorf("expected the root directory of an installed system: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: expected the root directory of an installed system, seen a file: unpack it first", opts.Dir)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(opts.Output)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(dir, out); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("the output %s lies in the tree that is packed: choose a directory outside of %s", out, dir)
	}
	return nil
}

// explainError adds the directory to an error, and how to correct the usual errors.
func explainError(dir string, err error) error {
	var at *ext4.PathError
	if errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", at.Path, at.Err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w: run as root, or make the file readable", dir, err)
	}
	if dir == "" {
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// diskLayout returns the layout of the disk for the tree.
func (t *tree) diskLayout(size int64, architecture string, id recipe.Identity) (recipe.Disk, error) {
	var sizes recipe.PartitionSizes
	minimum, err := ext4.MinSize(t.root, 0)
	if err != nil {
		return recipe.Disk{}, err
	}
	if sizes.Root = minimum; size == 0 {
		if sizes.Root, err = ext4.MinSize(t.root, minimum/10+rootSlack); err != nil {
			return recipe.Disk{}, err
		}
	}
	if t.espRoot != nil {
		sizes.ESP = fat32.Size(t.espRoot)
	}
	return recipe.NewDisk(sizes, size, architecture, id)
}

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

// rootSlack is left free in the root file system beside a tenth of the content: enough to boot and to grow.
const rootSlack = 64 << 20

// Options say what Pack packs.
type Options struct {
	// Dir is the root directory of an installed system.
	Dir string
	// Output is the directory for the image; it is made when it is missing. It must not lie in Dir.
	Output string
	// Name of the OSImage and beginning of the file's name. Empty: os-version, and the OSImage's with 12 digits of the digest.
	Name string
	// URLBase is where Output is served: http(s)://server/path.
	URLBase string
	// Size of the whole disk in bytes; 0: what the content needs, and room to boot.
	Size int64
	// NoESP packs no EFI system partition: for disks that something else boots.
	NoESP bool
	// RootOwned gives every file to root, for trees that an ordinary user made.
	RootOwned bool
	// Epoch is the time of everything in the image in seconds since 1970.
	Epoch uint32
}

// Result is a packed image.
type Result struct {
	// Path of the file that was written.
	Path string
	// Checksum is sha256: and the digest of the file as it is served.
	Checksum string
	// SizeBytes of that file, and DiskBytes of the disk that it unpacks to.
	SizeBytes, DiskBytes int64
	// OSImage to apply.
	OSImage v1alpha1.OSImage
}

// Pack packs opts.Dir into opts.Output. What is wrong with the tree comes back as a *recipe.Problem. Nothing is left
// behind in Output on an error.
func Pack(ctx context.Context, opts Options) (Result, error) {
	if err := check(opts); err != nil {
		return Result{}, err
	}
	root, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return Result{}, err
	}
	defer root.Close()
	t, err := scan(root, opts)
	if err != nil {
		return Result{}, explain(opts.Dir, err)
	}
	manifest, err := recipe.Describe(t.facts)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", opts.Dir, err)
	}
	content, err := manifest.JSON()
	if err != nil {
		return Result{}, err
	}
	if err := t.setManifest(content); err != nil {
		return Result{}, fmt.Errorf("%s: %w", opts.Dir, err)
	}
	digest, err := t.digest(ctx)
	if err != nil {
		return Result{}, explain(opts.Dir, err)
	}
	id := recipe.Identify(digest)
	disk, err := t.layOut(opts.Size, manifest.Architecture, id)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", opts.Dir, err)
	}
	name := opts.Name
	if name == "" {
		name = manifest.Name()
	}
	out, err := t.write(ctx, opts, name, disk, id)
	if err != nil {
		return Result{}, explain(opts.Dir, err)
	}
	object := opts.Name
	if object == "" {
		object = name + "-" + out.sha256[:12]
	}
	return Result{
		Path: out.path, Checksum: "sha256:" + out.sha256, SizeBytes: out.size, DiskBytes: disk.Size,
		OSImage: manifest.Object(object, opts.URLBase, filepath.Base(out.path), out.sha256),
	}, nil
}

func check(opts Options) error {
	info, err := os.Stat(opts.Dir)
	if err != nil {
		return fmt.Errorf("expected the root directory of an installed system: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: expected the root directory of an installed system, seen a file: unpack it first", opts.Dir)
	}
	if opts.Name != "" && !recipe.ValidName(opts.Name) {
		return fmt.Errorf("name %q: expected at most 200 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit", opts.Name)
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

// explain puts the tree before a path in it and says what mends the usual failures.
func explain(dir string, err error) error {
	var at *ext4.PathError
	if errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", at.Path, at.Err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w: run as root, or make the file readable", dir, err)
	}
	return fmt.Errorf("%s: %w", dir, err)
}

func (t *tree) layOut(size int64, architecture string, id recipe.Identity) (recipe.Disk, error) {
	var need recipe.Need
	bare, err := ext4.MinSize(t.root, 0)
	if err != nil {
		return recipe.Disk{}, err
	}
	if need.Root = bare; size == 0 {
		if need.Root, err = ext4.MinSize(t.root, bare/10+rootSlack); err != nil {
			return recipe.Disk{}, err
		}
	}
	if t.efi != nil {
		need.ESP = fat32.Size(t.efi)
	}
	return recipe.Lay(need, size, architecture, id)
}

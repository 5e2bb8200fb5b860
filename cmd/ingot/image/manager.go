package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/imagebuilder/container"
	"github.com/ingot-dev/ingot/imagebuilder/deb"
)

// Where the image has its files. The directories are the manager's defaults.
const (
	programPath     = "usr/local/bin/ingot-manager"
	bootPath        = "var/lib/ingot/boot"
	bootloadersPath = "usr/lib/ipxe"
	contentsPath    = "usr/share/doc/ingot/spdx.json"
)

// imageUser is the user that the manager runs as unless the Deployment says otherwise. 65532 is the one that distroless images call nonroot.
const imageUser = "65532:65532"

// elfMachines are the architectures that the manager is built for.
var elfMachines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// managerOptions are the flags of `ingot image manager`.
type managerOptions struct {
	programs                      map[string]string
	boot, bootloaders, ca         string
	name, version, source, output string
	push                          bool
}

func managerCommand() *cobra.Command {
	var o managerOptions
	c := &cobra.Command{
		Use:   "manager --program ARCH=PATH --name REGISTRY/NAME:TAG -o DIR",
		Short: "Make the container image of ingot-manager, without a container engine",
		Long: `Makes DIR/layout, an OCI image layout for all architectures, and DIR/ingot-manager.tar,
which ctr images import, docker load and skopeo (oci-archive) read. With --push the
image goes to its registry, with the credentials of docker login.

The image has the manager, the certificates that it trusts, what the boot service
serves (--boot, made by ingot image ramdisk; --bootloaders) and an SPDX list of its
contents. The files of the boot service are layers of their own: a new kernel changes
one layer. They are of the architecture of the servers, whatever the manager runs on.
The same inputs give the same digest, which is printed.`,
		Example: `  ingot image manager --program amd64=bin/linux-amd64/ingot-manager --boot boot --bootloaders /usr/lib/ipxe \
    --name registry.example.com/ingot-manager:v1 --push -o image`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.programs) == 0 || o.name == "" || o.output == "" {
				return cli.Usagef(cmd, "expected --program, a statically linked ingot-manager for each architecture, --name, the name of the image, and -o, the directory to write to")
			}
			ref, err := name.NewTag(o.name, name.StrictValidation)
			if err != nil {
				return cli.Usagef(cmd, "--name %s: expected REGISTRY/NAME:TAG: %v", o.name, err)
			}
			return makeManager(cmd.Context(), o, ref, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringToStringVar(&o.programs, "program", nil, "ARCH=PATH of a statically linked ingot-manager, ARCH is amd64 or arm64; once for each")
	f.StringVar(&o.boot, "boot", "", "directory with the kernel and the ramdisk (default: none, the Deployment must mount it)")
	f.StringVar(&o.bootloaders, "bootloaders", "", "directory or package (.deb) with iPXE's programs (default: none)")
	f.StringVar(&o.ca, "ca", "/"+systemRoots, "file with the certificates in PEM that the manager trusts")
	f.StringVar(&o.name, "name", "", "name of the image, such as registry.example.com/ingot-manager:v1")
	f.StringVar(&o.version, "version", "unknown", "version, for the image's labels")
	f.StringVar(&o.source, "source", "https://github.com/ingot-dev/ingot", "where the source is, for the image's labels")
	f.BoolVar(&o.push, "push", false, "push the image to its registry")
	f.StringVarP(&o.output, "output", "o", "", "directory to write to")
	return c
}

// makeManager makes the image and writes it, and pushes it last.
func makeManager(ctx context.Context, o managerOptions, ref name.Tag, stdout, stderr io.Writer) (err error) {
	work, err := os.MkdirTemp("", "ingot-image-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	shared, err := sharedLayers(o, work)
	if err != nil {
		return err
	}
	labels := map[string]string{
		"org.opencontainers.image.title": "ingot-manager", "org.opencontainers.image.version": o.version, "org.opencontainers.image.source": o.source,
		"org.opencontainers.image.licenses": licenses(o),
	}
	var images []container.Image
	for _, architecture := range []string{"amd64", "arm64"} {
		program, isGiven := o.programs[architecture]
		if !isGiven {
			continue
		}
		fmt.Fprintf(stderr, "packing the image for linux/%s\n", architecture)
		layers, err := managerLayers(o, program, architecture, shared)
		if err != nil {
			return err
		}
		images = append(images, container.Image{
			OS: "linux", Architecture: architecture, Layers: layers, Entrypoint: []string{"/" + programPath}, User: imageUser, Labels: labels,
		})
	}
	if len(images) < len(o.programs) {
		return fmt.Errorf("--program: expected the architectures amd64 and arm64, found others")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return writeManager(ctx, o, ref, images, labels, stdout, stderr)
}

// licenses returns the licences of what is in the image, as SPDX writes them. Linux and iPXE are under the GPL.
func licenses(o managerOptions) string {
	if o.boot == "" && o.bootloaders == "" {
		return "Apache-2.0"
	}
	return "Apache-2.0 AND GPL-2.0-only"
}

// sharedLayers returns the layers that are the same for every architecture.
func sharedLayers(o managerOptions, work string) ([]container.Layer, error) {
	roots, err := readRoots(ramdiskOptions{cas: []string{o.ca}, noSystemCA: true})
	if err != nil {
		return nil, err
	}
	layers := []container.Layer{{
		{Path: systemRoots, Mode: 0o644, Content: roots},
		{Path: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnonroot:x:65532:\n")},
	}}
	if o.bootloaders != "" {
		programs, err := bootloaders(o.bootloaders, filepath.Join(work, "bootloaders"))
		if err != nil {
			return nil, err
		}
		layers = append(layers, programs)
	}
	if o.boot != "" {
		files, err := filesBelow(o.boot, bootPath, "", func(name string) bool { return !strings.HasPrefix(name, ".") })
		if err != nil {
			return nil, fmt.Errorf("--boot: %w", err)
		}
		for _, needed := range []string{kernelFile, initrdFile} {
			if !slices.ContainsFunc(files, func(f container.File) bool { return f.Path == bootPath+"/"+needed }) {
				return nil, fmt.Errorf("--boot %s: expected the output of `ingot image ramdisk`, found no %s", o.boot, needed)
			}
		}
		layers = append(layers, files)
	}
	return layers, nil
}

// bootloaders returns iPXE's programs for UEFI and for BIOS.
func bootloaders(path, work string) (container.Layer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--bootloaders: %w", err)
	}
	dir, within := path, ""
	if !info.IsDir() {
		if err := os.MkdirAll(work, 0o755); err != nil {
			return nil, err
		}
		if err := deb.UnpackFile(path, work, func(name string) bool { return strings.Contains(name, bootloadersPath+"/") }); err != nil {
			return nil, err
		}
		dir, within = filepath.Join(work, filepath.FromSlash(bootloadersPath)), work
	}
	files, err := filesBelow(dir, bootloadersPath, within, func(name string) bool {
		return strings.HasSuffix(name, ".efi") || strings.HasSuffix(name, ".kpxe")
	})
	if err == nil && len(files) == 0 {
		err = errors.New("expected iPXE's programs such as snponly.efi, found none")
	}
	if err != nil {
		return nil, fmt.Errorf("--bootloaders %s: %w", path, err)
	}
	return files, nil
}

// filesBelow returns the files of a directory whose names fit. Where within is set, a link that leads out of that directory is left out: in a package it
// names a file of the machine that the package is installed on, and here that is another one.
func filesBelow(dir, target, within string, fits func(name string) bool) (container.Layer, error) {
	var files container.Layer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !fits(d.Name()) {
			return err
		}
		real, err := filepath.EvalSymlinks(path)
		if within != "" && (err != nil || !strings.HasPrefix(real, within+string(filepath.Separator))) {
			return nil
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files = append(files, container.File{Path: target + "/" + filepath.ToSlash(inside), Mode: 0o644, Source: real})
		return nil
	})
	return files, err
}

// managerLayers returns the layers of one architecture: what changes seldom first.
func managerLayers(o managerOptions, program, architecture string, shared []container.Layer) ([]container.Layer, error) {
	if err := checkProgram(program, architecture); err != nil {
		return nil, fmt.Errorf("--program %s=%s: %w", architecture, program, err)
	}
	layers := append(append([]container.Layer{}, shared...), container.Layer{{Path: programPath, Mode: 0o755, Source: program}})
	contents, err := container.Contents("ingot-manager-"+architecture, o.version, program, layers)
	if err != nil {
		return nil, err
	}
	return append(layers, container.Layer{{Path: contentsPath, Mode: 0o644, Content: contents}}), nil
}

// checkProgram refuses a program that would not start in the image. Without it: the pod ends with "exec format error" or "no such file", and
// nothing says that the image was made of the wrong file.
func checkProgram(path, architecture string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := checkStatic(file); err != nil {
		return err
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return err
	}
	if want := elfMachines[architecture]; program.Machine != want {
		return fmt.Errorf("expected a program for %s (%s), found one for %s", architecture, want, program.Machine)
	}
	return nil
}

// writeManager writes and pushes the image and prints its name with the digest.
func writeManager(ctx context.Context, o managerOptions, ref name.Tag, images []container.Image, annotations map[string]string, stdout, stderr io.Writer) error {
	index, err := container.Index(images, annotations)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	dir, archive := filepath.Join(o.output, "layout"), filepath.Join(o.output, "ingot-manager.tar")
	if err := container.WriteLayout(dir, index, ref); err != nil {
		return err
	}
	if err := writeFile(archive, func(w io.Writer) error {
		return container.WriteArchive(w, dir, index, ref, images[0].Architecture)
	}); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %s and %s\n", dir, archive)
	if o.push {
		fmt.Fprintf(stderr, "pushing %s\n", ref.Name())
		if err := container.Push(ctx, index, ref); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s@%s\n", ref.Name(), digest)
	return err
}

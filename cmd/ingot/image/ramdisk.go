package image

import (
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/imagebuilder/deb"
	"github.com/ingot-dev/ingot/imagebuilder/kernel"
	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
)

// Names of the files, which are the manager's defaults for boot.kernel and boot.initrd.
const (
	kernelFile = "vmlinuz"
	initrdFile = "agent.cpio.zst"
	reportFile = "ramdisk.json"
)

// systemRoots is where distributions keep the certificates that a system trusts, and where the agent looks for them.
const systemRoots = "etc/ssl/certs/ca-certificates.crt"

// ramdiskOptions are the flags of `ingot image ramdisk`.
type ramdiskOptions struct {
	agent, kernel, release, output string
	firmware, cas                  []string
	noSystemCA                     bool
}

func ramdiskCommand() *cobra.Command {
	var opts ramdiskOptions
	c := &cobra.Command{
		Use:   "ramdisk --agent PATH --kernel PACKAGE|DIR -o DIR",
		Short: "Make the kernel and the ramdisk that servers boot to be installed",
		Long: `Makes DIR/` + kernelFile + ` and DIR/` + initrdFile + `, which the boot service serves to servers that
are installed, erased or inspected, and DIR/` + reportFile + `, which says what is in them.

The kernel is a distribution's package (.deb) or a directory with its files unpacked
(boot/vmlinuz-RELEASE, lib/modules/RELEASE). The ramdisk has the agent, the modules of
servers' network and storage controllers, their firmware as far as --firmware has
it, and the certificates that image servers are trusted by: those of this system,
and those of --ca. The same inputs give the same bytes.`,
		Example: `  apt-get download linux-image-6.1.0-56-amd64
  ingot image ramdisk --agent bin/ingot-agent --kernel linux-image-*.deb --firmware /lib/firmware -o boot`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.agent == "" || opts.kernel == "" || opts.output == "" {
				return cli.Usagef(cmd, "expected --agent, a statically linked ingot-agent, --kernel, a kernel's package or directory, and -o, the directory to write to")
			}
			return makeRamdisk(cmd.Context(), opts, cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&opts.agent, "agent", "", "statically linked ingot-agent")
	f.StringVar(&opts.kernel, "kernel", "", "package (.deb) or directory of the kernel with its modules")
	f.StringVar(&opts.release, "release", "", "release of the kernel where the directory has several")
	f.StringArrayVar(&opts.firmware, "firmware", nil, "package (.deb) or directory with firmware files, several are searched in their order")
	f.StringArrayVar(&opts.cas, "ca", nil, "file with certificates in PEM that the agent trusts image servers by")
	f.BoolVar(&opts.noSystemCA, "no-system-ca", false, "leave out the certificates that this system trusts")
	f.StringVarP(&opts.output, "output", "o", "", "directory to write to")
	return c
}

// makeRamdisk unpacks what is packed below a temporary directory and writes the files.
func makeRamdisk(ctx context.Context, opts ramdiskOptions, stderr io.Writer) (err error) {
	agent, err := openAgent(opts.agent)
	if err != nil {
		return err
	}
	defer agent.Close()
	work, err := os.MkdirTemp("", "ingot-ramdisk-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	tree := ramdisk.Tree{Files: map[string][]byte{}, Links: map[string]string{"sbin/modprobe": "/init"}}
	k, err := openKernel(ctx, opts, filepath.Join(work, "kernel"), stderr)
	if err != nil {
		return err
	}
	firmware, err := openFirmware(opts.firmware, filepath.Join(work, "firmware"))
	if err != nil {
		return err
	}
	report, err := ramdisk.AddModules(tree.Files, k, firmware)
	if err != nil {
		return err
	}
	if tree.Files[systemRoots], err = readRoots(opts); err != nil {
		return err
	}
	if err := writeBootFiles(opts, agent, k, tree, report); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "kernel %s with %d modules and %d firmware files in %s\n", report.Release, len(report.Modules), len(report.Firmware), opts.output)
	if n := len(report.MissingFirmware); n > 0 {
		fmt.Fprintf(stderr, "%d modules ask for firmware files that no --firmware has; most cards work without. They are listed in %s\n", n, filepath.Join(opts.output, reportFile))
	}
	return nil
}

// openKernel reads the kernel of the directory or package.
func openKernel(ctx context.Context, opts ramdiskOptions, work string, stderr io.Writer) (*kernel.Kernel, error) {
	info, err := os.Stat(opts.kernel)
	if err != nil {
		return nil, fmt.Errorf("--kernel: %w", err)
	}
	tree := os.DirFS(opts.kernel)
	if !info.IsDir() {
		fmt.Fprintf(stderr, "unpacking %s\n", opts.kernel)
		isOfKernel := func(name string) bool {
			return strings.HasPrefix(name, "boot/vmlinuz-") || strings.Contains(name, "lib/modules/")
		}
		if err := os.MkdirAll(work, 0o755); err != nil {
			return nil, err
		}
		if err := deb.UnpackFile(opts.kernel, work, isOfKernel); err != nil {
			return nil, err
		}
		if tree, err = openUnpacked(work); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	k, err := kernel.Read(tree, opts.release)
	if err != nil {
		return nil, fmt.Errorf("--kernel %s: %w", opts.kernel, err)
	}
	return k, nil
}

// openFirmware returns the trees of the directories and packages. A directory may be lib/firmware itself.
func openFirmware(paths []string, work string) (ramdisk.Firmware, error) {
	var out ramdisk.Firmware
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--firmware: %w", err)
		}
		if info.IsDir() {
			out = append(out, os.DirFS(path), below{os.DirFS(path), "lib/firmware/"})
			continue
		}
		dir := filepath.Join(work, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := deb.UnpackFile(path, dir, func(name string) bool { return strings.Contains(name, "lib/firmware/") }); err != nil {
			return nil, err
		}
		unpacked, err := openUnpacked(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, unpacked)
	}
	return out, nil
}

// openUnpacked returns the tree of an unpacked package. A link in it that leads out is not followed: what it names is a file of this machine, and every
// server would get it.
func openUnpacked(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return root.FS(), nil // The root stays open as long as the program runs.
}

// below shows a file system as if it were mounted at prefix.
type below struct {
	fs.FS
	prefix string
}

// Open implements fs.FS.
func (b below) Open(name string) (fs.File, error) {
	rest, found := strings.CutPrefix(name, b.prefix)
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return b.FS.Open(rest)
}

// readRoots returns the certificates that the agent trusts, in PEM.
func readRoots(opts ramdiskOptions) ([]byte, error) {
	var out bytes.Buffer
	files := opts.cas
	if !opts.noSystemCA {
		files = append([]string{"/" + systemRoots}, files...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("certificates: %w (--no-system-ca leaves out those of this system, --ca names others)", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: expected certificates in PEM", file)
		}
		out.Write(bytes.TrimSpace(content))
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// writeBootFiles writes the files of the boot service.
func writeBootFiles(opts ramdiskOptions, agent *os.File, k *kernel.Kernel, tree ramdisk.Tree, report ramdisk.Report) (err error) {
	info, err := agent.Stat()
	if err != nil {
		return err
	}
	tree.Init, tree.InitSize = io.NewSectionReader(agent, 0, info.Size()), info.Size()
	image, err := k.Image()
	if err != nil {
		return err
	}
	defer image.Close()
	if err := os.MkdirAll(opts.output, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return writeTogether(opts.output, []outputFile{
		{initrdFile, func(w io.Writer) error { return ramdisk.Write(w, tree) }},
		{kernelFile, func(w io.Writer) error { _, err := io.Copy(w, image); return err }},
		{reportFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err }},
	})
}

// outputFile is a file that a command writes.
type outputFile struct {
	name  string
	write func(io.Writer) error
}

// writeTogether writes the files under temporary names and renames them when all are written. Without it: the disk is full, the ramdisk of the former
// kernel stays beside the new kernel, and servers boot without their drivers.
func writeTogether(dir string, files []outputFile) (err error) {
	temporary, err := os.MkdirTemp(dir, ".ramdisk-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	for _, file := range files {
		if err := writeNew(filepath.Join(temporary, file.name), file.write); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
	}
	for _, file := range files {
		if err := os.Rename(filepath.Join(temporary, file.name), filepath.Join(dir, file.name)); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes the file under a temporary name and renames it, so that nobody ever reads a part of it.
func writeFile(path string, content func(io.Writer) error) error {
	return writeTogether(filepath.Dir(path), []outputFile{{filepath.Base(path), content}})
}

// writeNew writes a file that is not there yet and that everybody may read.
func writeNew(path string, write func(io.Writer) error) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err = write(out); err == nil {
		err = out.Chmod(0o644)
	}
	return errors.Join(err, out.Sync(), out.Close())
}

// openAgent opens the agent.
func openAgent(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("expected a statically linked ingot-agent: %w", err)
	}
	if err := checkStatic(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}

// checkStatic refuses a program that cannot run as the only file of a ramdisk. The kernel would panic with "no working init found",
// which nobody sees on a server without a screen.
func checkStatic(program io.ReaderAt) error {
	f, err := elf.NewFile(program)
	if err != nil {
		return fmt.Errorf("expected a Linux program, seen something else (%w): give the ingot-agent that `make build` makes", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("expected a statically linked program, seen one that needs a loader: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

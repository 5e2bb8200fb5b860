package image

import (
	"cmp"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
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
	agent, release, output string
	efiStub                string
	kernel, firmware, cas  []string
	noSystemCA             bool
}

func ramdiskCommand() *cobra.Command {
	var opts ramdiskOptions
	c := &cobra.Command{
		Use:   "ramdisk --agent PATH --kernel PACKAGE|DIR -o DIR",
		Short: "Make the kernel and the ramdisk that servers boot to be installed",
		Long: `Makes DIR/` + kernelFile + ` and DIR/` + initrdFile + `, which the boot service serves to servers that
are installed, erased or inspected, and DIR/` + reportFile + `, which says what is in them.

The kernel is a distribution's package (.deb), or several where it is split (Ubuntu:
linux-image, linux-modules, linux-modules-extra), or a directory with its files
unpacked (boot/vmlinuz-RELEASE, lib/modules/RELEASE). The ramdisk has the agent, the
modules of servers' network and storage controllers, their firmware as far as
--firmware or the kernel's packages have it, and the certificates that image servers
are trusted by: those of this system, and those of --ca. The same inputs give the
same bytes. --efi-stub adds the program that BMCs' virtual media begin with.`,
		Example: `  apt-get download linux-image-6.1.0-56-amd64
  ingot image ramdisk --agent bin/ingot-agent --kernel linux-image-*.deb --firmware /lib/firmware -o boot`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.agent == "" || len(opts.kernel) == 0 || opts.output == "" {
				return cli.Usagef(cmd, "expected --agent, a statically linked ingot-agent, --kernel, a kernel's package or directory, and -o, the directory to write to")
			}
			return makeRamdisk(cmd.Context(), opts, cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&opts.agent, "agent", "", "statically linked ingot-agent")
	f.StringArrayVar(&opts.kernel, "kernel", nil, "package (.deb), repeated for each one that the kernel is split into, or directory of the kernel with its modules")
	f.StringVar(&opts.release, "release", "", "release of the kernel where the directory has several")
	f.StringArrayVar(&opts.firmware, "firmware", nil, "package (.deb) or directory with firmware files, several are searched in their order")
	f.StringArrayVar(&opts.cas, "ca", nil, "file with certificates in PEM that the agent trusts image servers by")
	f.StringVar(&opts.efiStub, "efi-stub", "", "systemd's EFI stub (linuxx64.efi.stub) or its package systemd-boot-efi (.deb), for virtual media (default: none)")
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
	kernelTree, err := openKernelTree(opts.kernel, filepath.Join(work, "kernel"), stderr)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k, err := kernel.Read(kernelTree, opts.release)
	if err != nil {
		return fmt.Errorf("--kernel %s: %w", strings.Join(opts.kernel, ", "), err)
	}
	if err := checkArchitecture(agent, k); err != nil {
		return err
	}
	firmware, err := openFirmware(opts.firmware, filepath.Join(work, "firmware"))
	if err != nil {
		return err
	}
	// Ubuntu's packages of modules have firmware too. What was given by name goes first.
	firmware = append(firmware, kernelTree)
	report, err := ramdisk.AddModules(tree.Files, k, firmware)
	if err != nil {
		return err
	}
	if tree.Files[systemRoots], err = readRoots(opts); err != nil {
		return err
	}
	stub, err := readStub(opts.efiStub, filepath.Join(work, "stub"), report.Architecture, k)
	if err != nil {
		return err
	}
	if err := writeBootFiles(opts, agent, k, tree, report, stub); err != nil {
		return err
	}
	printReport(stderr, report, opts.output)
	return nil
}

// printReport prints what the ramdisk has, and which cards may not work with it.
func printReport(w io.Writer, report ramdisk.Report, output string) {
	fmt.Fprintf(w, "kernel %s (%s) with %d modules and %d firmware files in %s\n", report.Release, report.Architecture, len(report.Modules), len(report.Firmware), output)
	for _, warning := range report.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	if len(report.MissingFirmware) == 0 {
		return
	}
	fmt.Fprintf(w, "%d modules ask for firmware files that no --firmware has; most cards work without, and the files are named in %s:\n",
		len(report.MissingFirmware), filepath.Join(output, reportFile))
	for _, name := range slices.Sorted(maps.Keys(report.MissingPackages)) {
		fmt.Fprintf(w, "  %s: %s\n", cmp.Or(name, "no package of Debian is known"), strings.Join(report.MissingPackages[name], ", "))
	}
	fmt.Fprintln(w, "Debian 12 has these packages in its component non-free-firmware (firmware-linux-free: main); give each with --firmware PACKAGE.deb, or a directory like /lib/firmware.")
}

// readRoots returns the certificates that the agent trusts, in PEM: each once and sorted, so that the order of --ca changes no byte.
func readRoots(opts ramdiskOptions) ([]byte, error) {
	certificates := map[string]bool{}
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
		for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" {
				certificates[string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))] = true
			}
		}
	}
	return []byte(strings.Join(slices.Sorted(maps.Keys(certificates)), "")), nil
}

// writeBootFiles writes the files of the boot service. An empty stub is left out.
func writeBootFiles(opts ramdiskOptions, agent *os.File, k *kernel.Kernel, tree ramdisk.Tree, report ramdisk.Report, stub []byte) (err error) {
	info, err := agent.Stat()
	if err != nil {
		return err
	}
	tree.Init, tree.InitSize = io.NewSectionReader(agent, 0, info.Size()), info.Size()
	if err := os.MkdirAll(opts.output, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	files := []outputFile{
		{initrdFile, func(w io.Writer) error { return ramdisk.Write(w, tree) }},
		{kernelFile, func(w io.Writer) error { _, err := w.Write(k.Image()); return err }},
		{reportFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err }},
	}
	if len(stub) > 0 {
		files = append(files, outputFile{stubFiles[report.Architecture], func(w io.Writer) error { _, err := w.Write(stub); return err }})
	}
	return writeTogether(opts.output, files)
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

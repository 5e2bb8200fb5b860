package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/imagebuilder/bootcheck"
	"github.com/ingot-dev/ingot/imagebuilder/build"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// buildOptions are the flags of `ingot image build`.
type buildOptions struct {
	build.Options
	check bool
}

func buildCommand() *cobra.Command {
	var opts buildOptions
	c := &cobra.Command{
		Use:   "build RECIPE -o DIR",
		Short: "Build a bootable disk image from a recipe",
		Long: `Builds DIR/NAME-DIGEST.raw.zst from Debian's packages, files and Go programs, as RECIPE says,
and prints the OSImage to apply. Beside the image lie its digest (.sha256), the list of what
it consists of (.spdx.json, SPDX 2.3), what is baked in (.image.json) and the OSImage
(.osimage.yaml).

Needs mmdebstrap, and no root: it works in a user namespace. An image for another architecture
than this machine's also needs qemu-user-static, binfmt-support and arch-test. The image boots by UEFI, with Secure
Boot and without. The same recipe gives the same bytes where its repositories are snapshots;
times in the image are SOURCE_DATE_EPOCH, or 2026-01-01. --check also boots the image in QEMU
and waits until cloud-init is done.`,
		Example: "  ingot image build config/images/debian-kubernetes.yaml -o images --check --url-base https://images.example.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Output == "" {
				return cli.Usagef(cmd, "expected -o, the directory to write to")
			}
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if opts.Recipe, err = recipe.Parse(raw); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			opts.Dir, opts.Epoch, opts.Progress = filepath.Dir(args[0]), build.DefaultEpoch, cmd.ErrOrStderr()
			flags := pack.Options{URLBase: opts.URLBase, Epoch: opts.Epoch}
			if err := parseFlags(cmd, &flags, ""); err != nil {
				return err
			}
			opts.Epoch = flags.Epoch
			return runBuild(cmd.Context(), opts, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVarP(&opts.Output, "output", "o", "", "directory for the image")
	f.StringVar(&opts.URLBase, "url-base", "", "where DIR is served, http(s)://server/path")
	f.BoolVar(&opts.check, "check", false, "boot the image in QEMU and wait until cloud-init is done")
	return c
}

// tool is a program that building needs, and the package that has it.
type tool struct{ program, aptPackage string }

// missingTools returns an error that names everything that is missing, so that nobody finds out one by one.
func missingTools(tools []tool) error {
	var programs, packages []string
	for _, t := range tools {
		if _, err := exec.LookPath(t.program); err != nil {
			programs, packages = append(programs, t.program), append(packages, t.aptPackage)
		}
	}
	if len(programs) == 0 {
		return nil
	}
	return fmt.Errorf("missing %s: apt-get install %s", strings.Join(programs, ", "), strings.Join(packages, " "))
}

// foreignTools run the package scripts of another architecture than this machine's: mmdebstrap asks arch-test whether the kernel hands such
// programs to QEMU's user emulation, which binfmt-support registers.
func foreignTools(architecture string) []tool {
	emulator := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}[architecture]
	return []tool{{"arch-test", "arch-test"}, {emulator, "qemu-user-static"}, {"update-binfmts", "binfmt-support"}}
}

// neededTools are the programs that the recipe needs.
func (o buildOptions) neededTools() []tool {
	out := []tool{{"mmdebstrap", "mmdebstrap"}}
	if os.Geteuid() != 0 {
		out = append(out, tool{"newuidmap", "uidmap"})
	}
	if o.Recipe.Architecture != runtime.GOARCH {
		out = append(out, foreignTools(o.Recipe.Architecture)...)
	}
	if o.check {
		out = append(out, tool{"qemu-system-x86_64", "qemu-system-x86"})
	}
	if len(o.Recipe.Programs) > 0 {
		out = append(out, tool{"go", "golang-go"})
	}
	return out
}

func runBuild(ctx context.Context, opts buildOptions, stdout, stderr io.Writer) error {
	if err := missingTools(opts.neededTools()); err != nil {
		return err
	}
	if opts.check && opts.Recipe.Architecture != "amd64" {
		return fmt.Errorf("--check: expected architecture amd64, seen %s: boot the image on a server", opts.Recipe.Architecture)
	}
	r, err := build.Build(ctx, opts.Options)
	if err != nil {
		return err
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(stderr, "warning: "+w)
	}
	if opts.check {
		if err := checkBoot(ctx, r, opts, stderr); err != nil {
			return err
		}
	}
	text, err := MarshalOSImage(r.OSImage)
	if err != nil {
		return err
	}
	if err := writeCompanions(r, text); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "built %s: %s, a disk of %s\n", r.Path, formatMiB(r.SizeBytes), formatMiB(r.DiskBytes))
	if opts.URLBase == "" {
		fmt.Fprintln(stderr, "no --url-base: set spec.url to where the file is served before you apply the OSImage")
	}
	_, err = stdout.Write(text)
	return err
}

// checkLimit is how long the boot of --check may take. It takes 2 minutes on two slow cores without hardware virtualisation.
const checkLimit = 20 * time.Minute

// checkBoot boots the image. When that fails, the image is removed and its console is kept.
func checkBoot(ctx context.Context, r build.Result, opts buildOptions, stderr io.Writer) error {
	began := time.Now()
	firmware, err := bootcheck.FindFirmware()
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, "boot the image")
	console := filepath.Join(opts.Output, "failed-boot-console.log")
	err = bootcheck.Check(ctx, bootcheck.Options{Image: r.Path, Console: console, Firmware: firmware, Limit: checkLimit, Progress: stderr})
	if ctx.Err() != nil {
		return errors.Join(errors.New("boot the image: interrupted"), os.Remove(r.Path), os.Remove(console))
	}
	if err != nil {
		return errors.Join(err, os.Remove(r.Path))
	}
	fmt.Fprintf(stderr, "      cloud-init is done, after %d s\n", int(time.Since(began).Seconds()))
	return os.Remove(console)
}

// writeCompanions writes the files beside the image.
func writeCompanions(r build.Result, osImage []byte) error {
	base := strings.TrimSuffix(r.Path, ".raw.zst")
	contents, err := r.Contents.JSON()
	if err != nil {
		return err
	}
	spec := r.OSImage.Spec
	manifest, err := recipe.Manifest{
		Architecture: spec.Architecture, OS: spec.OS, KernelArguments: spec.KernelArguments, UserData: spec.UserData, Software: spec.Software,
	}.JSON()
	if err != nil {
		return err
	}
	// The digest is written as sha256sum -c reads it.
	sum := fmt.Sprintf("%s  %s\n", strings.TrimPrefix(r.Checksum, "sha256:"), filepath.Base(r.Path))
	for suffix, content := range map[string][]byte{".spdx.json": contents, ".image.json": manifest, ".osimage.yaml": osImage, ".raw.zst.sha256": []byte(sum)} {
		err = errors.Join(err, writeFile(base+suffix, func(w io.Writer) error { _, err := w.Write(content); return err }))
	}
	return err
}

package image

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
)

// Command is `ingot image`.
func Command() *cobra.Command {
	return cli.NewGroup("image", "Make what servers install", buildCommand(), convertCommand(), packCommand(), ramdiskCommand(), managerCommand())
}

func packCommand() *cobra.Command {
	var opts pack.Options
	var size string
	c := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack the root directory of an installed system into a disk image",
		Long: `Packs DIR into OUTPUT/NAME-DIGEST.raw.zst and prints the OSImage to apply.

DIR/boot/efi becomes the EFI system partition (FAT32, label ESP), everything else
the root file system (ext4, label root). DIR/usr/lib/ingot/image.json says what is
baked in; the least is {"software": {"kubelet": "1.37.0"}}. The operating system,
the kernel, the architecture and whether cloud-init or Ignition reads user data are
found in DIR. The same tree gives the same bytes; times in the image are
SOURCE_DATE_EPOCH, or 1970.`,
		Example: "  ingot image pack rootfs --url-base https://images.example.com | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			if err := parseFlags(cmd, &opts, size); err != nil {
				return err
			}
			return runPack(cmd.Context(), opts, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&opts.Output, "output", ".", "directory for the image")
	f.StringVar(&opts.Name, "name", "", "name of the OSImage (default: OS, version and digest)")
	f.StringVar(&opts.URLBase, "url-base", "", "where OUTPUT is served, http(s)://server/path")
	f.StringVar(&size, "size", "", "size of the disk, such as 4Gi (default: what DIR needs and room to boot)")
	f.BoolVar(&opts.NoESP, "no-esp", false, "make no EFI system partition, for disks that something else boots")
	f.BoolVar(&opts.RootOwned, "root-owned", false, "give every file to root, for a tree that an ordinary user made")
	return c
}

// parseFlags parses the flags that are text.
func parseFlags(cmd *cobra.Command, opts *pack.Options, size string) error {
	if size != "" {
		q, err := resource.ParseQuantity(size)
		if err != nil || q.Value() <= 0 {
			return cli.Usagef(cmd, "--size %s: expected a size such as 4Gi", size)
		}
		opts.Size = q.Value()
	}
	if opts.URLBase != "" {
		u, err := url.Parse(opts.URLBase)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return cli.Usagef(cmd, "--url-base %s: expected http(s)://server/path", opts.URLBase)
		}
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseUint(epoch, 10, 31)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH=%s: expected seconds since 1970, before 2038", epoch)
		}
		opts.Epoch = uint32(seconds)
	}
	return nil
}

func runPack(ctx context.Context, opts pack.Options, stdout, stderr io.Writer) error {
	r, err := pack.Pack(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "packed %s: %s, a disk of %s\n", r.Path, formatMiB(r.SizeBytes), formatMiB(r.DiskBytes))
	if opts.URLBase == "" {
		fmt.Fprintln(stderr, "no --url-base: set spec.url to where the file is served before you apply the OSImage")
	}
	text, err := MarshalOSImage(r.OSImage)
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}

func formatMiB(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// MarshalOSImage returns an OSImage as YAML, without the fields that only the server sets.
func MarshalOSImage(image v1alpha1.OSImage) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": image.APIVersion, "kind": image.Kind, "metadata": map[string]any{"name": image.Name}, "spec": image.Spec,
	})
}

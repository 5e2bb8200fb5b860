package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
	"github.com/ulikunitz/xz"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/qcow2"
)

// suffix is the ending of the names of images that servers install.
const suffix = ".raw.zst"

func convertCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "convert FILE -o FILE" + suffix,
		Short: "Convert a disk image to raw.zst, or to raw for Ironic",
		Long: `Writes the disk in FILE, an image in the format qcow2, raw, raw.gz, raw.xz or raw.zst, to a file
in the format raw.zst, which Ingot's agent installs fastest, and prints its checksum for the
OSImage. With the ending .raw the file is the disk itself, for NodeProviders with spec.ironic or
spec.metal3: Ironic's agent takes no raw.zst.

Images that need another file (a backing file or an external data file), encrypted and damaged
ones are refused.`,
		Example: "  ingot image convert debian-13-genericcloud-amd64.qcow2 -o debian-13.raw.zst\n" +
			"  ingot image convert images/debian-kubernetes-1c7e.raw.zst -o images/debian-kubernetes-1c7e.raw",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := writers[endingOf(output)]
			if write == nil {
				return cli.Usagef(cmd, "expected -o, the file to write, with the ending %s or %s", suffix, rawSuffix)
			}
			return convert(cmd.Context(), args[0], output, write, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file to write")
	return c
}

// rawSuffix is the ending of the names of images that Ironic's agent installs.
const rawSuffix = ".raw"

type writeFunc func(ctx context.Context, disk io.Reader, path string) (pack.WrittenFile, error)

// writers write the formats that convert writes, by the ending of the name.
var writers = map[string]writeFunc{suffix: pack.Compress, rawSuffix: pack.WriteRaw}

// endingOf returns the ending of a name that says a format; empty: it has none of them.
func endingOf(name string) string {
	for ending := range writers {
		if strings.HasSuffix(name, ending) {
			return ending
		}
	}
	return ""
}

func convert(ctx context.Context, input, output string, write writeFunc, stdout, stderr io.Writer) (err error) {
	f, err := os.Open(input)
	if err != nil {
		return err
	}
	defer f.Close()
	disk, done, err := openDisk(f)
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	defer done()
	disk, err = checkBootSector(disk)
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	out, err := write(ctx, disk, output)
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	fmt.Fprintf(stderr, "wrote %s: %s, a disk of %s\n", output, formatMiB(out.SizeBytes), formatMiB(out.DiskBytes))
	_, err = fmt.Fprintf(stdout, "sha256:%s\n", out.SHA256)
	return err
}

// openDisk returns the disk in the file, and a function that frees what its reader holds. The format is told by the content, not by the name.
func openDisk(f *os.File) (io.Reader, func(), error) {
	nothing := func() {}
	head := make([]byte, 6)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, nothing, errors.Join(errors.New("expected a disk image"), err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nothing, err
	}
	switch {
	case bytes.HasPrefix(head, []byte(qcow2.Magic)):
		image, err := qcow2.Open(f, info.Size())
		if err != nil {
			return nil, nothing, err
		}
		return image, image.Close, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
		return z, nothing, err
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		z, err := xz.NewReader(bufio.NewReaderSize(f, 1<<20))
		return z, nothing, err
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(f)
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	}
	return f, nothing, nil
}

// checkBootSector refuses what is no disk: an image of another format, or a compressed qcow2.
func checkBootSector(disk io.Reader) (io.Reader, error) {
	first := make([]byte, 512)
	if _, err := io.ReadFull(disk, first); err != nil {
		return nil, fmt.Errorf("read the first sector: %w", err)
	}
	if bytes.HasPrefix(first, []byte(qcow2.Magic)) {
		return nil, errors.New("expected a disk, seen a compressed qcow2: decompress it first")
	}
	if first[510] != 0x55 || first[511] != 0xaa {
		return nil, errors.New("expected a disk with a partition table, in the format qcow2, raw, raw.gz, raw.xz or raw.zst, seen something else")
	}
	return io.MultiReader(bytes.NewReader(first), disk), nil
}

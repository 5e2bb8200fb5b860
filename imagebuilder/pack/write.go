package pack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	diskfs "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/imagebuilder/ext4"
	"github.com/ingot-dev/ingot/imagebuilder/fat32"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// These settings of the compressor determine the bytes of the image. The memory of the agent is planned for a window of 4 MiB.
const (
	zstdWindow      = 4 << 20
	zstdConcurrency = 2
)

type packedFile struct {
	path, sha256 string
	size         int64
}

// write writes the raw disk to a temporary sparse file in the output directory and compresses it into the image file.
func (t *tree) write(ctx context.Context, opts Options, name string, disk recipe.Disk, id recipe.Identity) (out packedFile, err error) {
	if err := os.MkdirAll(opts.Output, 0o755); err != nil {
		return out, err
	}
	raw, err := os.CreateTemp(opts.Output, ".raw-*")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, raw.Close(), os.Remove(raw.Name())) }()
	if err := t.writeDisk(ctx, raw, disk, id, opts.Epoch); err != nil {
		return out, err
	}
	return compress(ctx, raw, opts.Output, name)
}

func (t *tree) writeDisk(ctx context.Context, raw *os.File, disk recipe.Disk, id recipe.Identity, epoch uint32) error {
	if err := raw.Truncate(disk.Size); err != nil {
		return err
	}
	if err := writeTable(raw, disk); err != nil {
		return err
	}
	if disk.ESP != nil {
		first, _ := disk.ESP.SectorRange()
		p := fat32.Params{Label: "ESP", VolumeID: id.VolumeID, Time: time.Unix(int64(epoch), 0), HiddenSectors: uint32(first)}
		if err := fat32.Write(newPartitionWriter(ctx, raw, disk.ESP), disk.ESP.Size, t.espRoot, p); err != nil {
			return err
		}
	}
	p := ext4.Params{Label: "root", Time: epoch, UUID: id.RootUUID, HashSeed: id.HashSeed}
	return ext4.Write(newPartitionWriter(ctx, raw, &disk.Root), disk.Root.Size, t.root, p)
}

// writeTable writes both copies of the partition table.
func writeTable(raw *os.File, disk recipe.Disk) error {
	table := &gpt.Table{GUID: disk.GUID, ProtectiveMBR: true}
	parts := []*recipe.Partition{disk.ESP, &disk.Root}
	for _, p := range parts {
		if p == nil {
			continue
		}
		first, last := p.SectorRange()
		table.Partitions = append(table.Partitions, &gpt.Partition{
			Index: len(table.Partitions) + 1, Start: first, End: last, Type: gpt.Type(p.Type), Name: p.Name, GUID: p.GUID,
		})
	}
	w, err := diskfs.New(raw, false).Writable()
	if err != nil {
		return fmt.Errorf("write the partition table: %w", err)
	}
	if err := table.Write(w, disk.Size); err != nil {
		return fmt.Errorf("write the partition table: %w", err)
	}
	return nil
}

// partitionWriter writes to a partition until the context ends.
type partitionWriter struct {
	ctx context.Context
	*io.OffsetWriter
}

func newPartitionWriter(ctx context.Context, raw *os.File, p *recipe.Partition) *partitionWriter {
	return &partitionWriter{ctx: ctx, OffsetWriter: io.NewOffsetWriter(raw, p.Start)}
}

// WriteAt implements io.WriterAt.
func (w *partitionWriter) WriteAt(b []byte, at int64) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.OffsetWriter.WriteAt(b, at)
}

// contextReader reads until the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// compress writes the image file with its digest in the name.
func compress(ctx context.Context, raw *os.File, dir, name string) (out packedFile, err error) {
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return out, err
	}
	return writeFile(ctx, raw, dir, func(sha256 string) string { return recipe.FileName(name, sha256) }, compressTo)
}

// WrittenFile is a file that Compress or WriteRaw has written.
type WrittenFile struct {
	// SHA256 is the digest of the file in hex. SizeBytes is its size, DiskBytes that of the disk in it.
	SHA256               string
	SizeBytes, DiskBytes int64
}

// Compress writes the disk to a file, compressed as Pack does it. The file is there when it is complete.
func Compress(ctx context.Context, disk io.Reader, path string) (WrittenFile, error) {
	return writeDisk(ctx, disk, path, compressTo)
}

// WriteRaw writes the disk to a file as it is, with holes in place of zeros. The file is there when it is complete.
func WriteRaw(ctx context.Context, disk io.Reader, path string) (WrittenFile, error) {
	return writeDisk(ctx, disk, path, writeSparse)
}

func writeDisk(ctx context.Context, disk io.Reader, path string, write writeFunc) (WrittenFile, error) {
	counted := &countingReader{r: disk}
	out, err := writeFile(ctx, counted, filepath.Dir(path), func(string) string { return filepath.Base(path) }, write)
	return WrittenFile{SHA256: out.sha256, SizeBytes: out.size, DiskBytes: counted.n}, err
}

// countingReader counts the bytes that were read.
type countingReader struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// writeFunc writes the disk to the file, and the same bytes to sum.
type writeFunc func(f *os.File, sum io.Writer, disk io.Reader) error

// writeFile writes into a temporary file and renames it when it is complete.
func writeFile(ctx context.Context, raw io.Reader, dir string, name func(sha256 string) string, write writeFunc) (out packedFile, err error) {
	f, err := os.CreateTemp(dir, ".image-*")
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	sum := sha256.New()
	err = write(f, sum, &contextReader{ctx, bufio.NewReaderSize(raw, 1<<20)})
	if err == nil {
		out.size, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return out, err
	}
	out.sha256 = hex.EncodeToString(sum.Sum(nil))
	out.path = filepath.Join(dir, name(out.sha256))
	return out, os.Rename(f.Name(), out.path)
}

func writeSparse(f *os.File, sum io.Writer, disk io.Reader) error {
	sparse := &sparseWriter{f: f}
	_, err := io.CopyBuffer(io.MultiWriter(sparse, sum), disk, make([]byte, len(zeros)))
	return errors.Join(err, f.Truncate(sparse.at))
}

// zeros are what a hole in a file reads as.
var zeros [64 << 10]byte

// sparseWriter leaves holes in a file in place of zeros. The file has no size of its own before it is truncated to at.
type sparseWriter struct {
	f  *os.File
	at int64
}

// Write implements io.Writer.
func (w *sparseWriter) Write(p []byte) (int, error) {
	if len(p) > len(zeros) || !bytes.Equal(p, zeros[:len(p)]) {
		if n, err := w.f.WriteAt(p, w.at); err != nil {
			return n, err
		}
	}
	w.at += int64(len(p))
	return len(p), nil
}

func compressTo(f *os.File, sum io.Writer, disk io.Reader) error {
	z, err := zstd.NewWriter(io.MultiWriter(f, sum), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(zstdWindow),
		zstd.WithEncoderConcurrency(zstdConcurrency), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	_, err = io.Copy(z, disk)
	return errors.Join(err, z.Close())
}

package blockdev

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// fileSectorSize is the logical sector size of a File.
const fileSectorSize = 512

// zeros are written where the file system or device cannot clear a range.
var zeros = make([]byte, 1<<20)

// File is a sparse file that stands for a disk. ZeroRange punches a hole where the file system supports that.
type File struct {
	*os.File
	info hardware.Disk
}

// OpenFile opens the file as a disk of info.SizeBytes bytes. A smaller file is extended to that size.
func OpenFile(path string, info hardware.Disk) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening disk file: %w", err)
	}
	stat, err := file.Stat()
	if err == nil && stat.Size() < info.SizeBytes {
		err = file.Truncate(info.SizeBytes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sizing disk file: %w", err), file.Close())
	}
	return &File{File: file, info: info}, nil
}

// Info returns the description of the disk.
func (f *File) Info() hardware.Disk { return f.info }

// SectorSize returns 512.
func (f *File) SectorSize() int64 { return fileSectorSize }

// WriteAt writes like os.File, but fails for a range beyond the end of the disk, because a disk does not grow.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > f.info.SizeBytes {
		return 0, fmt.Errorf("writing %d bytes at %d of a disk of %d: %w", len(p), off, f.info.SizeBytes, io.ErrShortWrite)
	}
	return f.File.WriteAt(p, off)
}

// ZeroRange makes the range read as zeros.
func (f *File) ZeroRange(off, n int64) error {
	if off < 0 || n < 0 || off+n > f.info.SizeBytes {
		return fmt.Errorf("clearing %d bytes at %d of a disk of %d: %w", n, off, f.info.SizeBytes, io.ErrShortWrite)
	}
	if n == 0 || punchHole(f.File, off, n) == nil {
		return nil
	}
	return writeZeros(f, off, n)
}

// writeZeros clears a range by writing zeros.
func writeZeros(w io.WriterAt, off, n int64) error {
	for n > 0 {
		part := zeros[:min(n, int64(len(zeros)))]
		if _, err := w.WriteAt(part, off); err != nil {
			return fmt.Errorf("writing zeros at %d: %w", off, err)
		}
		off, n = off+int64(len(part)), n-int64(len(part))
	}
	return nil
}

package machineos

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/diskfs/go-diskfs/backend"
)

// storage lets go-diskfs read a disk that is not a file.
type storage struct{ *io.SectionReader }

func newStorage(disk io.ReaderAt, size int64) backend.Storage {
	return storage{io.NewSectionReader(disk, 0, size)}
}

// Stat implements fs.File.
func (s storage) Stat() (fs.FileInfo, error) { return info{size: s.Size()}, nil }

// Close implements io.Closer. It does nothing, because the disk belongs to the caller.
func (s storage) Close() error { return nil }

// Sys implements backend.Storage. There is no file descriptor.
func (s storage) Sys() (*os.File, error) { return nil, errors.ErrUnsupported }

// Writable implements backend.Storage. The disk is read-only.
func (s storage) Writable() (backend.WritableFile, error) { return nil, backend.ErrIncorrectOpenMode }

// Path implements backend.Storage.
func (s storage) Path() string { return "" }

// info implements fs.FileInfo for a disk.
type info struct{ size int64 }

func (i info) Name() string       { return "disk" }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o400 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }

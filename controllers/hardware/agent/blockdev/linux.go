//go:build linux

package blockdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// fallocate's FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE (linux/falloc.h).
	fallocPunch = 0x01 | 0x02
	// blkZeroOut is BLKZEROOUT (linux/fs.h): the range reads as zeros afterwards, whatever the device does with a discard.
	blkZeroOut = 0x127F
	// directAlign is what address, offset and length of a direct write must be multiples of; no sector is larger.
	directAlign = 4096
)

func punchHole(file *os.File, off, n int64) error {
	return syscall.Fallocate(int(file.Fd()), fallocPunch, off, n)
}

// Device is a block device. Aligned writes go past the page cache: they are the device's own speed, an error belongs to
// the write that caused it, and the ramdisk's memory is not filled with dirty pages.
type Device struct {
	buffered *os.File
	// direct is nil where the device knows no direct writes.
	direct *os.File
	info   hardware.Disk
	sector int64
}

// OpenDevice opens the block device at info.Name for itself alone: one that is mounted or otherwise in use is refused.
func OpenDevice(info hardware.Disk, sectorSize int64) (*Device, error) {
	buffered, err := os.OpenFile(info.Name, os.O_RDWR|syscall.O_EXCL, 0)
	if err != nil {
		return nil, fmt.Errorf("opening disk: %w", err)
	}
	size, err := buffered.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the size of %s: %w", info.Name, err), buffered.Close())
	}
	info.SizeBytes = size
	device := &Device{buffered: buffered, info: info, sector: sectorSize}
	// Direct writes are for speed only; without them everything goes through the page cache.
	if direct, err := os.OpenFile(info.Name, os.O_WRONLY|syscall.O_DIRECT, 0); err == nil {
		device.direct = direct
	}
	return device, nil
}

// Info describes the disk.
func (d *Device) Info() hardware.Disk { return d.info }

// SectorSize is the logical sector size in bytes.
func (d *Device) SectorSize() int64 { return d.sector }

// ReadAt implements io.ReaderAt.
func (d *Device) ReadAt(p []byte, off int64) (int, error) { return d.buffered.ReadAt(p, off) }

// WriteAt implements io.WriterAt.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if d.direct != nil && len(p) > 0 && off%directAlign == 0 && len(p)%directAlign == 0 &&
		uintptr(unsafe.Pointer(unsafe.SliceData(p)))%directAlign == 0 {
		return d.direct.WriteAt(p, off)
	}
	return d.buffered.WriteAt(p, off)
}

// ZeroRange clears the range with BLKZEROOUT; where the kernel refuses, zeros are written. A discard is never used: what
// a discarded sector reads as is the device's choice.
func (d *Device) ZeroRange(off, n int64) error {
	if n == 0 {
		return nil
	}
	if off%d.sector == 0 && n%d.sector == 0 {
		area := [2]uint64{uint64(off), uint64(n)}
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.buffered.Fd(), blkZeroOut, uintptr(unsafe.Pointer(&area)))
		if errno == 0 {
			return nil
		}
	}
	return writeZeros(d.buffered, off, n)
}

// Sync returns when everything written before is on the medium, the device's own cache included.
func (d *Device) Sync() error { return d.buffered.Sync() }

// Close gives the device back.
func (d *Device) Close() error {
	if d.direct == nil {
		return d.buffered.Close()
	}
	return errors.Join(d.direct.Close(), d.buffered.Close())
}

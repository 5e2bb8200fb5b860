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
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

const (
	// fallocPunch is FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE of fallocate (linux/falloc.h).
	fallocPunch = 0x01 | 0x02
	// blkZeroOut is the ioctl BLKZEROOUT (linux/fs.h). The range reads as zeros afterwards.
	blkZeroOut = 0x127F
	// directAlignment is the alignment of address, offset and length of a direct write. No device has larger sectors.
	directAlignment = 4096
)

func punchHole(file *os.File, off, n int64) error {
	return syscall.Fallocate(int(file.Fd()), fallocPunch, off, n)
}

// Device is a block device. Aligned writes bypass the page cache: they have the speed of the device, an error is returned by the write
// that caused it, and the memory of the ramdisk is not filled with dirty pages.
type Device struct {
	buffered *os.File
	// direct is nil where the device does not support direct writes.
	direct *os.File
	info   hardware.Disk
	sector int64
	// drive is nil for a disk without commands of its own.
	drive selferase.Drive
}

// OpenDevice opens the block device at info.Name exclusively: it fails for a device that is mounted or otherwise in use.
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
	device := &Device{buffered: buffered, info: info, sector: sectorSize, drive: openDrive(buffered)}
	// Without direct writes everything is written through the page cache, which is slower.
	if direct, err := os.OpenFile(info.Name, os.O_WRONLY|syscall.O_DIRECT, 0); err == nil {
		device.direct = direct
	}
	return device, nil
}

// Info returns the description of the disk.
func (d *Device) Info() hardware.Disk { return d.info }

// SectorSize returns the logical sector size in bytes.
func (d *Device) SectorSize() int64 { return d.sector }

// ReadAt implements io.ReaderAt.
func (d *Device) ReadAt(p []byte, off int64) (int, error) { return d.buffered.ReadAt(p, off) }

// WriteAt implements io.WriterAt.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if d.direct != nil && len(p) > 0 && off%directAlignment == 0 && len(p)%directAlignment == 0 &&
		uintptr(unsafe.Pointer(unsafe.SliceData(p)))%directAlignment == 0 {
		return d.direct.WriteAt(p, off)
	}
	return d.buffered.WriteAt(p, off)
}

// ZeroRange clears the range with BLKZEROOUT, or by writing zeros where the kernel refuses that. It never discards sectors, because
// some devices return the old content of a discarded sector, which could be the former tenant's.
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

// Sync returns when everything written before is on the medium and not only in the cache of the device.
func (d *Device) Sync() error { return d.buffered.Sync() }

// Close closes the device.
func (d *Device) Close() error {
	if d.direct == nil {
		return d.buffered.Close()
	}
	return errors.Join(d.direct.Close(), d.buffered.Close())
}

package blockdev

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/ata"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/nvme"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

const (
	// blkFlushBuffers is the ioctl BLKFLSBUF (linux/fs.h). It drops what the kernel has cached of the device.
	blkFlushBuffers = 0x1261
	// blkDiscard is the ioctl BLKDISCARD (linux/fs.h).
	blkDiscard = 0x1277
)

// openDrive returns the disk as its own commands see it, nil for a disk that has none, such as a virtio disk.
func openDrive(device *os.File) selferase.Drive {
	if drive, err := nvme.Open(device); err == nil {
		return drive
	}
	disk, err := scsi.Open(device)
	if err != nil {
		return nil
	}
	if disk.Identity.IsATA() {
		if drive, err := ata.Open(disk); err == nil {
			return drive
		}
	}
	return disk
}

// EraseDrive returns the disk as its own commands see it, nil for a disk that has none.
func (d *Device) EraseDrive() selferase.Drive { return d.drive }

// DropCache empties the kernel's cache of the disk. Without it: what is read back after an erase by the disk is what was written before.
func (d *Device) DropCache() error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.buffered.Fd(), blkFlushBuffers, 0); errno != 0 {
		return fmt.Errorf("dropping the cache of %s: %w", d.info.Name, errno)
	}
	return nil
}

// Discard has the disk deallocate the range. It is for a disk that guarantees zeros afterwards. A hole that is punched into a block device is a write
// of zeros that may deallocate (BLKDEV_ZERO_NOFALLBACK, block/fops.c of the kernel); a disk for which the kernel does not do that is told to
// discard, which the disk may ignore in part.
func (d *Device) Discard(off, n int64) error {
	if punchHole(d.buffered, off, n) == nil {
		return nil
	}
	area := [2]uint64{uint64(off), uint64(n)}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.buffered.Fd(), blkDiscard, uintptr(unsafe.Pointer(&area))); errno != 0 {
		return fmt.Errorf("discarding %d bytes at %d: %w", n, off, errno)
	}
	return nil
}

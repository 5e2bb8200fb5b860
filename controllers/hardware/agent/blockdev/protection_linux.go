package blockdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

const (
	// blkROSet and blkROGet are the ioctls BLKROSET and BLKROGET (linux/fs.h).
	blkROSet, blkROGet = 0x125D, 0x125E
)

// AllowWrites lifts the write protection of a block device that the kernel itself applies: the flag of the device, and force_ro of an MMC or
// an eMMC's boot partition. It fails for a device that stays read-only, such as a disk with a switch or one that has worn out.
func AllowWrites(name string) error { return allowWrites(name, "/sys/block") }

func allowWrites(name, sysBlock string) error {
	force := filepath.Join(sysBlock, strings.ReplaceAll(strings.TrimPrefix(name, "/dev/"), "/", "!"), "force_ro")
	// The attribute exists for MMC devices only. O_TRUNC is not allowed for it on some kernels.
	file, err := os.OpenFile(force, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString("0")
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lifting the write protection of %s: %w", name, err)
	}
	device, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("opening disk: %w", err)
	}
	if err := errors.Join(setReadWrite(device), device.Close()); err != nil {
		return fmt.Errorf("lifting the write protection of %s: %w", name, err)
	}
	return nil
}

// errReadOnly means that a device is read-only by itself.
var errReadOnly = errors.New("the device stays read-only")

// setReadWrite clears the read-only flag of the device and returns an error when it is still set.
func setReadWrite(device *os.File) error {
	flag := int32(0)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), blkROSet, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		return errno
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), blkROGet, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		return errno
	}
	if flag != 0 {
		return errReadOnly
	}
	return nil
}

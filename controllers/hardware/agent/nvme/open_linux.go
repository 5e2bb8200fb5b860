package nvme

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	// ioctlID is NVME_IOCTL_ID and ioctlAdmin is NVME_IOCTL_ADMIN_CMD (linux/nvme_ioctl.h).
	ioctlID, ioctlAdmin = 0x4E40, 0xC0484E41
)

// passthroughCommand is struct nvme_passthru_cmd (linux/nvme_ioctl.h).
type passthroughCommand struct {
	opcode, flags                uint8
	_                            uint16
	namespace, cdw2, cdw3        uint32
	metadata, address            uint64
	metadataLength, dataLength   uint32
	cdw10                        uint32
	_                            [5]uint32
	timeoutMilliseconds, result_ uint32
}

// Open returns the namespace whose block device is open, or an error for a block device that is none.
func Open(device *os.File) (*Drive, error) {
	namespace, _, errno := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), ioctlID, 0)
	if errno != 0 {
		return nil, fmt.Errorf("%s is no NVMe namespace: %w", device.Name(), errno)
	}
	return &Drive{Namespace: uint32(namespace), Admin: func(c Command) error { return submit(device, c) }}, nil
}

// submit sends the command. The kernel returns what the controller answered as a positive number (the status field without the phase, figure 92).
func submit(device *os.File, c Command) error {
	raw := passthroughCommand{
		opcode: c.Opcode, namespace: c.Namespace, cdw10: c.CDW10, dataLength: uint32(len(c.Data)), timeoutMilliseconds: uint32(c.Timeout.Milliseconds()),
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	if len(c.Data) > 0 {
		pinner.Pin(&c.Data[0])
		raw.address = uint64(uintptr(unsafe.Pointer(&c.Data[0])))
	}
	status, _, errno := syscall.Syscall(syscall.SYS_IOCTL, device.Fd(), ioctlAdmin, uintptr(unsafe.Pointer(&raw)))
	switch {
	case errno != 0:
		return fmt.Errorf("NVMe command %#02x: %w", c.Opcode, errno)
	case status != 0:
		return fmt.Errorf("NVMe command %#02x: the controller answered with status %#x", c.Opcode, status)
	}
	return nil
}

package blockdev

import (
	"fmt"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/nvme"
)

// blkFlushBuffers is the ioctl BLKFLSBUF (linux/fs.h). It drops what the kernel has cached of the device.
const blkFlushBuffers = 0x1261

// EraseMethods returns the methods by which the disk can erase itself, the best first, and none for a disk that must be overwritten.
func (d *Device) EraseMethods() ([]hardware.EraseMethod, error) {
	if d.nvme == nil {
		return nil, nil
	}
	return d.nvme.Methods()
}

// BeginErase begins an erase by the disk. EraseState says when it has ended.
func (d *Device) BeginErase(method hardware.EraseMethod) error {
	if d.nvme == nil {
		return fmt.Errorf("the disk has no method %q", method)
	}
	return d.nvme.Begin(method)
}

// RecoverErase makes the disk writable again after an erase that failed.
func (d *Device) RecoverErase() error {
	if d.nvme == nil {
		return nil
	}
	return d.nvme.Recover()
}

// EraseState returns how far an erase by the disk is. When none runs, the kernel's cache of the disk is empty afterwards. Without it: what was
// read back after an erase would be what was written before.
func (d *Device) EraseState() (nvme.State, error) {
	if d.nvme == nil {
		return nvme.State{}, nil
	}
	state, err := d.nvme.State()
	if err != nil || state.IsRunning {
		return state, err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.buffered.Fd(), blkFlushBuffers, 0); errno != 0 {
		return state, fmt.Errorf("dropping the cache of %s: %w", d.info.Name, errno)
	}
	return state, nil
}

package blockdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// endPoll is how often a disk that erases itself is asked how far it is.
const endPoll = 10 * time.Second

// Clock sleeps.
type Clock interface {
	Sleep(ctx context.Context, d time.Duration) error
}

// EndErase is for a disk without size. It returns when the disk does not erase itself any more, and has the kernel read its size again where it did;
// it does nothing with another disk.
//
// Example: the power goes while a SCSI disk sanitizes itself, and is back. The disk goes on and refuses READ CAPACITY meanwhile, so that it has no
// size for the kernel. Without this the disk counts as broken, and a person is asked to replace it.
func EndErase(ctx context.Context, clock Clock, name string) error {
	device, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("opening disk: %w", err)
	}
	defer func() { _ = device.Close() }()
	drive := openDrive(device)
	if drive == nil {
		return nil
	}
	return endErase(ctx, clock, drive, filepath.Join("/sys/block", filepath.Base(name), "device/rescan"))
}

// endErase waits for the drive and writes to the kernel's attribute that has it look at the disk again.
func endErase(ctx context.Context, clock Clock, drive selferase.Drive, rescan string) error {
	for hasErased := false; ; hasErased = true {
		state, err := drive.State()
		switch {
		case err != nil:
			return err
		case state.IsRunning:
			if err := clock.Sleep(ctx, endPoll); err != nil {
				return err
			}
			continue
		case state.HasFailed:
			if err := drive.Recover(); err != nil {
				return err
			}
		case !hasErased:
			return nil
		}
		file, err := os.OpenFile(rescan, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("reading the size of the disk again: %w", err)
		}
		_, err = file.WriteString("1")
		return errors.Join(err, file.Close())
	}
}

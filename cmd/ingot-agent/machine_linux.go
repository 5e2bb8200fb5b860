package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
)

// mountKernelFilesystems gives process 1 /proc, /sys and /dev. One that is mounted already is left alone.
func mountKernelFilesystems() error {
	var failed error
	for _, mount := range []struct{ kind, path string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		err := os.MkdirAll(mount.path, 0o755)
		if err == nil {
			err = syscall.Mount(mount.kind, mount.path, mount.kind, 0, "")
		}
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", mount.path, err))
		}
	}
	return failed
}

// openDisks opens every disk of the server. One that does not open fails all: an erase must not miss a disk.
func openDisks(root fs.FS) ([]agent.Disk, error) {
	infos, err := sysfs.Disks(root)
	if err != nil {
		return nil, fmt.Errorf("listing disks: %w", err)
	}
	var disks []agent.Disk
	for _, info := range infos {
		disk, err := blockdev.OpenDevice(info.Disk, info.SectorSize)
		if err != nil {
			for _, opened := range disks {
				err = errors.Join(err, opened.Close())
			}
			return nil, err
		}
		disks = append(disks, disk)
	}
	return disks, nil
}

// leave reboots or powers off, and does not return.
func leave(log *slog.Logger, outcome agent.Outcome) {
	command := syscall.LINUX_REBOOT_CMD_POWER_OFF
	if outcome == agent.Reboot {
		command = syscall.LINUX_REBOOT_CMD_RESTART
	}
	syscall.Sync()
	log.Error("the machine did not "+string(outcome), "error", syscall.Reboot(command))
	select {}
}

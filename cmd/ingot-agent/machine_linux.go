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

// mountKernelFilesystems mounts /proc, /sys and /dev for process 1. It skips those that are already mounted.
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

// openDisks opens all disks of the server. It fails when one cannot be opened: an erase that left out this disk would succeed, and the
// next tenant could read the former tenant's data on it.
func openDisks(root fs.FS) ([]agent.Disk, error) {
	infos, err := sysfs.ReadDisks(root)
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

// rebootOrPowerOff reboots or powers off the machine and does not return.
func rebootOrPowerOff(log *slog.Logger, exitAction agent.ExitAction) {
	command := syscall.LINUX_REBOOT_CMD_POWER_OFF
	if exitAction == agent.Reboot {
		command = syscall.LINUX_REBOOT_CMD_RESTART
	}
	syscall.Sync()
	log.Error("the machine did not "+string(exitAction), "error", syscall.Reboot(command))
	select {}
}

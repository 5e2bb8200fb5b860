package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
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

// openDisks opens all disks of the server, after their write protection was lifted, and returns what cannot be written as unusable. It
// fails when a disk cannot be opened: an erase that left out this disk would succeed, and the next tenant could read the former tenant's
// data on it.
func openDisks(root fs.FS) ([]agent.Disk, []hardware.UnusableDisk, error) {
	infos, unusable, err := sysfs.ReadDisks(root)
	if err != nil {
		return nil, nil, fmt.Errorf("listing disks: %w", err)
	}
	var disks []agent.Disk
	for _, info := range infos {
		if info.ReadOnly {
			if err := blockdev.AllowWrites(info.Name); err != nil {
				unusable = append(unusable, hardware.UnusableDisk{Disk: info.Disk, HasContent: true, Why: "is read-only: replace it, or release its write protection: " + err.Error()})
				continue
			}
		}
		disk, err := blockdev.OpenDevice(info.Disk, info.SectorSize)
		if err != nil {
			for _, opened := range disks {
				err = errors.Join(err, opened.Close())
			}
			return nil, nil, err
		}
		disks = append(disks, disk)
	}
	return disks, unusable, nil
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

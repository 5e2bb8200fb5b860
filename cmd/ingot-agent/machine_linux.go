package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/modules"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/network"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
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

// moduleInterval is the time between two looks for devices that have appeared.
const moduleInterval = time.Second

// defaultRemaining is how long the network may take where the command line does not say when the attempt ends.
const defaultRemaining = time.Hour

// prepareMachine loads the modules of the devices, and goes on with those that appear until ctx ends, sets the clock, and brings up the network. It
// returns when the network is up, or when the attempt has ended.
func prepareMachine(ctx context.Context, log *slog.Logger, root fs.FS, line cmdline.Arguments, onFailure func(*network.Failure)) error {
	setClock(log, line)
	loader, err := newLoader(log, root)
	if err != nil {
		// A kernel that has all drivers in itself needs no modules.
		log.Warn("no kernel modules are loaded", "error", err)
	} else {
		loader.LoadForDevices()
		go loader.Watch(ctx, agent.SystemClock{}, moduleInterval)
	}
	config := network.Config{Network: line.Network, Clock: agent.SystemClock{}, Log: log, WriteResolver: writeResolver, OnFailure: onFailure}
	if base, err := url.Parse(line.URL); err == nil {
		// A host name leaves the target open.
		config.Target, _ = netip.ParseAddr(base.Hostname())
	}
	attempt, end := context.WithTimeout(ctx, cmp.Or(line.Remaining(), defaultRemaining))
	defer end()
	if err := network.Up(attempt, ctx, config); err != nil {
		return err
	}
	network.StartOtherPorts(attempt, agent.SystemClock{})
	return nil
}

// setClock corrects the clock of the system. The clock of the server's firmware is left to the system that is installed.
func setClock(log *slog.Logger, line cmdline.Arguments) {
	now := time.Now()
	right, isWrong := line.CorrectTime(now)
	if !isWrong {
		return
	}
	value := syscall.NsecToTimeval(right.UnixNano())
	if err := syscall.Settimeofday(&value); err != nil {
		log.Error("the clock is wrong and cannot be set", "seen", now.UTC(), "expected", right.UTC(), "error", err)
		return
	}
	log.Warn("the clock was wrong and is set: look at the server's battery, and whether its clock has the local time", "seen", now.UTC(), "set", right.UTC())
}

// writeResolver writes the name servers where Go's resolver reads them.
func writeResolver(content string) error {
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/etc/resolv.conf", []byte(content), 0o644)
}

// newLoader returns a loader of the modules in the ramdisk.
func newLoader(log *slog.Logger, root fs.FS) (*modules.Loader, error) {
	release, err := modules.Release()
	if err != nil {
		return nil, err
	}
	index, err := modules.ReadIndex(root, release)
	if err != nil {
		return nil, err
	}
	return &modules.Loader{Root: root, Index: index, Log: log, Insert: func(file string) error { return modules.Insert("/"+file, "") }}, nil
}

// consoleTimeout is how long a console may take for a page: a serial port with flow control and nobody behind it takes it never.
const consoleTimeout = 5 * time.Second

// writeConsoles writes the text to the devices at the same time. A device that takes nothing keeps nobody waiting for long.
func writeConsoles(paths []string, text string) {
	var writing sync.WaitGroup
	for _, path := range paths {
		writing.Go(func() {
			// Without O_NONBLOCK opening a serial port waits for its carrier.
			device, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
			if err != nil {
				return // A console without a device has no page.
			}
			defer func() { _ = device.Close() }()
			// A device without deadlines is written without one.
			_ = device.SetWriteDeadline(time.Now().Add(consoleTimeout))
			_, _ = io.WriteString(device, text)
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * consoleTimeout):
	}
}

// Actions of syslog(2): the kernel's messages go to the consoles no more, or again.
const (
	actionConsoleOff = 6
	actionConsoleOn  = 7
)

// quietKernel has the kernel write its messages to the consoles no more, or again.
func quietKernel(isQuiet bool) {
	action := actionConsoleOn
	if isQuiet {
		action = actionConsoleOff
	}
	// Without it a page may be scrolled away.
	_, _ = syscall.Klogctl(action, nil)
}

// loadNamed does what modprobe does with the arguments that the kernel gives: "-q -- NAME".
func loadNamed(log *slog.Logger, arguments []string) error {
	loader, err := newLoader(log, os.DirFS("/"))
	if err != nil {
		return err
	}
	for _, name := range arguments {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if err := loader.LoadNamed(name); err != nil {
			return err
		}
	}
	return nil
}

// endErases waits for the SCSI disks that have no size because they erase themselves since before a power cut. One that cannot be asked stays
// without size, which the erase reports.
func endErases(ctx context.Context, log *slog.Logger, root fs.FS) {
	_, unusable, err := sysfs.ReadDisks(root)
	if err != nil {
		return // openDisks reports it.
	}
	var waiting sync.WaitGroup
	for _, disk := range unusable {
		if disk.SizeBytes > 0 || !strings.HasPrefix(disk.Name, "/dev/sd") {
			continue
		}
		waiting.Go(func() {
			log.Info("a disk has no size: if it is erasing itself, it is waited for", "disk", disk.Disk.String())
			if err := blockdev.EndErase(ctx, agent.SystemClock{}, disk.Name); err != nil {
				log.Error("waiting for a disk", "disk", disk.Disk.String(), "error", err)
			}
		})
	}
	waiting.Wait()
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

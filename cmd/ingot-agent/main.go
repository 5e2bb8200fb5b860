// Command ingot-agent is the installer in the ramdisk that the boot service serves. As process 1 it mounts the kernel's file systems, loads the
// modules of the server's devices, brings up the network, carries out the instructions of the boot service that is named on the kernel
// command line, and reboots or powers off. Started as modprobe, it loads the modules that it is asked for, because the kernel asks so.
package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/tpm"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if filepath.Base(os.Args[0]) == "modprobe" {
		if err := loadNamed(log, os.Args[1:]); err != nil {
			log.Error("modprobe", "error", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := os.DirFS("/")
	if os.Getpid() != 1 {
		if _, err := run(ctx, log, root, readCommandLine(log, root), nil); err != nil {
			log.Error("the agent ends with an error", "error", err)
			os.Exit(1)
		}
		return
	}
	if err := mountKernelFilesystems(); err != nil {
		log.Error("mounting the kernel's file systems", "error", err)
	}
	s := newServer(root)
	// Process 1 must not return: the kernel would panic.
	rebootOrPowerOff(s.log, s.work(ctx))
}

// readCommandLine returns what the kernel command line says. What cannot be used is logged and left out: the agent then says what it lacks.
func readCommandLine(log *slog.Logger, root fs.FS) cmdline.Arguments {
	text, err := fs.ReadFile(root, "proc/cmdline")
	if err != nil {
		log.Error("reading the kernel command line", "error", err)
	}
	line, err := cmdline.Parse(string(text))
	if err != nil {
		log.Error("a part of the kernel command line is not used", "error", err)
	}
	return line
}

// run runs the agent. logs is its log for the boot service; nil: it gets none.
func run(ctx context.Context, log *slog.Logger, root fs.FS, line cmdline.Arguments, logs func(int64) protocol.LogChunk) (agent.ExitAction, error) {
	waitForDisks := sync.OnceValue(func() error { return sysfs.WaitForDisks(ctx, root, agent.SystemClock{}) })
	return agent.Run(ctx, agent.Config{
		URL: line.URL, Token: line.Token, Pins: line.Pins, Log: log, LogChunk: logs,
		Inventory: func(context.Context) (hardware.Inventory, error) {
			waitErr := waitForDisks()
			inventory, err := sysfs.ReadInventory(root)
			addNICFirmware(&inventory)
			return inventory, errors.Join(waitErr, err)
		},
		TPM: func(context.Context) (*tpm.Device, error) {
			path, err := sysfs.FindTPM(root) // its driver is as ready as the disks
			if err != nil || path == "" {
				return nil, err
			}
			return tpm.Open(path)
		},
		Disks: func(ctx context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) {
			if err := waitForDisks(); err != nil {
				return nil, nil, err
			}
			endErases(ctx, log, root)
			return openDisks(root)
		},
	})
}

// Command ingot-agent is the installer in the ramdisk that the boot service serves. As process 1 it mounts the kernel's file systems, loads the
// modules of the server's devices, brings up the network, carries out the instructions of the boot service that is named on the kernel
// command line, and reboots or powers off. Started as modprobe, it loads the modules that it is asked for, because the kernel asks so.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
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
	isInit := os.Getpid() == 1
	if isInit {
		if err := mountKernelFilesystems(); err != nil {
			log.Error("mounting the kernel's file systems", "error", err)
		}
	}
	root := os.DirFS("/")
	if isInit {
		if err := prepareMachine(ctx, log, root); err != nil {
			log.Error("the server has no network", "error", err)
		}
	}
	exitAction, err := run(ctx, log, root)
	if err != nil {
		log.Error("the agent ends with an error", "error", err)
	}
	log.Info("the agent is done", "next", exitAction)
	if isInit {
		// Process 1 must not return: the kernel would panic.
		rebootOrPowerOff(log, exitAction)
	}
	if err != nil {
		os.Exit(1)
	}
}

// run reads the kernel command line and runs the agent.
func run(ctx context.Context, log *slog.Logger, root fs.FS) (agent.ExitAction, error) {
	line, err := fs.ReadFile(root, "proc/cmdline")
	if err != nil {
		return agent.PowerOff, fmt.Errorf("reading the kernel command line: %w", err)
	}
	waitForDisks := sync.OnceValue(func() error { return sysfs.WaitForDisks(ctx, root, agent.SystemClock{}) })
	return agent.Run(ctx, agent.Config{
		URL: kernelArgument(string(line), protocol.ArgURL), Token: kernelArgument(string(line), protocol.ArgToken), Log: log,
		Inventory: func(context.Context) (hardware.Inventory, error) {
			waitErr := waitForDisks()
			inventory, err := sysfs.ReadInventory(root)
			return inventory, errors.Join(waitErr, err)
		},
		Disks: func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) {
			if err := waitForDisks(); err != nil {
				return nil, nil, err
			}
			return openDisks(root)
		},
	})
}

// kernelArgument returns the value of the kernel argument, "" when it is missing. Of several it returns the last, as the kernel does.
func kernelArgument(line, name string) string {
	value := ""
	for _, word := range strings.Fields(line) {
		if key, rest, found := strings.Cut(word, "="); found && key == name {
			value = rest
		}
	}
	return value
}

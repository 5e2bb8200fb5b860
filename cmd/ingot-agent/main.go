// Command ingot-agent is the installer in the ramdisk that the boot service hands out. As process 1 it mounts what the
// kernel offers, does what the boot service named on the kernel command line asks for, and reboots or powers off. The
// network is up when it starts: the kernel brings it up (ip=dhcp), or the ramdisk's init does before it runs the agent.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	first := os.Getpid() == 1
	if first {
		if err := mountKernelFilesystems(); err != nil {
			log.Error("mounting the kernel's file systems", "error", err)
		}
	}
	outcome, err := run(ctx, log, os.DirFS("/"))
	if err != nil {
		log.Error("the agent ends with an error", "error", err)
	}
	log.Info("the agent is done", "next", outcome)
	if first {
		// Process 1 must not return: the kernel would panic.
		leave(log, outcome)
	}
	if err != nil {
		os.Exit(1)
	}
}

// run reads the kernel command line and does what the boot service asks for.
func run(ctx context.Context, log *slog.Logger, root fs.FS) (agent.Outcome, error) {
	line, err := fs.ReadFile(root, "proc/cmdline")
	if err != nil {
		return agent.PowerOff, fmt.Errorf("reading the kernel command line: %w", err)
	}
	return agent.Run(ctx, agent.Config{
		URL: argument(string(line), protocol.ArgURL), Token: argument(string(line), protocol.ArgToken), Log: log,
		Inventory: func(context.Context) (hardware.Inventory, error) { return sysfs.Inventory(root) },
		Disks:     func(context.Context) ([]agent.Disk, error) { return openDisks(root) },
	})
}

// argument is the value of the kernel argument, "" when it is not there; of several the last, as the kernel has it.
func argument(line, name string) string {
	value := ""
	for _, word := range strings.Fields(line) {
		if key, rest, found := strings.Cut(word, "="); found && key == name {
			value = rest
		}
	}
	return value
}

//go:build !linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/network"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// The agent runs on Linux only. These functions exist so that the module compiles on other systems.

func mountKernelFilesystems() error { return errors.ErrUnsupported }

func writeConsoles([]string, string) {}

func quietKernel(bool) {}

// addNICFirmware is for Linux.
func addNICFirmware(*hardware.Inventory) {}

func prepareMachine(context.Context, *slog.Logger, fs.FS, cmdline.Arguments, func(*network.Failure)) error {
	return errors.ErrUnsupported
}

func loadNamed(*slog.Logger, []string) error { return errors.ErrUnsupported }

func endErases(context.Context, *slog.Logger, fs.FS) {}

func openDisks(fs.FS) ([]agent.Disk, []hardware.UnusableDisk, error) {
	return nil, nil, errors.ErrUnsupported
}

func rebootOrPowerOff(*slog.Logger, agent.ExitAction) {}

//go:build !linux

package main

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
)

// The agent runs in a Linux ramdisk; elsewhere it compiles, so that the module does.

func mountKernelFilesystems() error { return errors.ErrUnsupported }

func openDisks(fs.FS) ([]agent.Disk, error) { return nil, errors.ErrUnsupported }

func leave(*slog.Logger, agent.Outcome) {}

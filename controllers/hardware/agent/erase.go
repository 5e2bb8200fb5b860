package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
)

// eraseStep is how much is cleared at once: progress is seen, and a stop is heeded, between two steps.
const eraseStep = 256 << 20

// erase clears the disks as the mode says, all at the same time.
func erase(ctx context.Context, reports *reporter, disks []Disk, mode hardware.EraseMode) error {
	var clear func(context.Context, *reporter, Disk) error
	switch mode {
	case hardware.EraseNone:
		return nil
	case hardware.EraseMetadata:
		clear = eraseMetadata
	case hardware.EraseFull:
		clear = eraseFull
		for _, disk := range disks {
			reports.total.Add(disk.Info().SizeBytes)
		}
	default:
		return fmt.Errorf("erase mode %q is not known to this agent: the agent is older than the boot service", mode)
	}
	reports.enter(ctx, hardware.StepErasing)
	failures := make([]error, len(disks))
	var group sync.WaitGroup
	for i, disk := range disks {
		group.Go(func() {
			if err := clear(ctx, reports, disk); err != nil {
				failures[i] = failf(hardware.ReasonDiskError, err, "erasing disk %s", disk.Info().Name)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failures...)
}

// eraseMetadata clears the start and the end of every partition, then those of the disk. The table goes last, so that an
// erase that was cut short finds the partitions again.
func eraseMetadata(ctx context.Context, _ *reporter, disk Disk) error {
	size := disk.Info().SizeBytes
	extents, err := gpt.Scan(disk, size)
	if err != nil {
		return err
	}
	for _, extent := range append(extents, gpt.Extent{Size: size}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if extent.Offset == 0 {
			if err := disk.Sync(); err != nil {
				return err
			}
		}
		length := min(heldBack, extent.Size)
		if err := disk.ZeroRange(extent.Offset, length); err != nil {
			return err
		}
		if err := disk.ZeroRange(extent.Offset+extent.Size-length, length); err != nil {
			return err
		}
	}
	return disk.Sync()
}

// eraseFull clears every byte, the start first.
func eraseFull(ctx context.Context, reports *reporter, disk Disk) error {
	size := disk.Info().SizeBytes
	for off := int64(0); off < size; off += eraseStep {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(eraseStep, size-off)
		if err := disk.ZeroRange(off, n); err != nil {
			return err
		}
		reports.done.Add(n)
	}
	return disk.Sync()
}

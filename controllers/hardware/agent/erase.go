package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
)

// eraseChunk is the number of bytes that are cleared at once. Progress is counted and a cancellation is noticed between two chunks.
const eraseChunk = 256 << 20

// erase clears all disks at the same time as the mode says.
func erase(ctx context.Context, reports *reporter, disks []Disk, mode hardware.EraseMode) error {
	var eraseDisk func(context.Context, *reporter, Disk) error
	switch mode {
	case hardware.EraseNone:
		return nil
	case hardware.EraseMetadata:
		eraseDisk = eraseMetadata
	case hardware.EraseFull:
		eraseDisk = eraseFull
		for _, disk := range disks {
			reports.total.Add(disk.Info().SizeBytes)
		}
	default:
		return fmt.Errorf("erase mode %q is not known to this agent: the agent is older than the boot service", mode)
	}
	reports.enterStep(ctx, hardware.StepErasing)
	failures := make([]error, len(disks))
	var group sync.WaitGroup
	for i, disk := range disks {
		group.Go(func() {
			if err := eraseDisk(ctx, reports, disk); err != nil {
				failures[i] = failuref(hardware.ReasonDiskError, err, "erasing disk %s", disk.Info().Name)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failures...)
}

// eraseMetadata clears the start and the end of every partition, then those of the disk. The partition table is cleared last, so that an
// erase that was interrupted finds the partitions again. If it were cleared first, a file system in a partition would keep its
// signature, and a later installation with the same partitions would find the former tenant's files.
func eraseMetadata(ctx context.Context, _ *reporter, disk Disk) error {
	size := disk.Info().SizeBytes
	extents, err := gpt.ReadPartitions(disk, size)
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
		length := min(heldBackBytes, extent.Size)
		if err := disk.ZeroRange(extent.Offset, length); err != nil {
			return err
		}
		if err := disk.ZeroRange(extent.Offset+extent.Size-length, length); err != nil {
			return err
		}
	}
	return disk.Sync()
}

// eraseFull clears every byte, from the start of the disk.
func eraseFull(ctx context.Context, reports *reporter, disk Disk) error {
	size := disk.Info().SizeBytes
	for off := int64(0); off < size; off += eraseChunk {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(eraseChunk, size-off)
		if err := disk.ZeroRange(off, n); err != nil {
			return err
		}
		reports.done.Add(n)
	}
	return disk.Sync()
}

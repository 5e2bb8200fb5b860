package rack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
)

// errInputOutput is returned by a defective disk.
var errInputOutput = errors.New("input/output error")

// bootDisk is a server's disk that the running system has open.
type bootDisk struct {
	*blockdev.File
	server *Server
	// isRoot is true for the first disk, from which the server boots. The faults are those of this disk.
	isRoot bool
	// ctx ends with the power: nothing is written after that.
	ctx     context.Context
	errorAt int64
	// written counts the bytes for Faults.PowerLossAfter and Faults.StallAfter.
	written atomic.Int64
	loseAt  int64
	// stallAt is where writes wait for stallEnd; 0: nowhere.
	stallAt  int64
	stallEnd <-chan struct{}
}

// errNoDisk is returned for a disk that does not answer.
var errNoDisk = errors.New("no such device")

// openDisk opens a disk of the server. The first one has the faults of the server.
func (s *Server) openDisk(ctx context.Context, n int) (*bootDisk, error) {
	s.mu.Lock()
	faults, replaced := s.faults, s.faultsReplaced
	s.mu.Unlock()
	info := s.inventory.Disks[n]
	if faults.MissingDisk == info.SerialNumber {
		return nil, fmt.Errorf("disk %s of %s: %w", info.Name, s.name, errNoDisk)
	}
	file, err := blockdev.OpenFile(s.diskPath(n), info)
	if err != nil {
		return nil, fmt.Errorf("disk %s of %s: %w", info.Name, s.name, err)
	}
	disk := &bootDisk{File: file, server: s, isRoot: n == 0, ctx: ctx}
	if disk.isRoot {
		disk.errorAt, disk.loseAt, disk.stallAt, disk.stallEnd = faults.DiskErrorAt, faults.PowerLossAfter, faults.StallAfter, replaced
	}
	return disk, nil
}

// openDisks opens the disks that the agent finds.
func (s *Server) openDisks(ctx context.Context) (disks []agent.Disk, err error) {
	for n := range s.inventory.Disks {
		disk, err := s.openDisk(ctx, n)
		switch {
		case errors.Is(err, errNoDisk):
		case err != nil:
			for _, opened := range disks {
				err = errors.Join(err, opened.Close())
			}
			return nil, err
		default:
			disks = append(disks, disk)
		}
	}
	return disks, nil
}

// WriteAt implements io.WriterAt. It fails when the power is lost or the disk is defective at the offset.
func (d *bootDisk) WriteAt(p []byte, off int64) (int, error) {
	if err := d.beforeWrite(off, int64(len(p))); err != nil {
		return 0, err
	}
	before := d.written.Add(int64(len(p))) - int64(len(p))
	if d.loseAt > 0 && before+int64(len(p)) > d.loseAt {
		// The write is torn: its first part reaches the medium.
		n, err := d.File.WriteAt(p[:max(0, d.loseAt-before)], off)
		d.server.losePower()
		return n, errors.Join(errPowerLost, err)
	}
	if err := d.stall(before + int64(len(p))); err != nil {
		return 0, err
	}
	return d.File.WriteAt(p, off)
}

// ZeroRange clears a range. It fails as WriteAt does.
func (d *bootDisk) ZeroRange(off, n int64) error {
	if err := d.beforeWrite(off, n); err != nil {
		return err
	}
	if err := d.stall(d.written.Load() + n); err != nil {
		return err
	}
	return d.File.ZeroRange(off, n)
}

// stall waits when more bytes are written than Faults.StallAfter. It returns an error when the power is lost meanwhile.
func (d *bootDisk) stall(written int64) error {
	if d.stallAt == 0 || written <= d.stallAt {
		return nil
	}
	select {
	case <-d.stallEnd:
		return nil
	case <-d.ctx.Done():
		return context.Cause(d.ctx)
	}
}

// beforeWrite returns the error with which a write fails, and removes the state of the system when its partition table is overwritten.
func (d *bootDisk) beforeWrite(off, n int64) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	if d.errorAt > 0 && off+n > d.errorAt {
		return fmt.Errorf("%w: %d bytes at %d", errInputOutput, n, off)
	}
	if off == 0 && d.isRoot {
		return d.server.RemoveState()
	}
	return nil
}

// losePower cuts the power for Faults.PowerLossAfter, once.
func (s *Server) losePower() {
	s.mu.Lock()
	s.faults.PowerLossAfter = 0
	s.mu.Unlock()
	s.PowerLoss()
}

// statePath returns the folder with the files that the operating system writes to its disk while it runs. The folder is removed when the
// start of the disk is overwritten.
func (s *Server) statePath() string { return filepath.Join(s.rack.options.Dir, s.name+".var") }

// RemoveState removes the files that the operating system has written. Whoever overwrites the start of the disk from outside calls it.
func (s *Server) RemoveState() error {
	if err := os.RemoveAll(s.statePath()); err != nil {
		return fmt.Errorf("the disk of %s: %w", s.name, err)
	}
	return nil
}

// agentClock is the rack's clock as an agent.Clock.
type agentClock struct{ clock clock.Clock }

// Now implements agent.Clock.
func (c agentClock) Now() time.Time { return c.clock.Now() }

// Sleep implements agent.Clock.
func (c agentClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

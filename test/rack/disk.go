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

	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
)

// errInputOutput is returned by a defective disk.
var errInputOutput = errors.New("input/output error")

// bootDisk is a server's disk that the running system has open.
type bootDisk struct {
	*blockdev.File
	server *Server
	// ctx ends with the power: nothing is written after that.
	ctx     context.Context
	errorAt int64
	// written counts the bytes for Faults.PowerLossAfter.
	written atomic.Int64
	loseAt  int64
}

// openDisk opens the server's disk with its faults.
func (s *Server) openDisk(ctx context.Context) (*bootDisk, error) {
	file, err := blockdev.OpenFile(s.DiskPath(), s.inventory.Disks[0])
	if err != nil {
		return nil, fmt.Errorf("the disk of %s: %w", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &bootDisk{File: file, server: s, ctx: ctx, errorAt: s.faults.DiskErrorAt, loseAt: s.faults.PowerLossAfter}, nil
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
	return d.File.WriteAt(p, off)
}

// ZeroRange clears a range. It fails as WriteAt does.
func (d *bootDisk) ZeroRange(off, n int64) error {
	if err := d.beforeWrite(off, n); err != nil {
		return err
	}
	return d.File.ZeroRange(off, n)
}

// beforeWrite returns the error with which a write fails, and removes the state of the system when its partition table is overwritten.
func (d *bootDisk) beforeWrite(off, n int64) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	if d.errorAt > 0 && off+n > d.errorAt {
		return fmt.Errorf("%w: %d bytes at %d", errInputOutput, n, off)
	}
	if off == 0 {
		return d.server.removeState()
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

// removeState removes the state of the operating system.
func (s *Server) removeState() error {
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

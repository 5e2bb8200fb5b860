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

// errMedium is what a broken disk answers.
var errMedium = errors.New("input/output error")

// bootDisk is a server's disk while something runs that has it open.
type bootDisk struct {
	*blockdev.File
	server *Server
	// ctx is the power's: without it nothing reaches the medium.
	ctx     context.Context
	errorAt int64
	// written counts towards Faults.PowerLossAfter.
	written atomic.Int64
	loseAt  int64
}

func (s *Server) openDisk(ctx context.Context) (*bootDisk, error) {
	file, err := blockdev.OpenFile(s.DiskPath(), s.inventory.Disks[0])
	if err != nil {
		return nil, fmt.Errorf("the disk of %s: %w", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &bootDisk{File: file, server: s, ctx: ctx, errorAt: s.faults.DiskErrorAt, loseAt: s.faults.PowerLossAfter}, nil
}

// WriteAt writes what the disk's health and the power allow.
func (d *bootDisk) WriteAt(p []byte, off int64) (int, error) {
	if err := d.touch(off, int64(len(p))); err != nil {
		return 0, err
	}
	before := d.written.Add(int64(len(p))) - int64(len(p))
	if d.loseAt > 0 && before+int64(len(p)) > d.loseAt {
		// The write is torn: its first part reaches the medium.
		n, err := d.File.WriteAt(p[:max(0, d.loseAt-before)], off)
		d.server.losePowerOnce()
		return n, errors.Join(errPowerCut, err)
	}
	return d.File.WriteAt(p, off)
}

// ZeroRange clears what the disk's health and the power allow.
func (d *bootDisk) ZeroRange(off, n int64) error {
	if err := d.touch(off, n); err != nil {
		return err
	}
	return d.File.ZeroRange(off, n)
}

// touch is called before the medium changes.
func (d *bootDisk) touch(off, n int64) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	if d.errorAt > 0 && off+n > d.errorAt {
		return fmt.Errorf("%w: %d bytes at %d", errMedium, n, off)
	}
	if off == 0 {
		// What the operating system kept on the disk is gone with its partition table.
		return d.server.forget()
	}
	return nil
}

func (s *Server) losePowerOnce() {
	s.mu.Lock()
	s.faults.PowerLossAfter = 0
	s.mu.Unlock()
	s.PowerLoss()
}

// statePath is the folder that stands for what the operating system keeps on its disk while it runs. It lives and dies
// with the start of the disk.
func (s *Server) statePath() string { return filepath.Join(s.rack.options.Dir, s.name+".var") }

func (s *Server) forget() error {
	if err := os.RemoveAll(s.statePath()); err != nil {
		return fmt.Errorf("the disk of %s: %w", s.name, err)
	}
	return nil
}

// agentClock is the rack's clock as the agent wants it.
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

package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/nvme"
)

// SelfEraser is a Disk that can erase itself.
type SelfEraser interface {
	Disk
	// EraseMethods returns the methods that the disk has, the best first.
	EraseMethods() ([]hardware.EraseMethod, error)
	// BeginErase begins an erase.
	BeginErase(method hardware.EraseMethod) error
	// EraseState returns how far the erase is. After it has returned that none runs, reads come from the disk and from no cache.
	EraseState() (nvme.State, error)
	// RecoverErase makes the disk writable again after an erase that failed.
	RecoverErase() error
}

// erasePoll is how often a disk that erases itself is asked how far it is.
const erasePoll = 5 * time.Second

// errMarkRemains means that a disk reported an erase and kept its content.
var errMarkRemains = errors.New("the disk reported that it had erased itself and kept its content")

// eraseByDevice lets the disk erase itself by the best of its methods that works, and reports whether one did. The methods that failed are in
// the note. It returns an error only when the erase must stop.
//
// An erase of an earlier attempt that a power cut interrupted goes on by itself when the disk has power again, and the disk refuses reads and
// writes until it has ended. It is waited for, and proves nothing here: its marks are not known any more.
func (e *eraser) eraseByDevice(ctx context.Context) (isErased bool, err error) {
	disk, canErase := e.disk.(SelfEraser)
	if !canErase {
		return false, nil
	}
	if err := e.waitForDevice(ctx, disk); err != nil {
		e.addNote(fmt.Sprintf("an earlier erase by the disk: %v", err))
	}
	methods, err := disk.EraseMethods()
	if err != nil {
		e.addNote(err.Error())
	}
	for _, method := range methods {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		verified, err := e.tryMethod(ctx, disk, method)
		if err == nil {
			e.method, e.note = method, strings.TrimPrefix(e.note+"; "+verified, "; ")
			e.written.Store(e.size)
			e.showDone(e.size)
			return true, nil
		}
		e.showDone(0)
		e.addNote(fmt.Sprintf("%s failed: %v", method, err))
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err := disk.RecoverErase(); err != nil {
		e.addNote(err.Error())
	}
	return false, nil
}

// stateParts is the number of parts in which a disk counts its progress.
const stateParts = 65536

// showDone shows how many bytes of the disk are erased, of those that the disk erases itself.
func (e *eraser) showDone(done int64) {
	e.reports.done.Add(done - e.shown)
	e.shown = done
}

func (e *eraser) addNote(note string) { e.note = strings.TrimPrefix(e.note+"; "+note, "; ") }

// tryMethod erases by one method and returns how that was verified.
//
// What a disk returns after an erase is not defined: zeros, ones, or what a new key makes of the old data. So the proof is that random marks,
// which were written before at every place that is read back, are gone. It holds also for a disk that had zeros before.
func (e *eraser) tryMethod(ctx context.Context, disk SelfEraser, method hardware.EraseMethod) (verified string, err error) {
	if err := disk.RecoverErase(); err != nil {
		return "", err
	}
	mark := make([]byte, min(granule, e.size))
	_, _ = rand.Read(mark) // it never fails
	for _, off := range e.samplePlaces() {
		if _, err := disk.WriteAt(mark, off); err != nil {
			return "", fmt.Errorf("writing a mark at byte %d: %w", off, err)
		}
	}
	if err := disk.Sync(); err != nil {
		return "", fmt.Errorf("writing the marks: %w", err)
	}
	if err := disk.BeginErase(method); err != nil {
		return "", err
	}
	if err := e.waitForDevice(ctx, disk); err != nil {
		return "", err
	}
	isZero, err := e.checkMarksGone(mark)
	if err != nil {
		return "", err
	}
	// What a new key makes of old data could look like a partition table. Both ends are cleared, as an installation expects them.
	if err := e.clearEnds(); err != nil {
		return "", fmt.Errorf("clearing both ends after the erase: %w", err)
	}
	reads := "zeros"
	if !isZero {
		reads = "other content than before"
	}
	return fmt.Sprintf("verified: random marks at %d places are gone, the disk returns %s there", sampleCount, reads), nil
}

// clearEnds clears the first and the last MiB of the disk and reads them back.
func (e *eraser) clearEnds() error {
	n := min(heldBackBytes, e.size)
	ends := []gpt.Extent{{Size: n}, {Offset: e.size - n, Size: n}}
	for _, end := range ends {
		if err := e.disk.ZeroRange(end.Offset, end.Size); err != nil {
			return err
		}
	}
	if err := e.disk.Sync(); err != nil {
		return err
	}
	for _, end := range ends {
		if err := e.overwriteUnlessZero(end); err != nil {
			return err
		}
	}
	return nil
}

// waitForDevice returns when the disk does not erase itself any more, with an error when that failed.
func (e *eraser) waitForDevice(ctx context.Context, disk SelfEraser) error {
	for {
		state, err := disk.EraseState()
		switch {
		case err != nil:
			return err
		case state.HasFailed:
			return errors.New("the disk reports that its erase failed")
		case !state.IsRunning:
			return nil
		}
		e.showDone(e.size / stateParts * int64(state.Done))
		if err := e.reports.client.config.Clock.Sleep(ctx, erasePoll); err != nil {
			return err
		}
	}
}

// checkMarksGone reads the samples and fails when a sector of one is still that of the mark. isZero is true when all samples are zeros.
func (e *eraser) checkMarksGone(mark []byte) (isAllZero bool, err error) {
	sample, sector := make([]byte, len(mark)), int(min(e.disk.SectorSize(), int64(len(mark))))
	isAllZero = true
	for _, off := range e.samplePlaces() {
		if _, err := e.disk.ReadAt(sample, off); err != nil {
			return false, fmt.Errorf("reading back at byte %d: %w", off, err)
		}
		isAllZero = isAllZero && isZero(sample)
		for at := 0; at+sector <= len(sample); at += sector {
			if bytes.Equal(sample[at:at+sector], mark[at:at+sector]) {
				return false, fmt.Errorf("%w at byte %d", errMarkRemains, off+int64(at))
			}
		}
	}
	return isAllZero, nil
}

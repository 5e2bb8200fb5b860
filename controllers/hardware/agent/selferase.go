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
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// SelfEraser is a Disk that may be able to erase itself.
type SelfEraser interface {
	Disk
	// EraseDrive returns the disk as its own commands see it, nil for a disk that has none.
	EraseDrive() selferase.Drive
	// DropCache makes later reads come from the disk and from no cache.
	DropCache() error
	// Discard has the disk deallocate a range.
	Discard(off, n int64) error
}

const (
	// erasePoll is how often a disk that erases itself is asked how far it is.
	erasePoll = 5 * time.Second
	// eraseMargin is added to twice the time that a disk says its erase takes.
	eraseMargin = 10 * time.Minute
	// slowestErase is the speed in bytes per second that a disk is taken to have that does not say how long its erase takes. A third of what a
	// rotating disk writes on its inner tracks.
	slowestErase = 30 << 20
)

var (
	// errMarkRemains means that a disk reported an erase and kept its content.
	errMarkRemains = errors.New("the disk reported that it had erased itself and kept its content")
	// errStillErasing means that a disk has not ended its erase in time. Until it has, it refuses everything else.
	errStillErasing = errors.New("still erasing")
)

// selfEraser returns the disk and its drive when it has commands of its own.
func (e *eraser) selfEraser() (SelfEraser, selferase.Drive) {
	disk, canErase := e.disk.(SelfEraser)
	if !canErase {
		return nil, nil
	}
	return disk, disk.EraseDrive()
}

// endEarlierErase ends what an attempt before has begun, and makes the disk readable and writable.
//
// An erase that a power cut interrupted goes on by itself when the disk has power again, and the disk refuses reads and writes until it has ended. It
// is waited for, and proves nothing here: its marks are not known any more. A security erase has ended, and left the disk locked.
func (e *eraser) endEarlierErase(ctx context.Context) error {
	disk, drive := e.selfEraser()
	if drive == nil {
		return nil
	}
	err := e.waitForDevice(ctx, drive, 0)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errStillErasing):
		return err
	case err != nil:
		e.addNote(fmt.Sprintf("an earlier erase by the disk: %v", err))
	}
	if err := drive.Recover(); err != nil {
		e.addNote(err.Error())
	}
	return disk.DropCache()
}

// eraseByDevice lets the disk erase itself by the best of its methods that works, and reports whether one did. The methods that failed are in
// the note. It returns an error only when the erase must stop.
func (e *eraser) eraseByDevice(ctx context.Context) (isErased bool, err error) {
	disk, drive := e.selfEraser()
	if drive == nil {
		return false, nil
	}
	if e.twin != "" {
		e.addNote("it is the same disk as " + e.twin + ", so it is not told to erase itself: an erase by one path would end what the other one does")
		return false, nil
	}
	methods, err := drive.Methods()
	if err != nil {
		e.addNote(err.Error())
	}
	for _, method := range methods {
		verified, err := e.tryMethod(ctx, disk, drive, method)
		switch {
		case err == nil:
			e.finishMethod(method, verified)
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, errStillErasing):
			return false, fmt.Errorf("%s: %w", method, err)
		}
		e.showDone(0)
		e.addNote(fmt.Sprintf("%s failed: %v", method, err))
		// Without it the disk refuses what is tried next.
		if err := drive.Recover(); err != nil {
			e.addNote(err.Error())
		}
	}
	return e.eraseByDiscard(ctx, disk, drive)
}

// finishMethod keeps by which method the disk was erased and how that was verified.
func (e *eraser) finishMethod(method hardware.EraseMethod, verified string) {
	e.method, e.verified = method, verified
	e.written.Store(e.size)
	e.showDone(e.size)
}

// eraseByDiscard has a disk deallocate every block that guarantees zeros in their place, and reads every byte back. A disk may ignore a part of what
// it is told to deallocate, so that samples would prove nothing.
func (e *eraser) eraseByDiscard(ctx context.Context, disk SelfEraser, drive selferase.Drive) (isErased bool, err error) {
	if !drive.HasZerosAfterDiscard() {
		return false, nil
	}
	for off := int64(0); off < e.size; off += eraseChunk {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err := disk.Discard(off, min(eraseChunk, e.size-off)); err != nil {
			e.addNote(fmt.Sprintf("%s failed: %v", hardware.MethodDiscard, err))
			return false, nil
		}
	}
	if err := errors.Join(disk.Sync(), disk.DropCache()); err != nil {
		return false, err
	}
	for off := int64(0); off < e.size; off += blockSize {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		at, err := e.contentIn(gpt.Extent{Offset: off, Size: min(blockSize, e.size-off)})
		if err != nil || at >= 0 {
			e.showDone(0)
			e.addNote(fmt.Sprintf("%s failed: byte %d is not zero", hardware.MethodDiscard, at))
			return false, err
		}
		e.showDone(off)
	}
	e.finishMethod(hardware.MethodDiscard, "every byte was read as zero")
	return true, nil
}

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
func (e *eraser) tryMethod(ctx context.Context, disk SelfEraser, drive selferase.Drive, method hardware.EraseMethod) (verified string, err error) {
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
	if err := drive.Begin(method); err != nil {
		return "", err
	}
	if err := e.waitForDevice(ctx, drive, drive.Estimate(method)); err != nil {
		return "", err
	}
	if err := disk.DropCache(); err != nil {
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
	return fmt.Sprintf("random marks at %d places are gone, the disk returns %s there", sampleCount, reads), nil
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

// waitForDevice returns when the disk does not erase itself any more, with an error when that failed or takes too long. The estimate is the disk's
// own, 0 when it has none.
func (e *eraser) waitForDevice(ctx context.Context, drive selferase.Drive, estimate time.Duration) error {
	limit := eraseMargin + 2*estimate
	if estimate == 0 {
		limit += time.Duration(e.size/slowestErase) * time.Second
	}
	for waited := time.Duration(0); ; waited += erasePoll {
		state, err := drive.State()
		switch {
		case err != nil:
			return err
		case state.HasFailed:
			return errors.New("the disk reports that its erase failed")
		case !state.IsRunning:
			return nil
		case waited > limit:
			return fmt.Errorf("the disk is %w itself after %s, with %d %% done: expected at most %s; look at the disk, or replace it",
				errStillErasing, waited, 100*state.Done/selferase.Parts, limit)
		}
		e.showDone(e.size / selferase.Parts * int64(state.Done))
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

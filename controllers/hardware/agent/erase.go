package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/gpt"
)

const (
	// eraseChunk is the number of bytes that are cleared at once. Progress is counted and a cancellation is noticed between two chunks.
	eraseChunk = 256 << 20
	// sampleCount is how many places of a disk are read back after a full erase.
	sampleCount = 64
)

// erase clears all disks at the same time as the mode says, and returns the evidence for each disk, also when it fails.
func erase(ctx context.Context, client *client, reports *reporter, set diskSet, mode hardware.EraseMode) ([]hardware.DiskEvidence, error) {
	switch mode {
	case hardware.EraseNone:
		return nil, nil
	case hardware.EraseMetadata, hardware.EraseFull:
	default:
		return nil, fmt.Errorf("erase mode %q is not known to this agent: the agent is older than the boot service", mode)
	}
	// Before the first byte, so that an administrator learns of a missing disk after minutes and not after the day that the erase of the others takes.
	if _, err := set.submit(ctx, client); err != nil {
		return nil, err
	}
	erasers := make([]*eraser, len(set.disks))
	for i, disk := range set.disks {
		erasers[i] = &eraser{disk: disk, reports: reports, size: disk.Info().SizeBytes, twin: findTwin(set.disks, i)}
		if mode == hardware.EraseFull {
			reports.total.Add(erasers[i].size)
		}
	}
	reports.enterStep(ctx, hardware.StepErasing)
	var group sync.WaitGroup
	for _, e := range erasers {
		group.Go(func() { e.failure = e.erase(ctx, mode) })
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return collectEvidence(erasers)
}

// collectEvidence returns the evidence of all disks, and the failure when one of them failed.
func collectEvidence(erasers []*eraser) ([]hardware.DiskEvidence, error) {
	var evidence []hardware.DiskEvidence
	var causes []error
	for _, e := range erasers {
		disk := hardware.DiskEvidence{Disk: e.disk.Info(), Method: e.method, Bytes: e.written.Load(), Result: hardware.DiskErased, Message: e.message()}
		if e.failure != nil {
			disk.Result = hardware.DiskFailed
			causes = append(causes, fmt.Errorf("%s: %w", e.disk.Info(), e.failure))
		}
		evidence = append(evidence, disk)
	}
	if len(causes) > 0 {
		return evidence, failuref(hardware.ReasonDiskError, errors.Join(causes...), "erasing %d of %d disks", len(causes), len(erasers))
	}
	return evidence, nil
}

// eraser erases one disk and keeps what it did.
type eraser struct {
	disk    Disk
	reports *reporter
	size    int64
	method  hardware.EraseMethod
	// written is how many bytes were overwritten.
	written atomic.Int64
	// shown is what the reports count of an erase by the disk itself.
	shown int64
	// note says why another method than the requested one was used, and verified how the erase was proven.
	note, verified string
	// twin is another name of the same disk, "" when there is none.
	twin    string
	failure error
}

// message says how the erase was verified, or why it failed, and then what did not work. The order is that of importance, because a long text is cut.
func (e *eraser) message() string {
	first := ""
	switch {
	case e.failure != nil:
		first = e.failure.Error()
	case e.verified != "":
		first = "verified: " + e.verified
	}
	return strings.Trim(first+"; "+e.note, "; ")
}

// findTwin returns the name of another disk that is the same one by another path, or another part of it: it has the same WWN or serial number. The
// namespaces of an NVMe controller, which have its serial number, are told apart by the controller.
func findTwin(disks []Disk, at int) string {
	info := disks[at].Info()
	for i, other := range disks {
		if i != at && isSameByAnotherPath(info, other.Info()) {
			return other.Info().Name
		}
	}
	return ""
}

// isSameByAnotherPath reports whether both disks have the same WWN or serial number. See findTwin.
func isSameByAnotherPath(a, b hardware.Disk) bool {
	return !strings.HasPrefix(a.Name, "/dev/nvme") && a.HasIdentity() && a.IsSame(b)
}

func (e *eraser) erase(ctx context.Context, mode hardware.EraseMode) error {
	if err := e.endEarlierErase(ctx); err != nil {
		return err
	}
	if mode == hardware.EraseFull {
		if isErased, err := e.eraseByDevice(ctx); isErased || err != nil {
			return err
		}
		return e.eraseFull(ctx)
	}
	layout, err := gpt.ReadLayout(e.disk, e.size, e.disk.SectorSize())
	switch {
	case errors.Is(err, gpt.ErrDamaged), errors.Is(err, gpt.ErrUnknown):
		// Partitions that cannot be found would keep their signatures.
		e.note = fmt.Sprintf("every byte was overwritten, because the partitions cannot be read: %v", err)
		e.reports.total.Add(e.size)
		return e.eraseFull(ctx)
	case err != nil:
		return fmt.Errorf("reading the partition table: %w", err)
	}
	return e.eraseMetadata(ctx, layout)
}

// eraseMetadata clears both ends and the signatures of every partition, then those of the disk. The partition tables are cleared last, so that
// an erase that was interrupted finds the partitions again. If they were cleared first, a file system in a partition would keep its
// signature, and a later installation with the same partitions would find the former tenant's files.
//
// Every range is read back, as samples of a full erase are: a device that reports success for clearing may keep its content.
func (e *eraser) eraseMetadata(ctx context.Context, layout gpt.Layout) error {
	e.method, e.verified = hardware.MethodMetadata, "every cleared byte was read as zero"
	for _, extents := range [][]gpt.Extent{layout.Partitions, append(layout.Records, gpt.Extent{Size: e.size})} {
		// All areas are computed before the first is cleared, because an extent may lie in another one.
		var areas []gpt.Extent
		for _, extent := range extents {
			areas = append(areas, signatureAreas(e.disk, extent)...)
		}
		for _, area := range areas {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := e.clear(area.Offset, area.Size); err != nil {
				return err
			}
		}
		if err := e.disk.Sync(); err != nil {
			return err
		}
		for _, area := range areas {
			if err := e.overwriteUnlessZero(area); err != nil {
				return err
			}
		}
	}
	return nil
}

// overwriteUnlessZero reads an area back that was cleared, and overwrites it by plain writes when it still has content.
func (e *eraser) overwriteUnlessZero(area gpt.Extent) error {
	at, err := e.contentIn(area)
	if err != nil || at < 0 {
		return err
	}
	e.addNote(fmt.Sprintf("the device reported that byte %d was cleared and it still had content, so it was overwritten by plain writes", at))
	zeros := make([]byte, min(area.Size, blockSize))
	for off := int64(0); off < area.Size; off += int64(len(zeros)) {
		n := min(area.Size-off, int64(len(zeros)))
		if _, err := e.disk.WriteAt(zeros[:n], area.Offset+off); err != nil {
			return err
		}
	}
	if err := e.disk.Sync(); err != nil {
		return err
	}
	if at, err = e.contentIn(area); err == nil && at >= 0 {
		err = notStoredError(at)
	}
	return err
}

// notStoredError is the failure of a disk that has content after it was overwritten.
func notStoredError(at int64) error {
	return fmt.Errorf("byte %d is not zero after it was overwritten: the disk does not store what is written", at)
}

// contentIn returns the offset of the first part of the area that is not zero, or -1.
func (e *eraser) contentIn(area gpt.Extent) (at int64, err error) {
	part := make([]byte, min(granule, area.Size))
	for off := int64(0); off < area.Size; off += int64(len(part)) {
		n := min(area.Size-off, int64(len(part)))
		if _, err := e.disk.ReadAt(part[:n], area.Offset+off); err != nil {
			return -1, fmt.Errorf("reading back at byte %d: %w", area.Offset+off, err)
		}
		if !isZero(part[:n]) {
			return area.Offset + off, nil
		}
	}
	return -1, nil
}

// eraseFull clears every byte, from the start of the disk, and reads samples back. A device that reports success for clearing and keeps
// its content is overwritten by plain writes.
func (e *eraser) eraseFull(ctx context.Context) error {
	e.method, e.verified = hardware.MethodOverwrite, fmt.Sprintf("zeros were read at %d places", sampleCount)
	e.written.Store(0)
	if err := e.eachChunk(ctx, eraseChunk, e.clear); err != nil {
		return err
	}
	at, err := e.findContent()
	if err != nil || at < 0 {
		return err
	}
	e.addNote(fmt.Sprintf("the device reported that it was cleared and still had content at byte %d, so it was overwritten by plain writes", at))
	e.written.Store(0)
	zeros := make([]byte, blockSize)
	err = e.eachChunk(ctx, blockSize, func(off, n int64) error {
		_, err := e.disk.WriteAt(zeros[:n], off)
		e.written.Add(n)
		return err
	})
	if err != nil {
		return err
	}
	if at, err = e.findContent(); err == nil && at >= 0 {
		err = notStoredError(at)
	}
	return err
}

// eachChunk calls do with every part of the disk and then syncs.
func (e *eraser) eachChunk(ctx context.Context, chunk int64, do func(off, n int64) error) error {
	for off := int64(0); off < e.size; off += chunk {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(chunk, e.size-off)
		if err := do(off, n); err != nil {
			return err
		}
		e.reports.done.Add(n)
	}
	return e.disk.Sync()
}

func (e *eraser) clear(off, n int64) error {
	if err := e.disk.ZeroRange(off, n); err != nil {
		return err
	}
	e.written.Add(n)
	return nil
}

// samplePlaces returns where samples are read: evenly over the disk, with its first and its last bytes.
func (e *eraser) samplePlaces() []int64 {
	var places []int64
	last := e.size - min(granule, e.size)
	for i := range int64(sampleCount - 1) {
		places = append(places, last/(sampleCount-1)*i/e.disk.SectorSize()*e.disk.SectorSize())
	}
	return append(places, last)
}

// findContent reads samples of the disk, with its first and its last bytes, and returns the offset of the first sample that is not zero, or -1.
func (e *eraser) findContent() (at int64, err error) {
	// Without it: where the kernel wrote the zeros through its cache, they are read from there, and the disk may have something else.
	if disk, ok := e.disk.(interface{ DropCache() error }); ok {
		if err := disk.DropCache(); err != nil {
			return -1, err
		}
	}
	sample := make([]byte, min(granule, e.size))
	for _, off := range e.samplePlaces() {
		if _, err := e.disk.ReadAt(sample, off); err != nil {
			return -1, fmt.Errorf("reading back at byte %d: %w", off, err)
		}
		if !bytes.Equal(sample, zeroGranule[:len(sample)]) {
			return off, nil
		}
	}
	return -1, nil
}

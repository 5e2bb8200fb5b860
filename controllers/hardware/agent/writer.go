package agent

import (
	"bytes"
	"fmt"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// heldBackBytes is the length of the start and the minimum length of the end of the disk that are written only after the image was verified.
	heldBackBytes = 1 << 20
	// granule is the unit in which the image is searched for zeros.
	granule = 64 << 10
	// clearedTailBytes is the length of the end of the disk that is cleared where the image does not cover it: an earlier config drive
	// (64 MiB at most) and the copy of the partition table.
	clearedTailBytes = 66 << 20
)

var zeroGranule = make([]byte, granule)

// imageWriter writes a stream to a disk from the start. It holds back the parts that make the disk bootable.
type imageWriter struct {
	disk Disk
	size int64
	// cleared is true when this run has cleared the whole disk, so that zeros need not be written.
	cleared bool
	// onHead is called once, when the first MiB is complete or the image has ended.
	onHead func(head []byte) error

	off int64
	// zerosFrom is the start of a run of zeros that is not cleared yet, -1 for none.
	zerosFrom int64
	// head and tail are the parts that are held back. The disk has zeros in their place.
	head, tail []byte
	headKnown  bool
}

// newImageWriter makes the disk unbootable and returns a writer for the image.
func newImageWriter(disk Disk, cleared bool, onHead func([]byte) error) (*imageWriter, error) {
	w := &imageWriter{disk: disk, size: disk.Info().SizeBytes, cleared: cleared, onHead: onHead, zerosFrom: -1}
	if w.size < 2*heldBackBytes {
		return nil, failuref(hardware.ReasonNoRootDevice, nil, "disk %s has %d bytes: too small for any image", disk.Info().Name, w.size)
	}
	w.head = make([]byte, heldBackBytes)
	// The tail begins at a multiple of granule, so that no granule is split.
	w.tail = make([]byte, w.size-(w.size-heldBackBytes)/granule*granule)
	for _, extent := range [][2]int64{{0, heldBackBytes}, {w.tailOffset(), int64(len(w.tail))}} {
		if err := disk.ZeroRange(extent[0], extent[1]); err != nil {
			return nil, w.diskError("clearing the partition table", err)
		}
		if err := disk.Sync(); err != nil {
			return nil, w.diskError("clearing the partition table", err)
		}
	}
	return w, nil
}

func (w *imageWriter) tailOffset() int64 { return w.size - int64(len(w.tail)) }

func (w *imageWriter) diskError(doing string, err error) error {
	return failuref(hardware.ReasonDiskError, err, "%s on disk %s", doing, w.disk.Info().Name)
}

// write writes the next bytes of the image.
func (w *imageWriter) write(p []byte) error {
	if int64(len(p)) > w.size-w.off {
		return failuref(hardware.ReasonImageInvalid, nil, "the image is larger than disk %s of %d bytes", w.disk.Info().Name, w.size)
	}
	for len(p) > 0 {
		n, err := w.writePart(p)
		if err != nil {
			return err
		}
		p, w.off = p[n:], w.off+int64(n)
		if w.off >= heldBackBytes {
			if err := w.completeHead(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePart writes the bytes up to the next border between data and zeros or of a held-back part. It returns the number of bytes.
func (w *imageWriter) writePart(p []byte) (int, error) {
	if w.off < heldBackBytes {
		return copy(w.head[w.off:], p), nil
	}
	if w.off >= w.tailOffset() {
		return copy(w.tail[w.off-w.tailOffset():], p), w.flushZeros()
	}
	p = p[:min(int64(len(p)), w.tailOffset()-w.off)]
	if n := zeroLength(p); n > 0 {
		if w.zerosFrom < 0 {
			w.zerosFrom = w.off
		}
		return n, nil
	}
	if err := w.flushZeros(); err != nil {
		return 0, err
	}
	n := dataLength(p)
	if _, err := w.disk.WriteAt(p[:n], w.off); err != nil {
		return 0, w.diskError(fmt.Sprintf("writing %d bytes at %d", n, w.off), err)
	}
	return n, nil
}

// zeroLength returns the length of the granules of zeros at the start of p.
func zeroLength(p []byte) int {
	n := 0
	for n < len(p) && isZero(p[n:min(n+granule, len(p))]) {
		n = min(n+granule, len(p))
	}
	return n
}

// dataLength returns the length of the granules at the start of p that are not zeros.
func dataLength(p []byte) int {
	n := min(granule, len(p))
	for n < len(p) && !isZero(p[n:min(n+granule, len(p))]) {
		n = min(n+granule, len(p))
	}
	return n
}

func isZero(p []byte) bool { return bytes.Equal(p, zeroGranule[:len(p)]) }

// flushZeros clears the run of zeros that ends at the current offset.
func (w *imageWriter) flushZeros() error {
	from := w.zerosFrom
	w.zerosFrom = -1
	if from < 0 || w.cleared {
		return nil
	}
	if err := w.disk.ZeroRange(from, w.off-from); err != nil {
		return w.diskError(fmt.Sprintf("clearing %d bytes at %d", w.off-from, from), err)
	}
	return nil
}

// completeHead calls onHead once.
func (w *imageWriter) completeHead() error {
	if w.headKnown {
		return nil
	}
	w.headKnown = true
	return w.onHead(w.head)
}

// finishBody writes the rest of a verified image except its first MiB. The disk does not boot before writeHead.
func (w *imageWriter) finishBody() error {
	if w.off == 0 {
		return failuref(hardware.ReasonImageInvalid, nil, "the image is empty")
	}
	if err := w.completeHead(); err != nil {
		return err
	}
	if err := w.flushZeros(); err != nil {
		return err
	}
	// Clearing begins at a multiple of granule. The few bytes between the end of the image and there are not cleared.
	clearFrom := (max(w.off, w.size-clearedTailBytes, heldBackBytes) + granule - 1) / granule * granule
	if clearFrom < w.tailOffset() && !w.cleared {
		if err := w.disk.ZeroRange(clearFrom, w.tailOffset()-clearFrom); err != nil {
			return w.diskError("clearing the disk's end", err)
		}
	}
	if w.off > w.tailOffset() {
		if _, err := w.disk.WriteAt(w.tail, w.tailOffset()); err != nil {
			return w.diskError("writing the disk's end", err)
		}
	}
	return nil
}

// writeAt writes bytes after the first MiB, which is held back.
func (w *imageWriter) writeAt(data []byte, off int64) error {
	if _, err := w.disk.WriteAt(data, off); err != nil {
		return w.diskError(fmt.Sprintf("writing %d bytes at %d", len(data), off), err)
	}
	return nil
}

// writeHead makes the disk bootable: when everything else is on the medium, it writes the first MiB, and its first sector last.
// Example for another order: the sector with the boot code and the protective MBR is on the medium and the power fails before the partition
// table is. The firmware would then boot a disk that is not complete.
func (w *imageWriter) writeHead() error {
	first := w.disk.SectorSize()
	for _, step := range []func() error{
		w.disk.Sync,
		func() error { return w.writeAt(w.head[first:], first) },
		w.disk.Sync,
		func() error { return w.writeAt(w.head[:first], 0) },
		w.disk.Sync,
	} {
		if err := step(); err != nil {
			return w.diskError("completing the installation", err)
		}
	}
	return nil
}

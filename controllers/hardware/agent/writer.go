package agent

import (
	"bytes"
	"fmt"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// heldBack is how much of the disk's start, and of its end, is written only after the image was verified.
	heldBack = 1 << 20
	// granule is the unit in which zeros are looked for.
	granule = 64 << 10
	// tailSize is cleared behind the image: an earlier config drive (64 MiB at most) and the copy of the partition table.
	tailSize = 66 << 20
)

var zeroGranule = make([]byte, granule)

// imageWriter puts a stream on a disk, from its start on, and keeps back what would make the disk boot.
type imageWriter struct {
	disk Disk
	size int64
	// cleared: this run has cleared the whole disk before, so zeros need not be written.
	cleared bool
	// onHead is called once when the first MiB is known, or the image has ended before.
	onHead func(head []byte) error

	off int64
	// zerosFrom is where a run of zeros began that is not cleared yet, -1 for none.
	zerosFrom int64
	// head and tail are what is held back; both are as zeros on the disk meanwhile.
	head, tail []byte
	headKnown  bool
}

// newImageWriter makes the disk unbootable, whatever was on it, and returns a writer for the image.
func newImageWriter(disk Disk, cleared bool, onHead func([]byte) error) (*imageWriter, error) {
	w := &imageWriter{disk: disk, size: disk.Info().SizeBytes, cleared: cleared, onHead: onHead, zerosFrom: -1}
	if w.size < 2*heldBack {
		return nil, failf(hardware.ReasonNoRootDevice, nil, "disk %s has %d bytes: too small for any image", disk.Info().Name, w.size)
	}
	w.head = make([]byte, heldBack)
	// The tail begins at a whole granule, so that no block is split twice.
	w.tail = make([]byte, w.size-(w.size-heldBack)/granule*granule)
	for _, extent := range [][2]int64{{0, heldBack}, {w.tailAt(), int64(len(w.tail))}} {
		if err := disk.ZeroRange(extent[0], extent[1]); err != nil {
			return nil, w.diskError("clearing the partition table", err)
		}
		if err := disk.Sync(); err != nil {
			return nil, w.diskError("clearing the partition table", err)
		}
	}
	return w, nil
}

func (w *imageWriter) tailAt() int64 { return w.size - int64(len(w.tail)) }

func (w *imageWriter) diskError(doing string, err error) error {
	return failf(hardware.ReasonDiskError, err, "%s on disk %s", doing, w.disk.Info().Name)
}

// write takes the next bytes of the image.
func (w *imageWriter) write(p []byte) error {
	if int64(len(p)) > w.size-w.off {
		return failf(hardware.ReasonImageInvalid, nil, "the image is larger than disk %s of %d bytes", w.disk.Info().Name, w.size)
	}
	for len(p) > 0 {
		n, err := w.writePart(p)
		if err != nil {
			return err
		}
		p, w.off = p[n:], w.off+int64(n)
		if w.off >= heldBack {
			if err := w.headDone(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePart takes the bytes up to the next border of a granule or a held-back part, runs of data as one.
func (w *imageWriter) writePart(p []byte) (int, error) {
	if w.off < heldBack {
		return copy(w.head[w.off:], p), nil
	}
	if w.off >= w.tailAt() {
		return copy(w.tail[w.off-w.tailAt():], p), w.flushZeros()
	}
	p = p[:min(int64(len(p)), w.tailAt()-w.off)]
	if n := zeroRun(p); n > 0 {
		if w.zerosFrom < 0 {
			w.zerosFrom = w.off
		}
		return n, nil
	}
	if err := w.flushZeros(); err != nil {
		return 0, err
	}
	n := dataRun(p)
	if _, err := w.disk.WriteAt(p[:n], w.off); err != nil {
		return 0, w.diskError(fmt.Sprintf("writing %d bytes at %d", n, w.off), err)
	}
	return n, nil
}

// zeroRun is the length of the granules of zeros that p begins with, dataRun of those that hold something else.
func zeroRun(p []byte) int {
	n := 0
	for n < len(p) && isZero(p[n:min(n+granule, len(p))]) {
		n = min(n+granule, len(p))
	}
	return n
}

func dataRun(p []byte) int {
	n := min(granule, len(p))
	for n < len(p) && !isZero(p[n:min(n+granule, len(p))]) {
		n = min(n+granule, len(p))
	}
	return n
}

func isZero(p []byte) bool { return bytes.Equal(p, zeroGranule[:len(p)]) }

// flushZeros clears the run of zeros that ends here.
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

func (w *imageWriter) headDone() error {
	if w.headKnown {
		return nil
	}
	w.headKnown = true
	return w.onHead(w.head)
}

// finish writes what is left of a verified image but its first MiB: everything that does not make the disk boot.
// Then seal makes it boot.
func (w *imageWriter) finish() error {
	if w.off == 0 {
		return failf(hardware.ReasonImageInvalid, nil, "the image is empty")
	}
	if err := w.headDone(); err != nil {
		return err
	}
	if err := w.flushZeros(); err != nil {
		return err
	}
	// Clearing begins at a whole granule: the bytes from the image's end to there are no one's either, but not worth a partial sector.
	clearFrom := (max(w.off, w.size-tailSize, heldBack) + granule - 1) / granule * granule
	if clearFrom < w.tailAt() && !w.cleared {
		if err := w.disk.ZeroRange(clearFrom, w.tailAt()-clearFrom); err != nil {
			return w.diskError("clearing the disk's end", err)
		}
	}
	if w.off > w.tailAt() {
		if _, err := w.disk.WriteAt(w.tail, w.tailAt()); err != nil {
			return w.diskError("writing the disk's end", err)
		}
	}
	return nil
}

// put writes bytes behind the held-back first MiB.
func (w *imageWriter) put(data []byte, off int64) error {
	if _, err := w.disk.WriteAt(data, off); err != nil {
		return w.diskError(fmt.Sprintf("writing %d bytes at %d", len(data), off), err)
	}
	return nil
}

// seal makes the disk boot: when everything else is on the medium, the first MiB follows, and its first block last.
func (w *imageWriter) seal() error {
	first := w.disk.SectorSize()
	for _, step := range []func() error{
		w.disk.Sync,
		func() error { return w.put(w.head[first:], first) },
		w.disk.Sync,
		func() error { return w.put(w.head[:first], 0) },
		w.disk.Sync,
	} {
		if err := step(); err != nil {
			return w.diskError("completing the installation", err)
		}
	}
	return nil
}

package agent_test

import (
	"bytes"
	"context"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
)

// countingDisk counts the bytes that are sent to a disk. Ranges that are cleared are not sent: the disk clears them by itself, as one does with
// BLKZEROOUT.
type countingDisk struct {
	agent.Disk
	written atomic.Int64
}

func (d *countingDisk) WriteAt(p []byte, off int64) (int, error) {
	d.written.Add(int64(len(p)))
	return d.Disk.WriteAt(p, off)
}

// countData returns the bytes of the blocks of 4 KiB that are not zeros: what file systems have written.
func countData(image []byte) int64 {
	const block = 4 << 10
	zeros := make([]byte, block)
	var n int64
	for off := 0; off < len(image); off += block {
		if part := image[off:min(off+block, len(image))]; !bytes.Equal(part, zeros[:len(part)]) {
			n += int64(len(part))
		}
	}
	return n
}

// maxWritten is how many bytes may be written for one byte that is not zero.
const maxWritten = 1.05

func TestAnInstallationSendsHardlyMoreThanWhatIsNotZero(t *testing.T) {
	image := plainImage(96 * mib)
	for _, format := range []string{"raw", "raw.gz", "raw.zst"} {
		disk := &countingDisk{Disk: newMemoryDisk(128*mib, 0xFF)}
		r := newRig(t, compressed(t, image, format), format, hardware.ConfigDrive{})
		r.change(hintOneMiB)
		if exit, err := r.run(t.Context(), disk); err != nil || exit != agent.Reboot {
			t.Fatalf("%s: %s, %v", format, exit, err)
		}
		if data := countData(image); float64(disk.written.Load()) > maxWritten*float64(data) {
			t.Errorf("%s: %d bytes were written, expected at most %.2f times the %d that are not zero", format, disk.written.Load(), maxWritten, data)
		}
	}
}

// watchHeap samples the memory that Go has mapped and not returned until the function is called, which returns the greatest growth in bytes.
func watchHeap() (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int64)
	read := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64()) - int64(sample[1].Value.Uint64())
	}
	begin := read()
	go func() {
		var most int64
		for ctx.Err() == nil {
			most = max(most, read()-begin)
			time.Sleep(5 * time.Millisecond)
		}
		done <- most
	}()
	return func() int64 { cancel(); return <-done }
}

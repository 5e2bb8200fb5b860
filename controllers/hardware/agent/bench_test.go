package agent_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// BenchmarkInstall writes an image of 256 MiB, half of it zeros, over loopback to a sparse file. MB/s are of the disk.
func BenchmarkInstall(b *testing.B) {
	image := plainImage(256 * mib)
	for i := range image { // data that compresses, as an operating system's does
		if image[i] != 0 && i%4 != 0 {
			image[i] = byte(i >> 8)
		}
	}
	for _, format := range []string{"raw", "raw.zst", "raw.gz"} {
		b.Run(format, func(b *testing.B) {
			r := newRig(b, compressed(b, image, format), format, hardware.ConfigDrive{})
			r.change(hintOneMiB)
			b.SetBytes(int64(len(image)))
			for n := range b.N {
				r.change(func(s *netboot.Session) {
					s.Number, s.Boots, s.Step, s.State = s.Number+1, 0, hardware.StepBooting, hardware.AttemptRunning
				})
				path := filepath.Join(b.TempDir(), fmt.Sprint(n))
				disk, err := blockdev.OpenFile(path, hardware.Disk{Name: path, SizeBytes: int64(len(image))})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.run(b.Context(), disk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

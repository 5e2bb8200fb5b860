package agent_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// plainImage has data and zeros in runs of odd lengths, and no partition table.
func plainImage(size int) []byte {
	random := rand.New(rand.NewPCG(3, 4))
	image := make([]byte, size)
	for off := 0; off < size; {
		n := min(1+random.IntN(3*mib), size-off)
		if random.IntN(2) == 0 {
			for i := range n {
				image[off+i] = byte(random.Uint32())
			}
		}
		off += n
	}
	image[0] = 0xEB
	return image
}

func TestADiskFullOfOnesEqualsTheImageByteForByteAfterAnInstall(t *testing.T) {
	for _, format := range []string{"raw", "raw.gz", "raw.zst"} {
		for name, size := range map[string]int{"the disk's size": 32 * mib, "smaller": 21*mib + 512, "odd": 9*mib + 77, "under one MiB": 3000} {
			t.Run(format+" "+name, func(t *testing.T) {
				image := plainImage(size)
				r := newRig(t, compressed(t, image, format), format, hardware.ConfigDrive{})
				r.change(hintOneMiB)
				disk := newMemoryDisk(32*mib, 0xFF)
				exitAction, err := r.run(t.Context(), disk)
				if err != nil || exitAction != agent.Reboot {
					t.Fatalf("outcome %s, error %v", exitAction, err)
				}
				if !bytes.Equal(disk.data[:size], image) {
					t.Fatal("the disk does not begin with the image")
				}
				session := r.session()
				if session.Step != hardware.StepFinishing || session.State != hardware.AttemptRunning || session.Inventory == nil {
					t.Errorf("session after the install: %+v", session)
				}
				if session.DoneBytes != int64(len(r.served)) || session.TotalBytes != int64(len(r.served)) {
					t.Errorf("progress ended at %d of %d, expected %d", session.DoneBytes, session.TotalBytes, len(r.served))
				}
			})
		}
	}
}

func TestADiskNeedsTwoMiB(t *testing.T) {
	image := plainImage(mib)
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	disk := newMemoryDisk(2*mib, 0xFF)
	if _, err := r.run(t.Context(), disk); err != nil || !bytes.Equal(disk.data[:mib], image) {
		t.Errorf("a disk of 2 MiB: %v", err)
	}
	r = newRig(t, image, "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	disk = newMemoryDisk(2*mib-512, 0xFF)
	_, err := r.run(t.Context(), disk)
	checkFailed(t, r, err, hardware.ReasonNoRootDevice, disk)
}

func TestADiskOfExactlyTheMinimumSizeMatches(t *testing.T) {
	r := newRig(t, plainImage(mib), "raw", hardware.ConfigDrive{})
	r.change(func(session *netboot.Session) { session.RootDevice.MinSizeBytes = 8 * mib })
	if _, err := r.run(t.Context(), newMemoryDisk(8*mib, 0)); err != nil {
		t.Error(err)
	}
	r = newRig(t, plainImage(mib), "raw", hardware.ConfigDrive{})
	if _, err := r.run(t.Context()); err == nil || !strings.Contains(r.session().Message, "the server has no disk") {
		t.Errorf("without a disk: %v, message %q", err, r.session().Message)
	}
}

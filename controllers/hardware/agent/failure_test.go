package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// checkFailed expects the failure on both sides, and a disk that does not boot.
func checkFailed(t *testing.T, r *rig, err error, reason hardware.Reason, disk *memoryDisk) {
	t.Helper()
	var failure *agent.Failure
	if !errors.As(err, &failure) || failure.Reason != reason {
		t.Errorf("error %v, expected %s", err, reason)
	}
	session := r.session()
	if session.State != hardware.AttemptFailed || session.Reason != reason || session.Message == "" {
		t.Errorf("the session says %s %s %q, expected %s", session.State, session.Reason, session.Message, reason)
	}
	if len(disk.trace) > 0 && !bytes.Equal(disk.data[:mib], make([]byte, mib)) {
		t.Error("the disk's first MiB is not zero")
	}
}

func TestAnUnexpectedImageNeverBoots(t *testing.T) {
	image := plainImage(16 * mib)
	random := make([]byte, 4096)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for _, c := range []struct {
		name, format string
		served       func() []byte
		// pinned is true when the digest is that of the file as served.
		pinned bool
		reason hardware.Reason
	}{
		{"another image", "raw", func() []byte { out := bytes.Clone(image); out[9*mib] ^= 1; return out }, false, hardware.ReasonDigestMismatch},
		{"truncated raw", "raw", func() []byte { return image[:9*mib] }, false, hardware.ReasonDigestMismatch},
		{"truncated zst, digest of the whole", "raw.zst", func() []byte { return compressed(t, image, "raw.zst")[:2*mib] }, false, hardware.ReasonDigestMismatch},
		{"truncated zst, its own digest", "raw.zst", func() []byte { return compressed(t, image, "raw.zst")[:2*mib] }, true, hardware.ReasonImageInvalid},
		{"truncated gz", "raw.gz", func() []byte { return compressed(t, image, "raw.gz")[:2*mib] }, true, hardware.ReasonImageInvalid},
		{"damaged zst", "raw.zst", func() []byte { out := compressed(t, image, "raw.zst"); copy(out[mib:], random); return out }, true, hardware.ReasonImageInvalid},
		{"garbage behind zst", "raw.zst", func() []byte { return append(compressed(t, image, "raw.zst"), random...) }, true, hardware.ReasonImageInvalid},
		{"garbage behind gz", "raw.gz", func() []byte { return append(compressed(t, image, "raw.gz"), random...) }, true, hardware.ReasonImageInvalid},
		{"raw called gz", "raw.gz", func() []byte { return image }, true, hardware.ReasonImageInvalid},
		{"nothing", "raw", func() []byte { return nil }, true, hardware.ReasonImageInvalid},
		{"nothing compressed", "raw.zst", func() []byte { return compressed(t, nil, "raw.zst") }, true, hardware.ReasonImageInvalid},
		{"larger than the disk", "raw", func() []byte { return plainImage(33 * mib) }, true, hardware.ReasonImageInvalid},
		{"a decompression bomb", "raw.zst", func() []byte { return bytes.Repeat(compressed(t, make([]byte, 64*mib), "raw.zst"), 10000) }, true, hardware.ReasonImageInvalid},
		{"a huge window", "raw.zst", hugeWindow, true, hardware.ReasonImageInvalid},
		{"unknown format", "qcow2", func() []byte { return image }, true, hardware.ReasonImageInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.served(), c.format, hardware.ConfigDrive{})
			r.change(func(s *netboot.Session) {
				hintOneMiB(s)
				if !c.pinned {
					s.Image.Checksum = sha256Of(compressed(t, image, c.format))
				}
			})
			disk := newMemoryDisk(32*mib, 0xFF)
			exitAction, err := r.run(t.Context(), disk)
			if exitAction != agent.PowerOff {
				t.Errorf("outcome %s", exitAction)
			}
			checkFailed(t, r, err, c.reason, disk)
		})
	}
}

// hugeWindow is the header of a frame that asks for a window of 2 GiB.
func hugeWindow() []byte {
	return []byte{0x28, 0xB5, 0x2F, 0xFD, 0x00, 21 << 3, 0x01, 0x00, 0x00}
}

func TestSeveralFramesAndSha512AreOneImage(t *testing.T) {
	image := plainImage(12 * mib)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	served := encoder.EncodeAll(image[5*mib:], encoder.EncodeAll(image[:5*mib], nil))
	r := newRig(t, served, "raw.zst", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	r.change(func(s *netboot.Session) { s.Image.Checksum = sha512Of(served) })
	disk := newMemoryDisk(12*mib, 0xFF)
	if _, err := r.run(t.Context(), disk); err != nil || !bytes.Equal(disk.data, image) {
		t.Errorf("error %v", err)
	}
}

func TestAnyDiskErrorEndsAsDiskErrorAndNeverBoots(t *testing.T) {
	image := twoPartitions(16 * mib)
	disk := newMemoryDisk(24*mib, 0xFF)
	steps := len(installWithoutFault(t, image, disk).trace)
	for at := 1; at <= steps; at++ {
		disk := newMemoryDisk(24*mib, 0xFF)
		disk.failAt = at
		r := newRig(t, image, "raw", someDrive)
		r.change(hintOneMiB)
		_, err := r.run(t.Context(), disk)
		var failure *agent.Failure
		if !errors.As(err, &failure) || failure.Reason != hardware.ReasonDiskError || r.session().Reason != hardware.ReasonDiskError {
			t.Errorf("failing step %d (%s): %v", at, disk.trace[at-1], err)
		}
	}
}

// installWithoutFault installs the image with a config drive without any fault and returns the disk.
func installWithoutFault(t *testing.T, image []byte, disk *memoryDisk) *memoryDisk {
	t.Helper()
	r := newRig(t, image, "raw", someDrive)
	r.change(hintOneMiB)
	if _, err := r.run(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	return disk
}

func TestADiskWhosePowerWasCutNeverBootsUnlessItIsComplete(t *testing.T) {
	image := twoPartitions(16 * mib)
	whole := installWithoutFault(t, image, newMemoryDisk(24*mib, 0xFF))
	for at := 1; at <= len(whole.trace); at++ { // between every two writes, the last ones included
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("at step %d seed %d %s", at, seed, whole.trace[at-1]), func(t *testing.T) {
				installWithPowerCut(t, image, whole.data, at, seed)
			})
		}
	}
}

// installWithPowerCut cuts the power at the step of an installation over an older one, and checks the disk.
func installWithPowerCut(t *testing.T, image, whole []byte, at int, seed uint64) {
	old := twoPartitions(24 * mib)
	for i := range old[2*mib : 22*mib] {
		old[2*mib+i] = 0xFF
	}
	disk := newMemoryDisk(24*mib, 0)
	copy(disk.data, old)
	disk.cutAt, disk.random = at, rand.New(rand.NewPCG(seed, uint64(at)))
	r := newRig(t, image, "raw", someDrive)
	r.change(hintOneMiB)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	if _, err := r.run(ctx, disconnectingDisk{disk, cut}); err == nil {
		t.Error("the agent did not notice that its disk is gone")
	}
	switch {
	case bytes.Equal(disk.data[:mib], make([]byte, mib)):
	case bytes.Equal(disk.data, whole):
	case bytes.Equal(disk.data[:512], make([]byte, 512)) && bytes.Equal(disk.data[mib:], whole[mib:]):
		// All of a verified image but its first MiB is there, and the boot sector, which comes last, is not.
	case at <= 2 && bytes.Equal(disk.data[mib:], old[mib:]):
		// Before the first sync only the first MiB was cleared: the data of the old system is unchanged.
	default:
		t.Error("the first MiB is not zero on a disk that is neither the old one nor complete")
	}
	if at > 2 && bytes.Equal(disk.data[:mib], old[:mib]) {
		t.Error("the old first MiB is back")
	}
}

// disconnectingDisk stops the machine when the disk loses power.
type disconnectingDisk struct {
	*memoryDisk
	cut func()
}

func (d disconnectingDisk) WriteAt(p []byte, off int64) (int, error) {
	n, err := d.memoryDisk.WriteAt(p, off)
	return n, d.check(err)
}

func (d disconnectingDisk) ZeroRange(off, n int64) error {
	return d.check(d.memoryDisk.ZeroRange(off, n))
}
func (d disconnectingDisk) Sync() error { return d.check(d.memoryDisk.Sync()) }

func (d disconnectingDisk) check(err error) error {
	if errors.Is(err, errPower) {
		d.cut()
	}
	return err
}

func TestTheMessageNamesEveryDiskThatDoesNotMatch(t *testing.T) {
	r := newRig(t, plainImage(mib), "raw", hardware.ConfigDrive{})
	small, other := newMemoryDisk(4*mib, 0), newMemoryDisk(8*mib, 0)
	other.info.Name = "/dev/sdb"
	_, err := r.run(t.Context(), small, other)
	if code := protocol.CodeOf(err); code != protocol.DisksRefused || r.session().Reason != hardware.ReasonNoRootDevice || len(small.trace)+len(other.trace) > 0 {
		t.Errorf("%v; the session says %s", err, r.session().Reason)
	}
	if message := r.session().Message; !strings.Contains(message, "/dev/nvme0n1") || !strings.Contains(message, "/dev/sdb") {
		t.Errorf("message: %s", message)
	}
}

func TestAnAgentWhoseBootWasSupersededStopsWriting(t *testing.T) {
	image := plainImage(32 * mib)
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(image)))
		if _, err := w.Write(image[:16*mib]); err != nil {
			return
		}
		// The Installer saw that the power was lost, and powered the server on again: a second agent will come.
		r.change(func(s *netboot.Session) { s.Step, s.Agent = hardware.StepBooting, netboot.Agent{} })
		r.boot()
		<-q.Context().Done()
	}))
	defer slow.Close()
	r.change(hintOneMiB)
	r.change(func(s *netboot.Session) { s.Image.URL = slow.URL })
	disk := newMemoryDisk(32*mib, 0xFF)
	exitAction, err := r.run(t.Context(), disk)
	if exitAction != agent.PowerOff || protocol.CodeOf(err) != protocol.TokenSuperseded {
		t.Errorf("exit action %s, error %v", exitAction, err)
	}
	if session := r.session(); session.State != hardware.AttemptRunning || session.Boots != 2 {
		t.Errorf("the session of the second boot: %s, %d boots", session.State, session.Boots)
	}
}

func TestASecondAgentWithTheTokenOfTheBootStopsTheFirst(t *testing.T) {
	image := plainImage(32 * mib)
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	r.change(hintOneMiB)
	token, disk := "", newMemoryDisk(32*mib, 0xFF)
	var stranger error
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, stranger = agent.Run(q.Context(), r.config(token, newMemoryDisk(32*mib, 0xFF)))
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(image))
	}))
	defer slow.Close()
	r.change(func(s *netboot.Session) { s.Image.URL = slow.URL })
	token = r.boot()
	exitAction, err := agent.Run(t.Context(), r.config(token, disk))
	if exitAction != agent.PowerOff || protocol.CodeOf(err) != protocol.AttemptClosed || r.session().Reason != hardware.ReasonAnotherAgent {
		t.Errorf("the first agent: exit action %s, %v; the attempt: %s", exitAction, err, r.session().Reason)
	}
	if len(disk.trace) > 0 && !bytes.Equal(disk.data[:mib], make([]byte, mib)) {
		t.Error("the disk may boot")
	}
	if protocol.CodeOf(stranger) != protocol.AnotherAgent || r.session().Findings.AnotherAgent.Count != 1 {
		t.Errorf("the second agent: %v, findings %+v", stranger, r.session().Findings)
	}
}

// skippingClock skips pauses of a second and more: they end at once, and the time has passed. It waits for ever where the attempt's deadline is
// waited for.
type skippingClock struct {
	agent.SystemClock
	skipped *atomic.Int64
}

func (c skippingClock) Now() time.Time { return time.Now().Add(time.Duration(c.skipped.Load())) }

func (c skippingClock) Sleep(ctx context.Context, d time.Duration) error {
	switch {
	case d > 2*time.Minute:
		<-ctx.Done()
		return ctx.Err()
	case d >= time.Second:
		c.skipped.Add(int64(d))
		return nil
	}
	return c.SystemClock.Sleep(ctx, d)
}

func TestTheAgentAsksForItsConfigDriveUntilItIsWritten(t *testing.T) {
	image := twoPartitions(16 * mib)
	r := newRig(t, image, "raw", someDrive)
	r.change(hintOneMiB)
	r.store.unwritten = 45 // 20 minutes, which is longer than a boot service may be unreachable
	clock := skippingClock{skipped: &atomic.Int64{}}
	disk := newMemoryDisk(24*mib, 0xFF)
	config := r.config(r.boot(), disk)
	config.Clock = clock
	exitAction, err := agent.Run(t.Context(), config)
	if exitAction != agent.Reboot || err != nil || r.session().ConfigDriveAwaitedAt.IsZero() {
		t.Errorf("exit action %s, %v, the config drive is awaited since %s", exitAction, err, r.session().ConfigDriveAwaitedAt)
	}
	if waited := time.Duration(clock.skipped.Load()); waited < 20*time.Minute || r.store.asked != 46 {
		t.Errorf("asked %d times in %s", r.store.asked, waited)
	}
}

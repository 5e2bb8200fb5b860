package agent_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/test/require"
)

// BenchmarkInstallOnLoopDevice writes an image of 256 MiB, half of it zeros, to a block device that is full of ones, and compares with tools that
// check the digest and write everything. The ratio is their time by the agent's: above 1 the agent is faster. written is what the agent sends to the
// device by what is not zero, and MiB the memory that the agent and the image server of the test take.
func BenchmarkInstallOnLoopDevice(b *testing.B) {
	const size = 256 * mib
	losetup, zstd := require.Tool(b, "losetup", "apt-get install util-linux"), require.Tool(b, "zstd", "apt-get install zstd")
	image := plainImage(size)
	served := compressed(b, image, "raw.zst")
	dir := b.TempDir()
	backing, file := filepath.Join(dir, "backing"), filepath.Join(dir, "image.zst")
	if err := os.WriteFile(file, served, 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(backing, bytes.Repeat([]byte{0xFF}, size), 0o600); err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command(losetup, "--find", "--show", backing).CombinedOutput()
	if err != nil {
		require.Missing(b, "losetup as root", "run the tests as root on a machine with loop devices: "+string(out))
	}
	name := strings.TrimSpace(string(out))
	b.Cleanup(func() { _ = exec.Command(losetup, "--detach", name).Run() })
	var byAgent, byTools time.Duration
	var written, most int64
	for b.Loop() {
		fill := func() {
			if out, err := exec.Command("sh", "-c", "tr '\\0' '\\377' </dev/zero | dd of="+name+" bs=1M count=256 iflag=fullblock oflag=direct").CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
		fill()
		disk, err := blockdev.OpenDevice(hardware.Disk{Name: name}, 512)
		if err != nil {
			b.Fatal(err)
		}
		r := newRig(b, served, "raw.zst", hardware.ConfigDrive{})
		r.change(hintOneMiB)
		counting := &countingDisk{Disk: disk}
		debug.FreeOSMemory()
		memory, start := watchHeap(), time.Now()
		if exit, err := r.run(b.Context(), counting); err != nil || exit != agent.Reboot {
			b.Fatalf("%s, %v", exit, err)
		}
		byAgent += time.Since(start)
		most, written = max(most, memory()), max(written, counting.written.Load())
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, image) {
			b.Fatalf("the device does not have the image: %v", err)
		}
		fill()
		start = time.Now()
		if out, err := exec.Command("bash", "-c", "tee >(sha256sum >/dev/null) <"+file+" | "+zstd+" -dc | dd of="+name+" bs=1M iflag=fullblock oflag=direct conv=fsync").CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		byTools += time.Since(start)
	}
	b.ReportMetric(byTools.Seconds()/byAgent.Seconds(), "ratio")
	b.ReportMetric(float64(written)/float64(countData(image)), "written")
	b.ReportMetric(float64(most)/mib, "MiB")
}

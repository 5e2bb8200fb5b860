package vm_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
)

// TestAVirtualServerBecomesANodeAndIsErased drives a server with real firmware through its life by UEFI PXE: an image with another digest than
// promised, a power cut during the write, an installation, cloud-init, a kubelet that joins, a probe of its device, the verdict, a tenant's pod with the device, and
// the erase after its release.
func TestAVirtualServerBecomesANodeAndIsErased(t *testing.T) {
	require.Turn(t, 0)
	s := newSite(t, variant{isForNodes: true})

	s.order("wrong", "wrong-digest")
	s.await("the wrong digest is found", func(r *v1alpha1.HostRecord) bool {
		attempt := r.Status.Progress()
		return isOf(r, hardware.OpInstall) && attempt != nil && attempt.Reason == string(hardware.ReasonDigestMismatch)
	})
	s.mustNotBoot("after a wrong digest")
	s.release("wrong")
	s.awaitErased()

	s.apply(devicePlugin(), workload())
	s.order("node-1", nodeTypeOfNodes)
	s.await("the image is being written", isWriting)
	s.server.PullPlug()
	if r, err := s.record(); err != nil || !r.Status.Wanted.IsOpen() {
		t.Fatalf("the power was not cut during the write: %v %s", err, stateOf(r))
	}
	s.mustNotBoot("after a power cut")
	p := s.awaitPowerOn()
	s.awaitNode("node-1", p)
	s.checkProbe("node-1")
	s.awaitWorkload()
	p.note("pod")
	p.print()
	s.release("node-1")
	s.awaitErased()
}

// isOf reports whether the host's current attempt is of the operation.
func isOf(r *v1alpha1.HostRecord, operation hardware.Operation) bool {
	return r.Status.Wanted != nil && r.Status.Wanted.Operation == string(operation)
}

// awaitErased waits for the erase, and reads the disk from outside.
func (s *site) awaitErased() {
	s.t.Helper()
	s.await("the erase", func(r *v1alpha1.HostRecord) bool {
		return isOf(r, hardware.OpErase) && r.Status.Wanted.Outcome == v1alpha1.AttemptSucceeded && r.Spec.Machine == nil
	})
	f, err := os.Open(s.disk)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	zeros, block := make([]byte, 1<<20), make([]byte, 1<<20)
	for offset := nextData(s.t, f, 0); offset < diskSize; offset = nextData(s.t, f, offset+int64(len(block))) {
		n, err := f.ReadAt(block, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			s.t.Fatal(err)
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			s.t.Fatalf("after a full erase the disk has content in the MiB at %d", offset)
		}
	}
}

// nextData returns where the file has data next, at the offset or after it. What is between was never written or was discarded, and reads as zeros.
func nextData(t *testing.T, f *os.File, offset int64) int64 {
	t.Helper()
	next, err := unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return diskSize
	}
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// mustNotBoot fails the test when firmware would find something to boot on the disk.
func (s *site) mustNotBoot(when string) {
	s.t.Helper()
	if isBootable(s.readDisk(4096)) {
		s.t.Errorf("%s the disk has a partition table", when)
	}
}

// isBootable reports whether the beginning of a disk has the signature of a boot record or of a GUID partition table (UEFI specification, section 5).
func isBootable(beginning []byte) bool {
	return bytes.Equal(beginning[510:512], []byte{0x55, 0xaa}) || bytes.HasPrefix(beginning[512:], []byte("EFI PART"))
}

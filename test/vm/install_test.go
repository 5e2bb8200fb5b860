package vm_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// TestAVirtualServerIsInstalledAndErased drives a server with real firmware through its life by UEFI PXE: an image with another digest than
// promised, a power cut during the write, an installation, and the erase after its release.
func TestAVirtualServerIsInstalledAndErased(t *testing.T) {
	s := newSite(t)

	s.order("wrong", "wrong-digest")
	s.await("the wrong digest is found", func(r *v1alpha1.HostRecord) bool {
		attempt := r.Status.Progress()
		return isOf(r, hardware.OpInstall) && attempt != nil && attempt.Reason == string(hardware.ReasonDigestMismatch)
	})
	s.mustNotBoot("after a wrong digest")
	s.release("wrong")
	s.awaitErased()

	s.order("plain", "plain")
	s.await("the image is being written", func(r *v1alpha1.HostRecord) bool {
		attempt := r.Status.Progress()
		return isOf(r, hardware.OpInstall) && attempt != nil && attempt.DoneBytes > 1<<20
	})
	s.server.PullPlug()
	if r, err := s.record(); err != nil || !r.Status.Wanted.IsOpen() {
		t.Fatalf("the power was not cut during the write: %v %s", err, stateOf(r))
	}
	s.mustNotBoot("after a power cut")
	s.await("the installation", func(r *v1alpha1.HostRecord) bool {
		return isOf(r, hardware.OpInstall) && r.Status.Wanted.Outcome == v1alpha1.AttemptSucceeded
	})
	if !isBootable(s.readDisk(4096)) {
		t.Error("the installed disk has no partition table")
	}
	s.release("plain")
	s.awaitErased()
}

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
	for offset := int64(0); offset < diskSize; offset += int64(len(block)) {
		if _, err := io.ReadFull(f, block); err != nil {
			s.t.Fatal(err)
		}
		if !bytes.Equal(block, zeros) {
			s.t.Fatalf("after a full erase the disk has content in the MiB at %d", offset)
		}
	}
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

package host_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/rack"
)

// tenantData is what a tenant has written to a data disk.
var tenantData = bytes.Repeat([]byte("a tenant's file "), 4096)

// writeData writes the tenant's data to the start of the server's first data disk.
func writeData(t *testing.T, s *rack.Server) {
	t.Helper()
	file, err := os.OpenFile(s.DataDiskPath(1), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(tenantData, 0); err != nil {
		t.Fatal(err)
	}
}

// hasData reports whether the tenant's data is still there.
func hasData(t *testing.T, s *rack.Server) bool {
	t.Helper()
	file, err := os.Open(s.DataDiskPath(1))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got := make([]byte, len(tenantData))
	if _, err := io.ReadFull(file, got); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(got, tenantData)
}

func TestARollWritesToTheDiskOfTheInstallationBeforeAndToNoOther(t *testing.T) {
	r := newRigWithDisks(t, 1, 1)
	s := r.rack.Servers()[0]
	root, data := s.Disks()[0].SerialNumber, s.Disks()[1].SerialNumber
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	_, record := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	if in := record.Status.Installed; in == nil || in.RootDisk == nil || in.RootDisk.SerialNumber != root {
		t.Fatalf("installed = %+v", in)
	}
	if m := record.Status.Wanted.Message; !strings.Contains(m, root) || !strings.Contains(m, data) || !strings.Contains(m, "rootDeviceHints") {
		t.Errorf("the choice among two disks is not reported: %q", m)
	}

	// A roll leaves the data disk as it is.
	writeData(t, s)
	r.claim(s, "m1", 2, v1alpha1.EraseMetadata)
	isInstalled := func(attempt int64, disk string) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
		return func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			in := record.Status.Installed
			return h.Status.Provisioning.State == metal3.StateProvisioned && in != nil && in.Attempt == attempt && in.RootDisk.SerialNumber == disk
		}
	}
	r.await(s, "the second installation", isInstalled(2, root))
	if !hasData(t, s) {
		t.Fatal("a roll has written to the data disk")
	}

	// While the root disk is missing, a roll waits, and names both disks.
	s.SetFaults(rack.Faults{MissingDisk: root})
	r.claim(s, "m1", 3, v1alpha1.EraseMetadata)
	h, _ := r.await(s, "three installations have failed", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Failures == 3 && h.Status.ErrorType != ""
	})
	if m := h.Status.ErrorMessage; !strings.HasPrefix(m, "RootDiskDiffers: ") || !strings.Contains(m, root) || !strings.Contains(m, data) || !strings.Contains(m, v1alpha1.AnnotationRootDisk) {
		t.Errorf("error %q", m)
	}
	if !hasData(t, s) {
		t.Fatal("an installation without its root disk has written to the data disk")
	}

	// Another disk is written when an administrator accepts it by name, once.
	r.edit(s, func(h *metal3.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationRootDisk, data)
	})
	r.await(s, "the third installation", isInstalled(3, data))
	if hasData(t, s) {
		t.Error("the accepted disk was not written")
	}
	eventually(t, "the annotation is removed", func() bool {
		h, _, err := r.get(s)
		_, isSet := h.Annotations[v1alpha1.AnnotationRootDisk]
		return err == nil && !isSet
	})
}

func TestAnEraseWaitsForAMissingDiskUntilItIsDeclaredGone(t *testing.T) {
	r := newRigWithDisks(t, 1, 1)
	s := r.rack.Servers()[0]
	root, data := s.Disks()[0].SerialNumber, s.Disks()[1].SerialNumber
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))

	s.SetFaults(rack.Faults{MissingDisk: data})
	r.unassign(s)
	h, _ := r.await(s, "three erases have failed", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		if h.Status.Provisioning.State == metal3.StateAvailable {
			t.Fatal("available although a disk is not erased")
		}
		return record.Status.Failures == 3 && h.Status.ErrorType != ""
	})
	if m := h.Status.ErrorMessage; !strings.HasPrefix(m, "DiskMissing: ") || !strings.Contains(m, data) || strings.Contains(m, root) || !strings.Contains(m, v1alpha1.AnnotationDiskGone) {
		t.Errorf("error %q", m)
	}

	declared := metav1.Now()
	r.edit(s, func(h *metal3.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationDiskGone, " "+strings.ToLower(data))
	})
	_, record := r.await(s, "it is erased without the disk", inState(metal3.StateAvailable))
	results := map[string]v1alpha1.DiskEvidence{}
	for _, disk := range record.Status.Erased.Disks {
		results[disk.SerialNumber] = disk
	}
	if e := results[root]; e.Result != v1alpha1.DiskErased || e.SizeBytes != s.Disks()[0].SizeBytes || e.Method != v1alpha1.DiskMethodMetadata || e.Bytes <= 0 {
		t.Errorf("evidence of the root disk: %+v", e)
	}
	// The API server records times in whole seconds.
	if e := results[data]; e.Result != v1alpha1.DiskWasGone || e.Gone == nil || e.Gone.By == "" || e.Gone.At.Time.Before(declared.Add(-2*time.Second)) {
		t.Errorf("evidence of the disk that is gone: %+v", e)
	}

	// An agent that finds the disk proves that it is back, and the next erase clears it.
	s.SetFaults(rack.Faults{})
	r.claim(s, "m2", 1, v1alpha1.EraseFull)
	r.await(s, "it is provisioned again", inState(metal3.StateProvisioned))
	writeData(t, s)
	r.unassign(s)
	_, record = r.await(s, "it is erased", inState(metal3.StateAvailable))
	if hasData(t, s) || len(record.Status.Erased.Disks) != 2 || record.Status.Erased.Disks[1].Result != v1alpha1.DiskErased {
		t.Errorf("evidence %+v", record.Status.Erased.Disks)
	}
}

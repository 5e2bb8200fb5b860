package host_test

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

// boots says whether the disk begins with a protective MBR, as the image does.
func boots(t *testing.T, s *rack.Server) bool {
	t.Helper()
	f, err := os.Open(s.DiskPath())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sector := make([]byte, 512)
	if _, err := io.ReadFull(f, sector); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(sector[510:], []byte{0x55, 0xaa})
}

func TestAHostGoesThroughItsLife(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	username, password := s.Credentials()

	// Wrong credentials are a typed error, and a changed Secret heals it.
	r.credentials(s, username, "wrong")
	r.register(s, nil)
	// The controller writes the record before the host. Between the two writes the record can have the error of a later attempt.
	h, record := r.await(s, "the credentials are refused", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return h.Status.ErrorType == metal3.RegistrationError && record.Status.Error != nil && h.Status.ErrorMessage == "BMCUnauthorized: "+record.Status.Error.Message
	})
	if strings.Contains(h.Status.ErrorMessage, "wrong") || record.Status.Error.Reason != "BMCUnauthorized" ||
		h.Status.Provisioning.State != metal3.StateRegistering || h.Status.OperationalStatus != metal3.OperationalStatusError {
		t.Errorf("status = %+v, error of the record = %+v", h.Status, record.Status.Error)
	}
	r.credentials(s, username, password)
	h, record = r.await(s, "it is available", inState(metal3.StateAvailable))
	if record.Status.Error != nil {
		t.Errorf("available with the error %+v", record.Status.Error)
	}
	want := v1alpha1.GPUInventory{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 8}
	if i := record.Status.Inventory; i == nil || len(i.GPUs) != 1 || !equality.Semantic.DeepEqual(i.GPUs[0], want) {
		t.Errorf("inventory = %+v, expected the GPUs %+v", i, want)
	}
	if d := h.Status.HardwareDetails; d == nil || d.SystemVendor.Manufacturer != "Supermicro" || len(d.NIC) == 0 {
		t.Errorf("hardware = %+v", d)
	}

	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	h, record = r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	if i := record.Status.Installed; i == nil || i.MachineUID != "m1" || i.Attempt != 1 || i.Checksum != r.image.Checksum {
		t.Errorf("installed = %+v", i)
	}
	if record.Status.LastTenant != "team/research" || record.Status.Inventory.SystemUUID != s.UUID() || h.Status.Provisioning.Image.URL != r.image.URL || !boots(t, s) {
		t.Errorf("record = %+v, image %+v", record.Status, h.Status.Provisioning.Image)
	}

	generation := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	r.await(s, "power-off is confirmed for the change that asked for it", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		p := record.Status.Power
		return p.State == string(hardware.PowerOff) && p.ObservedGeneration >= generation
	})
	if s.State().Power != hardware.PowerOff {
		t.Errorf("the server's power is %s", s.State().Power)
	}

	r.unassign(s)
	_, record = r.await(s, "it is back in the pool", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseMetadata || e.Tenant != "team/research" || record.Status.Installed != nil || boots(t, s) {
		t.Fatalf("record = %+v, erased %+v", record.Status, e)
	}
	if e := record.Status.Erased; e.Channel != "Network" || e.TPM != "None" || record.Status.TPM == nil || record.Status.TPM.Proof != "None" {
		t.Errorf("a server without a TPM is known by %+v, and its evidence came through %s with %q", record.Status.TPM, e.Channel, e.TPM)
	}

	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = nil })
	if err := server.Client.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	eventually(t, "host and record are gone", func() bool {
		_, _, err := r.get(s)
		left := server.Client.Get(t.Context(), client.ObjectKeyFromObject(record), record)
		// Nothing collects garbage by owner here at once; the finalizer is what we put there.
		return apierrors.IsNotFound(err) && (apierrors.IsNotFound(left) || len(record.Finalizers) == 0)
	})
}

func TestAHostWhoseEraseFailsIsNeverAvailable(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseFull)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))

	s.SetFaults(rack.Faults{DiskErrorAt: 1 << 20})
	r.unassign(s)
	h, record := r.await(s, "three erases have failed", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		if h.Status.Provisioning.State == metal3.StateAvailable {
			t.Fatal("available after a failed erase")
		}
		return record.Status.Failures == 3 && h.Status.ErrorType != ""
	})
	if h.Status.ErrorType != metal3.ProvisioningError || !strings.HasPrefix(h.Status.ErrorMessage, "DiskError: ") || record.Status.Wanted.Reason != "DiskError" || record.Status.Error.Reason != "DiskError" {
		t.Errorf("status = %+v, attempt %+v", h.Status, record.Status.Wanted)
	}
	number := record.Status.Wanted.Number

	s.SetFaults(rack.Faults{})
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationRetry: "disk replaced"}
	})
	_, record = r.await(s, "it is erased after the retry", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseFull || e.Attempt != number+1 {
		t.Errorf("erased = %+v after attempt %d", e, number)
	}
}

func TestAFailedInstallationKeepsItsReasonUntilTheMachineAsksAgain(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	s.SetFaults(rack.Faults{CorruptImage: true})
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	h, _ := r.await(s, "the installation has failed", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
		return h.Status.ErrorType == metal3.ProvisioningError
	})
	if !strings.HasPrefix(h.Status.ErrorMessage, "DigestMismatch: attempt 2 failed") || h.Status.Provisioning.State != metal3.StateProvisioning || boots(t, s) {
		t.Errorf("status = %+v", h.Status)
	}
	s.SetFaults(rack.Faults{})
	r.claim(s, "m1", 2, v1alpha1.EraseMetadata)
	_, record := r.await(s, "another attempt provisions it", inState(metal3.StateProvisioned))
	if i := record.Status.Installed; i == nil || i.Attempt != 2 {
		t.Errorf("installed = %+v", i)
	}
}

func TestAnotherProcessGoesOnWhereOneWasKilled(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	for uid, state := range []hardware.Step{hardware.StepPoweringOff, hardware.StepBooting, hardware.StepWriting} {
		r.claim(s, "m1", int64(uid)+1, v1alpha1.EraseMetadata)
		r.await(s, "the installation has come far enough", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			w, a := record.Status.Wanted, record.Status.Progress()
			return w.MachineAttempt == int64(uid)+1 && (a == nil && state == hardware.StepPoweringOff || a != nil && a.StepAt != nil)
		})
		r.stop()
		r.start()
		_, record := r.await(s, "another process finishes it", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			i := record.Status.Installed
			return inState(metal3.StateProvisioned)(h, record) && i != nil && i.Attempt == int64(uid)+1
		})
		if a := record.Status.Wanted; a.MachineAttempt != int64(uid)+1 {
			t.Errorf("attempt = %+v", a)
		}
	}
}

func TestPausedAndDetachedHostsAreNotTouched(t *testing.T) {
	r := newRig(t, 3)
	paused, detached, other := r.rack.Servers()[0], r.rack.Servers()[1], r.rack.Servers()[2]
	r.register(paused, func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{metal3.PausedAnnotation: ""} })
	r.available(detached)
	r.edit(detached, func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{metal3.DetachedAnnotation: ""} })
	r.await(detached, "it says that it is detached", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
		return h.Status.OperationalStatus == metal3.OperationalStatusDetached
	})
	_, before, _ := r.get(detached)
	r.claim(detached, "m1", 1, v1alpha1.EraseMetadata)
	// The third host shows that there was time enough.
	r.available(other)
	r.claim(other, "m2", 1, v1alpha1.EraseMetadata)
	r.await(other, "it is provisioned", inState(metal3.StateProvisioned))

	h, record, err := r.get(paused)
	if err != nil || len(h.Finalizers) != 0 || h.Status.Provisioning.State != "" || record.UID != "" {
		t.Errorf("paused: %v, finalizers %v, status %+v, record %+v", err, h.Finalizers, h.Status, record)
	}
	h, record, err = r.get(detached)
	if err != nil || h.Status.Provisioning.State != metal3.StateAvailable || record.Status.Wanted.Number != before.Status.Wanted.Number || detached.State().Power != hardware.PowerOff {
		t.Errorf("detached: %v, status %+v, attempt %+v", err, h.Status, record.Status.Wanted)
	}
	r.edit(detached, func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.DetachedAnnotation) })
	r.await(detached, "it is served again", inState(metal3.StateProvisioned))
}

func TestANamespaceOfTheBaremetalOperatorIsRefused(t *testing.T) {
	r := newRig(t, 2)
	theirs, ours := r.rack.Servers()[0], r.rack.Servers()[1]
	r.register(theirs, func(h *metal3.BareMetalHost) { h.Finalizers = []string{metal3.BareMetalHostFinalizer} })
	t.Cleanup(func() { r.edit(theirs, func(h *metal3.BareMetalHost) { h.Finalizers = nil }) })
	eventually(t, "an event says why", func() bool {
		return r.told(ours.Name(), "ForeignController") || r.told(theirs.Name(), "ForeignController")
	})
	r.register(ours, nil)
	eventually(t, "the other host is refused as well", func() bool { return r.told(ours.Name(), "ForeignController") })
	for _, s := range r.rack.Servers() {
		h, record, err := r.get(s)
		if err != nil || slices.Contains(h.Finalizers, v1alpha1.HostFinalizer) || record.UID != "" || h.Status.Provisioning.State != "" {
			t.Errorf("%s was touched: %v, %+v", s.Name(), err, h)
		}
	}
}

func (r *rig) told(host, reason string) bool {
	var list eventsv1.EventList
	if err := server.Client.List(r.t.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == host && e.Reason == reason })
}

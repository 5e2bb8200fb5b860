package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

// hourly makes every wait of the controller last an hour, so that only a watch event starts a reconcile of a host in which nothing happens.
func (r *rig) hourly() {
	r.stop()
	r.timeouts.RetryBase, r.timeouts.IdleInterval = time.Hour, time.Hour
	r.elsewhere = server.Namespace(r.t)
	r.start()
}

// duplicate creates a host of another name, in that namespace, that is the same server by its BMC address.
func (r *rig) duplicate(s *rack.Server, namespace string) *metal3.BareMetalHost {
	r.t.Helper()
	h := &metal3.BareMetalHost{}
	h.Namespace, h.Name = namespace, "copy-of-"+s.Name()
	// Another scheme and a final slash.
	h.Spec.BMC = metal3.BMCDetails{Address: "redfish-virtualmedia+" + s.BMCAddress() + s.SystemPath() + "/", CredentialsName: s.Name() + "-bmc"}
	if err := server.Client.Create(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// duplicateBySerial registers a server a second time with another BMC address, and the serial number that inspection found.
func (r *rig) duplicateBySerial(s *rack.Server, namespace string) *metal3.BareMetalHost {
	r.t.Helper()
	_, record, err := r.get(s)
	if err != nil {
		r.t.Fatal(err)
	}
	h := &metal3.BareMetalHost{}
	h.Namespace, h.Name = namespace, "copy-of-"+s.Name()
	h.Spec.BMC = metal3.BMCDetails{Address: "redfish://192.0.2.8", CredentialsName: s.Name() + "-bmc"}
	if err := server.Client.Create(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
	in := record.Status.Inventory
	h.Status.OperationalStatus = metal3.OperationalStatusOK
	h.Status.HardwareDetails = &metal3.HardwareDetails{SystemVendor: metal3.HardwareSystemVendor{Manufacturer: in.Manufacturer, ProductName: in.Model, SerialNumber: in.SerialNumber}}
	if err := server.Client.Status().Update(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// isSameServer reports whether the host has the error that names the other one.
func isSameServer(other *metal3.BareMetalHost) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
	return func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Error != nil && record.Status.Error.Reason == v1alpha1.ReasonSameServer && h.Status.ErrorMessage == "SameServer: "+record.Status.Error.Message &&
			strings.Contains(h.Status.ErrorMessage, "BareMetalHost "+other.Namespace+"/"+other.Name+" has the same ")
	}
}

func (r *rig) removeDuplicate(h *metal3.BareMetalHost) {
	r.t.Helper()
	if err := server.Client.Delete(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the duplicate is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(context.Background(), client.ObjectKeyFromObject(h), &metal3.BareMetalHost{}))
	})
}

func TestANodeGoesOnWhileAnotherHostIsItsServer(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	r.hourly()

	copied := r.duplicate(s, r.namespace)
	h, _ := r.await(s, "it reports the duplicate", isSameServer(copied))
	if h.Status.Provisioning.State != metal3.StateProvisioned || h.Status.ErrorType != metal3.ProvisionedRegistrationError {
		t.Errorf("status %+v", h.Status)
	}
	second := &metal3.BareMetalHost{}
	eventually(t, "the duplicate reports it too", func() bool {
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(copied), second) == nil && strings.Contains(second.Status.ErrorMessage, "BareMetalHost "+r.namespace+"/"+s.Name())
	})
	if second.Status.Provisioning.State != metal3.StateRegistering {
		t.Errorf("the duplicate is %s", second.Status.Provisioning.State)
	}
	eventually(t, "the record of the duplicate says that the disks are not clean", func() bool {
		var record v1alpha1.HostRecord
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(copied), &record) == nil && record.Status.LastTenant != ""
	})
	// Neither a power-off nor an erase reaches the server.
	generation := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	_, record := r.await(s, "the power-off is not confirmed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Power.ObservedGeneration >= generation
	})
	if record.Status.Power.State != string(hardware.PowerUnknown) || s.State().Power != hardware.PowerOn {
		t.Errorf("power %+v, of the server %s", record.Status.Power, s.State().Power)
	}
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = true })

	r.removeDuplicate(copied)
	r.await(s, "it is well again", inState(metal3.StateProvisioned))
	if s.State().Power != hardware.PowerOn {
		t.Errorf("the deletion of the duplicate powered the server %s", s.State().Power)
	}
	var told eventsv1.EventList
	if err := server.Client.List(t.Context(), &told, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, e := range told.Items {
		if e.Regarding.Name == s.Name() && e.Reason == v1alpha1.ReasonSameServer {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events about one conflict", events)
	}
}

// TestAConflictEndsAtOnce covers each way to end it. The controller looks again only after an hour by itself.
func TestAConflictEndsAtOnce(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.hourly()
	for _, c := range []struct {
		name string
		end  func(copied *metal3.BareMetalHost)
	}{
		{"the other host is deleted", func(*metal3.BareMetalHost) {}},
		{"the address of the other host is corrected", func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "redfish://192.0.2.7" }},
		{"the annotation of the other host", func(h *metal3.BareMetalHost) {
			h.Annotations = map[string]string{v1alpha1.AnnotationNotSameServer: r.namespace + "/" + s.Name()}
		}},
		{"the annotation of this host", nil},
	} {
		duplicate := r.duplicate
		if strings.HasPrefix(c.name, "the annotation") {
			duplicate = r.duplicateBySerial // the annotation does not count for hosts with the same BMC
		}
		copied := duplicate(s, r.elsewhere)
		r.await(s, "it reports the duplicate", isSameServer(copied))
		switch {
		case c.end == nil:
			r.edit(s, func(h *metal3.BareMetalHost) {
				h.Annotations = map[string]string{v1alpha1.AnnotationNotSameServer: r.elsewhere + "/" + copied.Name}
			})
		default:
			before := copied.DeepCopy()
			if c.end(copied); c.name == "the other host is deleted" {
				r.removeDuplicate(copied)
			} else if err := server.Client.Patch(t.Context(), copied, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		r.await(s, c.name, inState(metal3.StateAvailable))
		if err := client.IgnoreNotFound(server.Client.Delete(t.Context(), copied)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerThatIsKnownByItsSerialNumberDoesNotBecomeAvailableTwice(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.hourly()
	// The BMC's DNS name: nobody can tell that it is the same address before the server is inspected.
	alias := &metal3.BareMetalHost{ObjectMeta: r.meta("alias"), Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{
		Address: "redfish+" + strings.Replace(s.BMCAddress(), "127.0.0.1", "localhost", 1) + s.SystemPath(), CredentialsName: s.Name() + "-bmc", DisableCertificateVerification: true}}}
	if err := server.Client.Create(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both report it", func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(alias), alias); err != nil {
			t.Fatal(err)
		}
		if alias.Status.Provisioning.State == metal3.StateAvailable {
			t.Fatal("the second host of the server is available")
		}
		h, _, err := r.get(s)
		return err == nil && strings.Contains(alias.Status.ErrorMessage, s.Name()+" has the same serial number") && strings.Contains(h.Status.ErrorMessage, "alias has the same serial number")
	})
	r.removeDuplicate(alias)
	r.await(s, "it is well again", inState(metal3.StateAvailable))
}

// TestABootMACAddressThatTwoHostsHaveIsReportedBeforeThePowerOn has addresses that software has assigned, which do not make two hosts one server.
func TestABootMACAddressThatTwoHostsHaveIsReportedBeforeThePowerOn(t *testing.T) {
	r := newRig(t, 2)
	s, other := r.rack.Servers()[0], r.rack.Servers()[1]
	r.available(s)
	r.credentials(other, first(other.Credentials()), second(other.Credentials()))
	r.register(other, func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = s.BootMAC() })
	r.await(other, "it is available", inState(metal3.StateAvailable))
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	_, record := r.await(s, "the conflict is reported", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Error != nil && h.Status.ErrorType == metal3.ProvisioningError
	})
	if e := record.Status.Error; e.Reason != string(hardware.ReasonBootMACConflict) || !strings.Contains(e.Message, s.Name()) || !strings.Contains(e.Message, other.Name()) {
		t.Errorf("error %+v", e)
	}
	if s.State().Boots != 0 {
		t.Errorf("the server has booted %d times", s.State().Boots)
	}
	r.edit(other, func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = other.BootMAC() })
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
}

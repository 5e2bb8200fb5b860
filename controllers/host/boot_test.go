package host_test

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// setBootAddress writes what the controller of NodeProviders has found at the address that servers boot from.
func (r *rig) setBootAddress(status metav1.ConditionStatus, reason string) {
	r.t.Helper()
	provider := &v1alpha1.NodeProvider{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: r.namespace}, provider); err != nil {
		r.t.Fatal(err)
	}
	meta.SetStatusCondition(&provider.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBootServiceReachable, Status: status, Reason: reason, Message: "seen: another service"})
	if err := server.Client.Status().Update(r.t.Context(), provider); err != nil {
		r.t.Fatal(err)
	}
}

func isHeldForBootAddress(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
	e := record.Status.Error
	return e != nil && e.Reason == v1alpha1.ReasonBootAddressWrong && strings.Contains(h.Status.ErrorMessage, "another service") && !record.Status.Wanted.IsOpen()
}

func TestNoServerIsPoweredOnForAWrongBootAddress(t *testing.T) {
	r := newRig(t, 1)
	r.stop()
	// What brings a host back is the change of the condition alone.
	r.timeouts.IdleInterval = time.Hour
	r.start()
	s := r.rack.Servers()[0]
	wrong := func() { r.setBootAddress(metav1.ConditionFalse, v1alpha1.ReasonBootAddressWrong) }
	corrected := func() { r.setBootAddress(metav1.ConditionTrue, v1alpha1.ReasonBootServiceAnswers) }
	wrong()
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.register(s, nil)
	r.await(s, "its inspection waits", isHeldForBootAddress)
	if s.State().Power == hardware.PowerOn {
		t.Error("it was powered on to be inspected")
	}
	corrected()
	r.await(s, "it is available", inState(metal3.StateAvailable))
	r.claim(s, "m1", 1, v1alpha1.EraseFull)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	wrong()
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	r.unassign(s)
	h, record := r.await(s, "its erase waits", isHeldForBootAddress)
	if h.Status.Provisioning.State != metal3.StateDeprovisioning || s.State().Power == hardware.PowerOn || record.Status.Erased != nil || record.Status.LastTenant != "team/research" {
		t.Errorf("state %s, power %s, proof %+v, tenant %q", h.Status.Provisioning.State, s.State().Power, record.Status.Erased, record.Status.LastTenant)
	}
	corrected()
	if _, record = r.await(s, "it is available", inState(metal3.StateAvailable)); record.Status.Erased == nil || record.Status.Erased.Mode != v1alpha1.EraseFull {
		t.Errorf("it was not erased: %+v", record.Status.Erased)
	}
}

func TestNoServerIsPoweredOnForANetworkThatCannotWork(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.register(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationBootIPAddress: "10.99.0.1"}
	})
	r.await(s, "its inspection waits", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		e := record.Status.Error
		return e != nil && e.Reason == v1alpha1.ReasonBootNetworkInvalid && strings.Contains(h.Status.ErrorMessage, "netboot.network.cidr") && !record.Status.Wanted.IsOpen()
	})
	if s.State().Power == hardware.PowerOn {
		t.Error("it was powered on to be inspected")
	}
	provider := &v1alpha1.NodeProvider{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: r.namespace}, provider); err != nil {
		t.Fatal(err)
	}
	provider.Spec.Redfish.Netboot.Network = &v1alpha1.NetbootNetworkSpec{CIDR: "10.99.0.254/24"}
	if err := server.Client.Update(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	r.await(s, "it is available", inState(metal3.StateAvailable))
}

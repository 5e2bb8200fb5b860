package host_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// blackHole is a BMC that accepts connections and never answers. It sends on accepted for each connection, and keeps all of them.
func blackHole(t *testing.T, accepted chan<- struct{}) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
			accepted <- struct{}{}
		}
	}()
	return listener.Addr().String()
}

// TestAHundredSilentBMCsDelayNoFence measures order: none of the calls to the silent BMCs has returned when the power-off of another host is
// confirmed, because their time-out is longer than the test.
func TestAHundredSilentBMCsDelayNoFence(t *testing.T) {
	const silent = 100
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	r.stop()
	r.bmcTimeout = time.Hour
	accepted := make(chan struct{}, 10*silent)
	server.Create(t, &corev1.Secret{ObjectMeta: r.meta("silent"), StringData: map[string]string{"username": "admin", "password": "secret"}})
	for i := range silent {
		server.Create(t, &metal3.BareMetalHost{ObjectMeta: r.meta(fmt.Sprintf("silent-%03d", i)), Spec: metal3.BareMetalHostSpec{
			BootMACAddress: fmt.Sprintf("0c:42:a1:ff:00:%02x", i),
			BMC:            metal3.BMCDetails{Address: "redfish+https://" + blackHole(t, accepted) + "/redfish/v1/Systems/1", CredentialsName: "silent"},
		}})
	}
	r.start()
	for range 16 { // a quarter of the workers
		<-accepted
	}
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	h, _ := r.await(s, "it is off", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Power.State == string(hardware.PowerOff) && record.Status.Power.ObservedGeneration == h.Generation
	})
	if h.Status.ErrorType != "" || s.State().Power != hardware.PowerOff {
		t.Errorf("power %s, error %s", s.State().Power, h.Status.ErrorMessage)
	}
	r.claim(s, "m1", 2, v1alpha1.EraseMetadata)
	r.await(s, "it is installed again", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return inState(metal3.StateProvisioned)(h, record) && record.Status.Installed != nil && record.Status.Installed.Attempt == 2
	})
	if more := len(accepted); more > 0 {
		t.Errorf("%d silent BMCs are called beside the 16 that block their part of the workers", more)
	}
}

package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// TestAServerThatSpeaksIPMIAloneGoesThroughItsLife has Ironic's hardware type ipmi and a BMC that speaks nothing else.
func TestAServerThatSpeaksIPMIAloneGoesThroughItsLife(t *testing.T) {
	require.Deep(t)
	bmc := ironicserver.StartBMC(t, "root", "bmc-password")
	running := ironicserver.Start(t, ironicserver.Options{HardwareType: "ipmi"})
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { _, _ = w.Write([]byte(q.URL.Path)) }))
	t.Cleanup(files.Close)
	r := newRigWith(t, 1, 0, func(r *rig) {
		r.ironic = &v1alpha1.IronicProvider{Endpoint: running.Endpoint, DeployInterface: "direct", DeployKernel: files.URL + "/kernel", DeployRamdisk: files.URL + "/ramdisk"}
		r.gracefulOff = time.Nanosecond // the BMC has no operating system that it could ask to stop
	})
	s := newIronicServer("node-1")
	s.address = bmc.Address
	agent := ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
	r.registerIronic(s)
	_, record := r.await(s, "it is available", inState(metal3.StateAvailable))
	if i := record.Status.Inventory; i == nil || len(i.NICs) != 1 || i.NICs[0].MAC != s.bootMAC() {
		t.Errorf("the inventory is %+v, expected what the node and its port say", i)
	}
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	servers := []ironicServer{s}
	r.awaitAll(servers, metal3.StateProvisioned)
	if !bmc.IsOn() || !strings.Contains(strings.Join(bmc.Changes(), ", "), "boot pxe") {
		t.Errorf("the server is on: %t; the BMC was told %v", bmc.IsOn(), bmc.Changes())
	}
	generation := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	r.await(s, "the power-off is confirmed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		p := record.Status.Power
		return p.State == string(hardware.PowerOff) && p.ObservedGeneration >= generation
	})
	if bmc.IsOn() {
		t.Error("the power-off is confirmed, and the server is on")
	}
	r.unassignNamed(s)
	for _, record := range r.awaitAll(servers, metal3.StateAvailable) {
		if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseMetadata {
			t.Errorf("erased %+v", e)
		}
	}
	if steps, _ := agent.Done(); strings.Join(steps, " ") != "write_image erase_devices_metadata" || bmc.IsOn() {
		t.Errorf("the agent did %v; the server is on: %t", steps, bmc.IsOn())
	}
}

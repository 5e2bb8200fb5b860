package host_test

import (
	"fmt"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
)

// ironicServer is a server that only a node of Ironic stands for, with the number of its MAC address.
type ironicServer struct {
	name   string
	number int
}

// Name implements named.
func (s ironicServer) Name() string { return s.name }

func (s ironicServer) bootMAC() string {
	return fmt.Sprintf("52:54:00:01:%02x:%02x", s.number>>8, s.number&0xff)
}

// newIronicRig makes a rig whose NodeProvider is that Ironic.
func newIronicRig(t *testing.T, running *ironicserver.Server, deployInterface string) *rig {
	t.Helper()
	return newRigWith(t, 1, 0, func(r *rig) {
		r.ironic = &v1alpha1.IronicProvider{Endpoint: running.Endpoint, HardwareType: "fake-hardware", DeployInterface: deployInterface}
	})
}

// registerIronic creates the BareMetalHost and its Secret.
func (r *rig) registerIronic(s ironicServer) {
	r.t.Helper()
	server.Create(r.t,
		&corev1.Secret{ObjectMeta: r.meta(s.name + "-bmc"), StringData: map[string]string{"username": "root", "password": "bmc-password"}},
		&metal3.BareMetalHost{ObjectMeta: r.meta(s.name), Spec: metal3.BareMetalHostSpec{
			BootMACAddress: s.bootMAC(), BMC: metal3.BMCDetails{Address: "ipmi://192.0.2.1", CredentialsName: s.name + "-bmc"},
		}})
}

func TestAHostGoesThroughItsLifeByIronic(t *testing.T) {
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "direct")
	s := ironicServer{"node-1", 1}
	agent := ironicserver.StartAgent(t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{})
	r.registerIronic(s)
	r.await(s, "it is available", inState(metal3.StateAvailable))

	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	_, record := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	if i := record.Status.Installed; i == nil || i.MachineUID != "m1" || i.Checksum != r.image.Checksum {
		t.Errorf("installed = %+v", i)
	}
	if record.Status.Attempt != nil || record.Status.Wanted.ConfigDriveAwaitedAt == nil {
		t.Errorf("attempt %+v, wanted %+v: Ironic has the progress", record.Status.Attempt, record.Status.Wanted)
	}
	if steps, drive := agent.Done(); len(steps) != 1 || steps[0] != "write_image" || drive == "" {
		t.Errorf("the agent did %v with a config drive of %d characters", steps, len(drive))
	}

	generation := r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false }).Generation
	r.await(s, "the power-off is confirmed", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		p := record.Status.Power
		return p.State == string(hardware.PowerOff) && p.ObservedGeneration >= generation
	})
	r.unassignNamed(s)
	_, record = r.await(s, "it is back in the pool", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseMetadata || record.Status.Installed != nil {
		t.Errorf("erased %+v, installed %+v", e, record.Status.Installed)
	}
	if steps, _ := agent.Done(); strings.Join(steps, " ") != "write_image erase_devices_metadata" {
		t.Errorf("the agent did %v", steps)
	}
}

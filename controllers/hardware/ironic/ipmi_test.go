package ironic_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// TestAServerThatSpeaksIPMIAlone erases the disks of a server by Ironic's agent, which boots over the network: power and boot device are set by IPMI.
func TestAServerThatSpeaksIPMIAlone(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	bmc := server.StartBMC(t, "root", "bmc-password")
	running := server.Start(t, server.Options{HardwareType: "ipmi"})
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) }))
	t.Cleanup(files.Close)
	f := newFixture(t, ironic.Options{
		Endpoint: running.Endpoint, DeployInterface: "direct", DeployKernel: files.URL + "/kernel", DeployRamdisk: files.URL + "/ramdisk",
	})
	f.options.HardwareType = "" // by the scheme of the address
	f.restart()
	f.host.BMC = hardware.Endpoint{Address: bmc.Address, Username: "root", Password: "bmc-password"}
	agent := server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{})

	f.expectSucceeded(1, f.eraseWith(hardware.EraseMetadata))
	if steps, _ := agent.Done(); !slices.Equal(steps, []string{"erase_devices_metadata"}) {
		t.Errorf("the agent did %v", steps)
	}
	changes := bmc.Changes()
	if boot, on := slices.Index(changes, "boot pxe"), slices.Index(changes, "power 1"); boot < 0 || on < boot {
		t.Errorf("expected the boot device pxe and then the power on, the BMC was told %v", changes)
	}
	if bmc.IsOn() {
		t.Errorf("the server is on after the erase; the BMC was told %v", changes)
	}

	for _, power := range []hardware.PowerState{hardware.PowerOn, hardware.PowerOff} {
		change := hardware.PowerChange{Desired: power, Since: time.Now()}
		f.repeat(func() error {
			return f.installer.SetPower(t.Context(), f.host, change)
		}, func(seen hardware.Observation) bool { return seen.Power == power })
		if bmc.IsOn() != (power == hardware.PowerOn) {
			t.Errorf("asked for %s, the BMC's power is %v", power, bmc.IsOn())
		}
	}
}

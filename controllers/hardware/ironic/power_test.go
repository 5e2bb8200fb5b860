package ironic_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// powerSync is the seconds between two looks of Ironic at the power, and never is more than any test lasts.
const powerSync, never = 2, 24 * 60 * 60

// button is a server that people power on and off without Ironic.
type button struct {
	*fixture
	bmc *server.BMC
}

func TestThePowerIsThatOfTheServerAndNotWhatIronicRemembers(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	bmc := server.StartBMC(t, "root", "bmc-password")
	running := server.Start(t, server.Options{HardwareType: "ipmi", PowerSync: never})
	b := &button{newFixture(t, ironic.Options{Endpoint: running.Endpoint, HardwareType: "ipmi"}), bmc}
	b.host.BMC = hardware.Endpoint{Address: bmc.Address, Username: "root", Password: "bmc-password"}
	b.expectPower(hardware.PowerOff)
	b.until("unlocked", func() bool { return b.stored().Reservation == "" })
	b.ask(http.MethodPut, "/states/provision", `{"target": "manage"}`)
	b.until("manageable", func() bool { return b.stored().State == "manageable" })

	t.Run("a power-off is confirmed by the BMC, also where Ironic remembers that the server is off", func(*testing.T) {
		bmc.Press()
		b.turn(hardware.PowerOff)
		b.restart() // a process that starts again has asked nobody
		bmc.Press()
		b.turn(hardware.PowerOff)
	})
	t.Run("a server that is off is asked nevertheless, once for each change", func(*testing.T) {
		asked := bmc.Reads()
		change := b.turn(hardware.PowerOff)
		if bmc.Reads() == asked {
			t.Error("the power-off is confirmed, and nobody has asked the BMC since it was wanted")
		}
		b.until("unlocked", func() bool { return b.stored().Reservation == "" })
		asked = bmc.Reads()
		for range 5 {
			b.turnFor(change)
		}
		if again := bmc.Reads() - asked; again != 0 {
			t.Errorf("the BMC was asked %d times for a change that it had confirmed", again)
		}
	})
	t.Run("a power-on is confirmed by the BMC", func(*testing.T) {
		b.turn(hardware.PowerOn)
		bmc.Press()
		b.turn(hardware.PowerOn)
	})

	running.Kill()
	running.RunWith(func(options *server.Options) { options.PowerSync = powerSync })
	t.Run("Ironic undoes what people did with the power", func(*testing.T) {
		bmc.Press()
		b.until("on again", func() bool { return bmc.IsOn() && b.observe().Power == hardware.PowerOn })
		b.turn(hardware.PowerOff)
		bmc.Press()
		b.until("off again", func() bool { return !bmc.IsOn() && b.observe().Power == hardware.PowerOff })
	})

	running.Kill()
	running.RunWith(func(options *server.Options) { options.AdoptsPower = true })
	t.Run("Ironic takes over what people did with the power", func(*testing.T) {
		bmc.Press()
		b.until("seen on", func() bool { return b.observe().Power == hardware.PowerOn })
		bmc.Press()
		b.until("seen off", func() bool { return b.observe().Power == hardware.PowerOff })
		if bmc.IsOn() {
			t.Error("the server is on")
		}
	})
}

// turn has the power changed as somebody does who wants it from now on.
func (b *button) turn(to hardware.PowerState) hardware.PowerChange {
	b.Helper()
	change := hardware.PowerChange{Desired: to, Since: time.Now()}
	b.turnFor(change)
	return change
}

// turnFor repeats the change until it is confirmed. At that moment the server must have the power.
func (b *button) turnFor(change hardware.PowerChange) {
	b.Helper()
	b.repeat(func() error {
		return b.installer.SetPower(b.Context(), b.host, change)
	}, func(seen hardware.Observation) bool { return seen.Power == change.Desired })
	if b.bmc.IsOn() != (change.Desired == hardware.PowerOn) {
		b.Errorf("power %s is confirmed, and the server does not have it; the BMC was told %v", change.Desired, b.bmc.Changes())
	}
}

// until waits until the condition holds.
func (f *fixture) until(what string, holds func() bool) {
	f.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for begun := time.Now(); !holds(); <-ticker.C {
		if time.Since(begun) > patience {
			f.Fatalf("%s: not within %s: %+v", what, patience, f.stored())
		}
	}
}

// name returns the name of the host's node in Ironic.
func (f *fixture) name() string { return f.host.Namespace + "~" + f.host.Name }

// stored reads the host's node past the Installer. It is empty while Ironic does not answer.
func (f *fixture) stored() (n struct {
	known
	Fault       string
	LastError   string `json:"last_error"`
	Maintenance bool
	DeployStep  struct{ Step string } `json:"deploy_step"`
	CleanStep   struct{ Step string } `json:"clean_step"`
}) {
	f.Helper()
	status, answer, err := server.Ask(f.Context(), f.options.Endpoint, http.MethodGet, "/v1/nodes/"+f.name(), "")
	if err != nil || status != http.StatusOK {
		return n
	}
	if err := json.Unmarshal(answer, &n); err != nil {
		f.Fatal(err)
	}
	return n
}

package ironic_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// TestAgainstARealIronic runs all cases at once, on the nodes of one Ironic.
func TestAgainstARealIronic(t *testing.T) {
	t.Parallel()
	runCases(t, server.Start(t, server.Options{}))
}

// TestAgainstIronic29 does the same with the Ironic of Debian 13. What it answers to a change of a node comes from its conductor over RPC.
func TestAgainstIronic29(t *testing.T) {
	t.Parallel()
	require.Alone(t)
	root, err := filepath.Abs("../../../bin/ironic-29")
	if err == nil {
		_, err = os.Stat(root)
	}
	if err != nil {
		require.Missing(t, "bin/ironic-29", "make ironic-29")
	}
	runCases(t, server.Start(t, server.Options{Root: root}))
}

func runCases(t *testing.T, running *server.Server) {
	// The cases end before Ironic does.
	t.Run("cases", func(t *testing.T) {
		for name, test := range lifeCases {
			t.Run(name, func(t *testing.T) {
				require.OneOf(t, 4)
				t.Parallel()
				test(newFixture(t, ironic.Options{Endpoint: running.Endpoint, DeployInterface: "fake"}))
			})
		}
		for name, test := range agentCases {
			t.Run(name, func(t *testing.T) {
				require.OneOf(t, 4)
				t.Parallel()
				f := newFixture(t, ironic.Options{Endpoint: running.Endpoint, DeployInterface: "direct"})
				f.serveImage()
				test(f, server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{}))
			})
		}
	})
}

// lifeCases run against Ironic's deploy interface fake.
var lifeCases = map[string]func(*fixture){
	"registered, inspected, installed, rolled, released, and installed for the next": func(f *fixture) {
		if seen := f.observe(); seen.Attempt != nil || seen.Power != hardware.PowerUnknown {
			f.Fatalf("a host that Ironic does not know: %+v", seen)
		}
		f.expectSucceeded(1, f.inspect)
		f.expectSucceeded(2, f.install)
		f.expectPower(hardware.PowerOn)
		f.expectSucceeded(3, f.install)
		f.expectPower(hardware.PowerOn)
		f.expectSucceeded(4, f.eraseWith(hardware.EraseNone))
		if seen := f.observe(); seen.Power != hardware.PowerOff {
			f.Fatalf("the power after the release is %s", seen.Power)
		}
		f.expectSucceeded(5, f.install)
	},
	"a clean step that the node does not have is a failed erase, and the next attempt is not": func(f *fixture) {
		f.expectFailed(1, f.eraseWith(hardware.EraseFull), hardware.ReasonInstallerFailed)
		f.expectSucceeded(2, f.install)
	},
	"people put the node in maintenance, and what they say is told": func(f *fixture) {
		f.expectSucceeded(1, f.inspect)
		if seen := f.observe().Inventory; seen == nil || len(seen.NICs) != 1 || seen.NICs[0].MAC != f.host.BootMAC {
			f.Errorf("the inventory is %+v, expected the port of the node", seen)
		}
		f.ask(http.MethodPut, "/maintenance", `{"reason": "a fan is being replaced"}`)
		attempt := attemptOf(2)
		f.repeat(func() error { return f.install(attempt) }, func(seen hardware.Observation) bool {
			return seen.Attempt != nil && seen.Attempt.Number == 2 && seen.Power == hardware.PowerUnknown
		})
		_, err := f.installer.Observe(f.Context(), f.host)
		if hardware.ReasonOf(err) != hardware.ReasonInstallerMaintenance || !strings.Contains(err.Error(), "a fan is being replaced") {
			f.Errorf("the node is in maintenance, and Observe says %v", err)
		}
		f.ask(http.MethodDelete, "/maintenance", "")
		f.expectSucceeded(2, f.install)
	},
	"a node that people protect is not rolled and not released until they lift that": func(f *fixture) {
		f.expectSucceeded(1, f.install)
		f.expectPower(hardware.PowerOn)
		f.ask(http.MethodPatch, "", `[{"op": "add", "path": "/protected", "value": true}]`)
		f.restart()
		for name, call := range map[string]func(hardware.Attempt) error{"a roll": f.install, "a release": f.eraseWith(hardware.EraseNone)} {
			if err := call(attemptOf(2)); hardware.KindOf(err) != hardware.Conflict || !strings.Contains(err.Error(), "baremetal node unset --protected") {
				f.Errorf("%s says %v", name, err)
			}
		}
		if seen := f.observe(); seen.Power != hardware.PowerOn || seen.Attempt.Number != 1 {
			f.Errorf("a protected node was touched: power %s, attempt %+v", seen.Power, *seen.Attempt)
		}
		f.ask(http.MethodPatch, "", `[{"op": "add", "path": "/protected", "value": false}]`)
		f.expectSucceeded(2, f.install)
	},
	"an attempt that is cancelled before it begins never begins": func(f *fixture) {
		f.expectSucceeded(1, f.inspect)
		f.expectFailed(2, f.cancel, hardware.ReasonCancelled)
		f.expectFailed(2, f.install, hardware.ReasonCancelled)
	},
}

package ironic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// hostUID is a UID as Kubernetes gives it, and novaInstance that of a server of Nova. Both have room for the number of a case.
const (
	hostUID      = "7d9a1f6e-0000-4000-8000-%012d"
	novaInstance = "c0ffee00-0000-4000-8000-%012d"
)

// patch changes a field of the node, and returns the status of the answer.
func (s site) patch(n siteNode, path, value string) int {
	s.Helper()
	return s.send(http.MethodPatch, "/nodes/"+n.UUID, fmt.Sprintf(`[{"op": "add", "path": %q, "value": %s}]`, path, value), nil)
}

// cleaning returns the automated_clean of the node as JSON has it.
func (n siteNode) cleaning() string {
	text, _ := json.Marshal(n.Cleaning)
	return string(text)
}

// setInstance does what Nova does before it deploys a node, and what an operator does who takes that back: with null.
func (s site) setInstance(n siteNode, instance string) int {
	s.Helper()
	return s.patch(n, "/instance_uuid", instance)
}

// expectInstance checks by which instance_uuid the node is reserved.
func (s site) expectInstance(when string, n siteNode, want string) {
	s.Helper()
	if now := s.node(n.UUID); now.Instance != want {
		s.Errorf("%s: the instance_uuid is %q, expected %q", when, now.Instance, want)
	}
}

// awaitDocuments is an install whose config drive is not written yet: its node waits for it as it waits for its turn.
func (f *fixture) awaitDocuments(attempt hardware.Attempt) error {
	return f.installer.Install(f.Context(), f.host, attempt, hardware.InstallSpec{
		Image: f.image, ReadConfigDrive: func(context.Context) (hardware.ConfigDrive, error) { return hardware.ConfigDrive{}, nil },
	})
}

// TestNodesThatNovaSchedulesToo runs all cases at once, on the nodes of one Ironic that other systems use.
func TestNodesThatNovaSchedulesToo(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{})
	t.Run("cases", func(t *testing.T) {
		last := 0
		for name, test := range sharedCases {
			last++
			number := last
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, ironic.Options{Endpoint: running.Endpoint, DeployInterface: "fake"})
				f.host.UID = fmt.Sprintf(hostUID, number)
				test(f, site{t, running.Endpoint}, fmt.Sprintf(novaInstance, number))
			})
		}
	})
}

var sharedCases = map[string]func(f *fixture, s site, nova string){
	"a node that waits for its installation is given to nobody else": func(f *fixture, s site, nova string) {
		n := s.register("shared-waiting", "fake", f.host.BootMAC, "manage")
		attempt := attemptOf(1)
		f.repeat(func() error { return f.awaitDocuments(attempt) }, func(hardware.Observation) bool { return s.node(n.UUID).State == "available" })
		if status := s.setInstance(n, `"`+nova+`"`); status != http.StatusConflict {
			f.Errorf("Nova takes a node that waits for its installation: status %d", status)
		}
		f.expectSucceeded(1, f.install)
		s.expectInstance("installed", n, f.host.UID)
	},
	"a reservation lives as long as the host": func(f *fixture, s site, _ string) {
		n := s.register("shared-life", "fake", f.host.BootMAC, "manage", "provide")
		f.expectPower(hardware.PowerOn)
		s.expectInstance("found", n, f.host.UID)
		f.expectSucceeded(1, f.install)
		f.expectSucceeded(2, f.install)
		s.expectInstance("rolled", n, f.host.UID)
		f.expectSucceeded(3, f.eraseWith(hardware.EraseNone))
		s.expectInstance("released by Ironic itself", n, "")
		f.expectSucceeded(4, f.install)
		s.expectInstance("installed again", n, f.host.UID)
		f.expectSucceeded(5, f.eraseWith(hardware.EraseNone))
		f.expectSucceeded(6, f.inspect)
		s.expectInstance("inspected", n, f.host.UID)
		f.host.IsLeaving = true
		f.repeat(func() error { return nil }, func(seen hardware.Observation) bool { return seen.Attempt == nil })
		s.expectInstance("forgotten", n, "")
	},
	"a node that was found and never worked on is forgotten too": func(f *fixture, s site, nova string) {
		n := s.register("shared-unused", "fake", f.host.BootMAC, "manage")
		f.expectPower(hardware.PowerOn)
		s.expectInstance("found", n, f.host.UID)
		f.host.IsLeaving = true
		f.observe()
		s.expectInstance("forgotten", n, "")
		if status := s.setInstance(n, `"`+nova+`"`); status != http.StatusOK {
			f.Errorf("Nova takes a node whose host is gone: status %d", status)
		}
	},
	"the automated cleaning that a node had is off while it is the host's, and comes back": func(f *fixture, s site, _ string) {
		n := s.register("shared-cleaning", "fake", f.host.BootMAC, "manage")
		number := int64(0)
		for _, cleaning := range []string{"null", "true", "false", "true"} {
			s.patch(n, "/automated_clean", cleaning)
			f.restart()
			f.host.IsLeaving = false
			number++
			f.expectSucceeded(number, f.install)
			if now := s.node(n.UUID); now.cleaning() != "false" {
				f.Errorf("while the node is the host's its automated cleaning is %s", now.cleaning())
			}
			number++
			f.expectSucceeded(number, f.eraseWith(hardware.EraseNone))
			f.host.IsLeaving = true
			f.repeat(func() error { return nil }, func(seen hardware.Observation) bool { return seen.Attempt == nil })
			if now := s.node(n.UUID); now.cleaning() != cleaning {
				f.Errorf("the node had the automated cleaning %s and has %s", cleaning, now.cleaning())
			}
		}
	},
	"a node of an earlier version gets the default of Ironic for its automated cleaning": func(f *fixture, s site, _ string) {
		n := s.register("shared-uncleaned", "fake", f.host.BootMAC, "manage")
		for path, value := range map[string]string{"/extra/ingot_host": `"` + f.host.UID + `"`, "/extra/ingot_attempt": "1", "/extra/ingot_work": `"Inspect"`, "/automated_clean": "false"} {
			s.patch(n, path, value)
		}
		f.expectSucceeded(2, f.inspect)
		f.host.IsLeaving = true
		f.repeat(func() error { return nil }, func(seen hardware.Observation) bool { return seen.Attempt == nil })
		if now := s.node(n.UUID); now.cleaning() != "null" {
			f.Errorf("its automated cleaning is %s", now.cleaning())
		}
	},
	"a node that is created is reserved from its beginning": func(f *fixture, s site, _ string) {
		if err := f.inspect(attemptOf(1)); err != nil {
			f.Fatal(err)
		}
		s.expectInstance("created", s.node(f.host.Namespace+"~"+f.host.Name), f.host.UID)
	},
	"a node that Nova has taken from an earlier version is not touched, and its host says whose it is": func(f *fixture, s site, nova string) {
		n := s.register("shared-taken", "fake", f.host.BootMAC, "manage", "provide")
		s.patch(n, "/extra/ingot_host", `"`+f.host.UID+`"`)
		s.setInstance(n, `"`+nova+`"`)
		s.lead(n, "active")
		n = s.node(n.UUID)
		expectRefusals(f, hardware.Conflict, nova)
		f.expectForeign(nova)
		if now := s.node(n.UUID); now.Changed != n.Changed || now.Power != n.Power || now.Instance != nova || len(now.Extra) != 1 {
			f.Errorf("the node was touched: it was %+v and is %+v", n, now)
		}
		f.host.IsLeaving = true
		f.observe()
		if now := s.node(n.UUID); now.State != "active" || now.Instance != nova || now.Extra["ingot_host"] != nil {
			f.Errorf("the host has left, its node is %+v", now)
		}
	},
	"a node that Nova has deployed in the middle of an attempt is not this attempt's success": func(f *fixture, s site, nova string) {
		n := s.register("shared-middle", "fake", f.host.BootMAC, "manage")
		attempt := attemptOf(1)
		f.repeat(func() error { return f.awaitDocuments(attempt) }, func(hardware.Observation) bool { return s.node(n.UUID).State == "available" })
		s.patch(n, "/extra/ingot_attempt", "1") // the attempt was stored, and Ironic has refused its request
		s.patch(n, "/extra/ingot_work", `"Install"`)
		s.patch(n, "/extra/ingot_from", `"2020-01-01T00:00:00Z"`)
		s.setInstance(n, "null")
		s.setInstance(n, `"`+nova+`"`)
		s.lead(n, "active")
		f.restart()
		f.expectForeign(nova)
		if err := f.eraseWith(hardware.EraseNone)(attemptOf(2)); hardware.KindOf(err) != hardware.Conflict || s.node(n.UUID).State != "active" {
			f.Errorf("a release of what Nova has deployed: %v, the node is %s", err, s.node(n.UUID).State)
		}
	},
	"a node of an earlier version without a reservation goes on": func(f *fixture, s site, _ string) {
		n := s.register("shared-earlier", "fake", f.host.BootMAC, "manage")
		f.expectSucceeded(1, f.install)
		s.setInstance(n, "null")
		s.patch(n, "/extra/ingot_instance", `""`)
		f.restart()
		f.expectSucceeded(2, f.install)
		s.expectInstance("rolled", n, f.host.UID)
		f.expectSucceeded(3, f.eraseWith(hardware.EraseNone))
	},
}

// lead leads the node by a target, as Nova does, and waits until it is active.
func (s site) lead(n siteNode, target string) {
	s.Helper()
	s.send(http.MethodPut, "/nodes/"+n.UUID+"/states/provision", fmt.Sprintf(`{"target": %q}`, target), nil)
	s.await(n, target)
}

// expectForeign checks that the host says whose its node is, and has no attempt by it.
func (f *fixture) expectForeign(instance string) {
	f.Helper()
	f.restart()
	seen, err := f.installer.Observe(f.Context(), f.host)
	if hardware.ReasonOf(err) != hardware.ReasonInstallerConflict || !strings.Contains(err.Error(), instance) || seen.Attempt != nil || seen.Power != hardware.PowerUnknown {
		f.Errorf("Observe says %+v, %v", seen, err)
	}
}

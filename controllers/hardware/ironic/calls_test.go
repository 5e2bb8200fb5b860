package ironic_test

import (
	"path"
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
)

// takeCalls returns the requests since the last call, beside the lists and what asks for the version: the method, and what it is about.
func (r *recorder) takeCalls(n siteNode) (calls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.seen {
		about := path.Base(request.URL.Path)
		switch about {
		case "nodes", "v1":
			continue
		case n.UUID:
			about = "node"
		}
		calls = append(calls, request.Method+" "+about)
	}
	r.seen = nil
	return calls
}

// TestANodeIsInstalledWithFewCalls counts what one node costs an Ironic that works on hundreds at the same time: each call takes it a tenth of a second of a core.
func TestANodeIsInstalledWithFewCalls(t *testing.T) {
	t.Parallel()
	running := server.Start(t, server.Options{PowerSync: never})
	front, s := newRecorder(t, running.Endpoint), site{t, running.Endpoint}
	f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "fake"})
	n := s.register("shared-calls", "fake", f.host.BootMAC, "manage")
	f.expectPower(hardware.PowerOn)
	install := []string{"PATCH node", "PUT provision", "PUT provision", "PATCH node"}
	for number := int64(1); number < 6; number += 2 {
		front.takeCalls(n)
		f.expectSucceeded(number, f.install)
		if calls := front.takeCalls(n); !slices.Equal(calls, install) {
			t.Errorf("attempt %d: expected the calls %q, seen %q", number, install, calls)
		}
		f.expectSucceeded(number+1, f.eraseWith(hardware.EraseNone))
	}
	f.restart()
	f.expectSucceeded(7, f.install)
	front.takeCalls(n)
	f.restart()
	f.expectSucceeded(7, f.install)
	if calls := front.takeCalls(n); len(calls) > 0 {
		t.Errorf("another process reads what is stored: %q", calls)
	}
}

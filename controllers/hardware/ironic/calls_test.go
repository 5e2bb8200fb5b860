package ironic_test

import (
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
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
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{PowerSync: never})
	front, s := newRecorder(t, running.Endpoint), site{t, running.Endpoint}
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "fake", Clock: clock, ListAge: 200 * time.Millisecond})
	n := s.register("shared-calls", "fake", f.host.BootMAC, "manage")
	expect := func(when string, want ...string) {
		t.Helper()
		if calls := front.takeCalls(n); !slices.Equal(calls, want) {
			t.Errorf("%s: expected the calls %q, seen %q", when, want, calls)
		}
	}
	f.expectPower(hardware.PowerOn)
	for number := int64(1); number < 6; number += 2 {
		front.takeCalls(n)
		f.expectSucceeded(number, f.install)
		expect(fmt.Sprintf("attempt %d", number), "PATCH node", "PUT provision", "PUT provision")
		f.expectSucceeded(number+1, f.eraseWith(hardware.EraseNone))
	}
	f.expectSucceeded(7, f.install)
	front.takeCalls(n)
	ahead.Store(int64(4 * time.Minute))
	f.observe()
	expect("four minutes later")
	ahead.Store(int64(6 * time.Minute))
	f.observe()
	expect("six minutes later, when Ironic has rest", "PATCH node")
	f.restart()
	f.expectSucceeded(7, f.install)
	expect("another process finds the outcome")

	f.expectSucceeded(8, f.eraseWith(hardware.EraseNone))
	f.expectSucceeded(9, f.install)
	front.takeCalls(n)
	f.restart()
	f.expectSucceeded(9, f.install)
	expect("another process finds no outcome, and reads the node", "GET node", "PATCH node")
}

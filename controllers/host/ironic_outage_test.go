package host_test

import (
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// TestAnIronicThatIsDownInEveryPhaseFailsNothing ends the process of Ironic while one host is in each phase.
func TestAnIronicThatIsDownInEveryPhaseFailsNothing(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{})
	r := newIronicRig(t, running, "direct", 1)
	r.stop()
	r.timeouts.Install, r.timeouts.EraseMetadata = 5*time.Minute, 5*time.Minute
	r.start()
	goOn := newGate(t)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	waits := ironicserver.AgentOptions{Erase: func(string) error { begin(); goOn.wait(); return nil }}
	servers, agents := r.ironicServers(running, 5)
	pool, node, erasing, installing, queued := servers[0], servers[1], servers[2], servers[3], servers[4]
	for i, s := range []ironicServer{node, erasing} {
		r.claim(s, []string{"m1", "m2"}[i], 1, v1alpha1.EraseMetadata)
		r.awaitAll([]ironicServer{s}, metal3.StateProvisioned)
	}
	agents[2].Set(waits)
	r.unassignNamed(erasing)
	agents[3].Set(ironicserver.AgentOptions{Absent: true}) // its node waits for it
	r.claim(installing, "m3", 1, v1alpha1.EraseMetadata)
	r.awaitNode(running, installing, "wait call-back")
	// An agent whose answer to its first question is lost with Ironic never gets a token.
	select {
	case <-begun:
	case <-time.After(3 * time.Minute):
		t.Fatal("the agent has not begun to erase")
	}
	r.awaitNode(running, erasing, "clean wait")
	r.claim(queued, "m4", 1, v1alpha1.EraseMetadata)
	r.await(queued, "it waits for its turn", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool { return placeOf(record) == 1 })

	running.Kill()
	fresh := newIronicServer("node-new")
	ironicserver.StartAgent(t, running.Endpoint, fresh.bootMAC(), ironicserver.AgentOptions{})
	r.registerIronic(fresh)
	all := append([]ironicServer{fresh}, servers...)
	for _, s := range all {
		_, record := r.await(s, "its record says that Ironic does not answer", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			return record.Status.Error != nil && record.Status.Error.Reason == v1alpha1.ReasonInstallerUnreachable && h.Status.ErrorType != ""
		})
		if record.Status.Failures > 0 {
			t.Errorf("%s: %d failures", s.name, record.Status.Failures)
		}
	}
	if _, record, _ := r.get(queued); placeOf(record) != 1 {
		t.Errorf("the host that waits has lost its place: %+v", record.Status.Queue)
	}
	r.stop() // both are down at the same time
	r.start()
	running.Run()
	goOn.open()
	agents[3].Set(ironicserver.AgentOptions{})
	for s, state := range map[ironicServer]metal3.ProvisioningState{
		fresh: metal3.StateAvailable, pool: metal3.StateAvailable, node: metal3.StateProvisioned, erasing: metal3.StateAvailable,
		installing: metal3.StateProvisioned, queued: metal3.StateProvisioned,
	} {
		r.recovers(s, state)
	}
	if _, record, err := r.get(node); err != nil || record.Status.Power.State != string(hardware.PowerOn) {
		t.Errorf("the node that runs has the power %+v, %v", record.Status.Power, err)
	}
}

// awaitNode waits until the server's node is in the state of Ironic.
func (r *rig) awaitNode(running *ironicserver.Server, s ironicServer, state string) {
	r.t.Helper()
	eventually(r.t, s.name+" is in Ironic's state "+state, func() bool { return r.nodeOf(running, s).State == state })
}

// recovers waits until the host is in the state without an error, and expects that no failure was counted on the way.
func (r *rig) recovers(s ironicServer, state metal3.ProvisioningState) {
	r.t.Helper()
	for _, record := range r.awaitAll([]ironicServer{s}, state) {
		if len(record.Status.FailingCalls) > 0 {
			r.t.Errorf("%s: calls still fail: %+v", s.name, record.Status.FailingCalls)
		}
	}
}

package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	ironicserver "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// Ironic counts the nodes in these states against its two limits (ironic/conductor/manager.py, _concurrent_action_limit).
var (
	deployStates = []string{"deploying", "wait call-back"}
	cleanStates  = []string{"deleting", "cleaning", "clean wait"}
)

// nodeState is a node as Ironic lists it.
type nodeState struct {
	Name  string
	State string `json:"provision_state"`
	Power string `json:"power_state"`
	UUID  string
}

// listNodes returns the nodes of Ironic; nil: it does not answer.
func listNodes(ctx context.Context, running *ironicserver.Server) []nodeState {
	var list struct{ Nodes []nodeState }
	_ = json.Unmarshal(readIronic(ctx, running, "/v1/nodes"), &list)
	return list.Nodes
}

// readIronic returns what Ironic answers to a GET; nil: nothing.
func readIronic(ctx context.Context, running *ironicserver.Server, path string) []byte {
	_, answer, _ := ironicserver.Ask(ctx, running.Endpoint, http.MethodGet, path, "")
	return answer
}

// countNodes asks Ironic again and again how many nodes are in one of the states. The returned function ends that and returns the highest count, and how often
// Ironic was asked.
func countNodes(t *testing.T, running *ironicserver.Server, states []string) (stop func() (most, times int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	most, times := 0, 0
	ended.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			count := 0
			for _, n := range listNodes(ctx, running) {
				if slices.Contains(states, n.State) {
					count++
				}
			}
			most, times = max(most, count), times+1
		}
	})
	return func() (int, int) {
		cancel()
		ended.Wait()
		return most, times
	}
}

// gate holds the agents of a test back until it is opened.
type gate struct {
	open func()
	wait func()
}

// newGate returns a gate that is open when the test has ended.
func newGate(t *testing.T) gate {
	t.Helper()
	opened := make(chan struct{})
	g := gate{open: sync.OnceFunc(func() { close(opened) }), wait: func() { <-opened }}
	t.Cleanup(g.open)
	return g
}

// ironicServers registers servers with their agents, and waits until they are in the pool.
func (r *rig) ironicServers(running *ironicserver.Server, count int) (servers []ironicServer, agents []*ironicserver.Agent) {
	r.t.Helper()
	for i := range count {
		s := newIronicServer(fmt.Sprintf("node-%02d", i+1))
		servers = append(servers, s)
		agents = append(agents, ironicserver.StartAgent(r.t, running.Endpoint, s.bootMAC(), ironicserver.AgentOptions{}))
		r.registerIronic(s)
	}
	r.awaitAll(servers, metal3.StateAvailable)
	return servers, agents
}

// awaitAll waits until all the hosts are in the state, and returns their records. A failure on the way fails the test, and an error at the end does.
func (r *rig) awaitAll(servers []ironicServer, state metal3.ProvisioningState) (records []*v1alpha1.HostRecord) {
	r.t.Helper()
	deadline := time.Now().Add(3 * time.Minute) // one after the other, on a machine that others use too
	for _, s := range servers {
		for {
			host, record, err := r.get(s)
			if err != nil || record.Status.Failures > 0 {
				r.t.Fatalf("%s: %d failures, %+v, %v", s.name, record.Status.Failures, record.Status.Wanted, err)
			}
			if inState(state)(host, record) {
				records = append(records, record)
				break
			}
			if time.Now().After(deadline) {
				r.t.Fatalf("%s is not %s in time: %s, wanted %+v, queue %+v", s.name, state, host.Status.Provisioning.State, record.Status.Wanted, record.Status.Queue)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return records
}

func TestTwelveHostsThatAreClaimedAtOnceNeverExceedTheLimit(t *testing.T) {
	require.Deep(t)
	const limit = 3
	running := ironicserver.Start(t, ironicserver.Options{MaxDeploys: limit, DeployDelay: 2})
	r := newIronicRig(t, running, "fake", limit)
	r.timeouts.Install = 5 * time.Minute
	var servers []ironicServer
	for i := range 12 {
		servers = append(servers, newIronicServer(fmt.Sprintf("node-%02d", i+1)))
		r.registerIronic(servers[i])
	}
	r.awaitAll(servers, metal3.StateAvailable)
	r.stop()
	for i, s := range servers {
		r.claim(s, fmt.Sprintf("m%d", i+1), 1, v1alpha1.EraseMetadata)
	}
	stop := countNodes(t, running, deployStates)
	r.start() // all of them are reconciled in one moment
	for _, record := range r.awaitAll(servers, metal3.StateProvisioned) {
		if record.Status.Queue != nil || record.Status.Wanted.Number != 2 {
			t.Errorf("%s: queue %+v, attempt %d: expected the second, after the inspection", record.Name, record.Status.Queue, record.Status.Wanted.Number)
		}
	}
	most, times := stop()
	t.Logf("Ironic was asked %d times, and worked on %d nodes at most", times, most)
	if most != limit || times < 20 {
		t.Errorf("Ironic worked on %d nodes at the same time, the limit is %d", most, limit)
	}
}

func TestErasesWaitForTheirTurnAtIronic(t *testing.T) {
	require.Deep(t)
	running := ironicserver.Start(t, ironicserver.Options{MaxCleans: 1})
	r := newRigWith(t, 1, 0, func(r *rig) {
		r.ironic = &v1alpha1.IronicProvider{Endpoint: running.Endpoint, HardwareType: "fake-hardware", DeployInterface: "direct", Limits: v1alpha1.IronicLimits{Cleans: 1}}
	})
	servers, agents := r.ironicServers(running, 3)
	goOn := newGate(t)
	for i, s := range servers {
		// The last one is released without an erase, which Ironic counts too.
		mode := v1alpha1.EraseMetadata
		if i == 2 {
			mode = v1alpha1.EraseNone
		}
		r.claim(s, fmt.Sprintf("m%d", i+1), 1, mode)
		agents[i].Set(ironicserver.AgentOptions{Erase: func(string) error { goOn.wait(); return nil }})
	}
	for _, s := range servers {
		r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	}
	stop := countNodes(t, running, cleanStates)
	for i, s := range servers {
		r.unassignNamed(s)
		r.await(s, "it begins or waits", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
			q, w := record.Status.Queue, record.Status.Wanted
			if i == 0 {
				return w.IsOpen() && w.Operation == string(hardware.OpErase)
			}
			return q != nil && q.Operation == string(hardware.OpErase) && int(q.Place) == i
		})
	}
	eventually(t, "the first one is erased", func() bool {
		return slices.ContainsFunc(listNodes(t.Context(), running), func(n nodeState) bool { return n.State == "clean wait" })
	})
	goOn.open()
	for _, s := range servers {
		_, record := r.await(s, "it is back in the pool", inState(metal3.StateAvailable))
		if record.Status.Failures > 0 || record.Status.Queue != nil || record.Status.Wanted.Number != 3 {
			t.Errorf("%s: %d failures, queue %+v, attempt %d", s.name, record.Status.Failures, record.Status.Queue, record.Status.Wanted.Number)
		}
	}
	most, times := stop()
	t.Logf("Ironic was asked %d times, and worked on %d nodes at most", times, most)
	if most != 1 {
		t.Errorf("Ironic worked on %d nodes at the same time, the limit is 1", most)
	}
}

package ironic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// poolSize is the size of Ironic's pool of workers. Two of them are always busy. Ironic 21.4 also queues as many tasks as the pool has workers, and refuses what is more.
const poolSize = 3

// pool fills the pool of workers of an Ironic: each of its nodes has a BMC that does not answer while the pool is to be full.
type pool struct {
	site
	nodes []siteNode

	mu sync.Mutex
	// held is closed when the BMCs answer; nil: they do.
	held chan struct{}
}

// newPool registers the nodes whose verification occupies workers.
func newPool(t *testing.T, running *server.Server) *pool {
	t.Helper()
	p := &pool{site: site{t, running.Endpoint}}
	bmcs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(bmcs.Close)
	t.Cleanup(p.release)
	for i := range 2 * poolSize {
		var n siteNode
		body := fmt.Sprintf(`{"name": "busy-%d", "driver": "redfish", "driver_info": {"redfish_address": %q, "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root", "redfish_password": "calvin", "redfish_auth_type": "basic"}}`, i, bmcs.URL)
		if status := p.send(http.MethodPost, "/nodes", body, &n); status != http.StatusCreated {
			t.Fatalf("register a node: status %d", status)
		}
		p.nodes = append(p.nodes, n)
	}
	return p
}

// fill has Ironic verify nodes until it has no worker for another one.
func (p *pool) fill() {
	p.mu.Lock()
	if p.held == nil {
		p.held = make(chan struct{})
	}
	p.mu.Unlock()
	for begun := time.Now(); time.Since(begun) < patience; {
		for _, n := range p.nodes {
			if p.send(http.MethodPut, "/nodes/"+n.UUID+"/states/provision", `{"target": "manage"}`, nil) == http.StatusServiceUnavailable {
				return
			}
		}
	}
	p.Error("the pool of workers is never full")
}

// release ends all verifications.
func (p *pool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// targetHeader has the target of a request for a provision state, for the answer to it.
const targetHeader = "X-Test-Target"

// crowd is what stands between an Installer and an Ironic whose pool of workers is full whenever a target is requested for the first time.
type crowd struct {
	*recorder
	pool *pool

	mu sync.Mutex
	// refused and accepted count the answers by their targets.
	refused, accepted map[string]int
}

func newCrowd(t *testing.T, running *server.Server, p *pool) *crowd {
	t.Helper()
	c := &crowd{recorder: newRecorder(t, running.Endpoint), pool: p, refused: map[string]int{}, accepted: map[string]int{}}
	c.recorder.refuse = func(request *http.Request) int {
		if request.Method != http.MethodPut || path.Base(request.URL.Path) != "provision" {
			return 0
		}
		body, _ := io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Target string `json:"target"`
		}
		if json.Unmarshal(body, &asked) == nil {
			request.Header.Set(targetHeader, asked.Target)
			if c.answers(c.refused, asked.Target) == 0 {
				c.pool.fill()
			}
		}
		return 0
	}
	c.change = func(response *http.Response) {
		target := response.Request.Header.Get(targetHeader)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch response.StatusCode {
		case http.StatusServiceUnavailable:
			c.refused[target]++
			c.pool.release()
		case http.StatusAccepted:
			c.accepted[target]++
		}
	}
	return c
}

func (c *crowd) answers(counts map[string]int, target string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counts[target]
}

func (f *fixture) expectDone(agent *server.Agent, want ...string) {
	f.Helper()
	if steps, _ := agent.Done(); !slices.Equal(steps, want) {
		f.Errorf("the agent did %v, expected %v", steps, want)
	}
}

// TestWhatIronicHasNoWorkerForIsNeitherDoneNorFailed has each request refused at least once. Ironic gives the node the state that the work has for a moment, and then the one from before.
func TestWhatIronicHasNoWorkerForIsNeitherDoneNorFailed(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	liveWithoutWorkers(t, server.Start(t, server.Options{Workers: poolSize, PowerSync: never}))
}

func liveWithoutWorkers(t *testing.T, running *server.Server) {
	front := newCrowd(t, running, newPool(t, running))
	f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "direct"})
	f.serveImage()
	agent := server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{})
	for i, work := range []struct {
		call    func(hardware.Attempt) error
		targets []string
		done    []string // by the agent, since the beginning
	}{
		{call: f.inspect, targets: []string{"manage", "inspect"}},
		{call: f.install, targets: []string{"provide", "active"}, done: []string{"write_image"}},
		{call: f.install, targets: []string{"rebuild"}, done: []string{"write_image", "write_image"}},
		{call: f.eraseWith(hardware.EraseMetadata), targets: []string{"deleted", "clean"}, done: []string{"write_image", "write_image", "erase_devices_metadata"}},
	} {
		f.expectSucceeded(int64(i+1), work.call)
		f.expectDone(agent, work.done...)
		for _, target := range work.targets {
			if refused, accepted := front.answers(front.refused, target), front.answers(front.accepted, target); refused == 0 || accepted == 0 {
				t.Errorf("Ironic has refused %s %d times and accepted it %d times", target, refused, accepted)
			}
		}
	}
}

// TestAnOperatorWhoMovesTheNodeHasErasedNothing has the cleaning refused, and then the node led away and back by hand, which changes its state without any cleaning.
func TestAnOperatorWhoMovesTheNodeHasErasedNothing(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{PowerSync: never})
	front := newRecorder(t, running.Endpoint)
	f := newFixture(t, ironic.Options{Endpoint: front.URL, DeployInterface: "direct"})
	agent := server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{})
	f.expectSucceeded(1, f.inspect)
	f.expectPower(hardware.PowerOff)
	erase, attempt := f.eraseWith(hardware.EraseFull), attemptOf(2)
	var isRefusing atomic.Bool
	var refused atomic.Int64
	front.refuse = func(request *http.Request) int {
		if !isRefusing.Load() || path.Base(request.URL.Path) != "provision" {
			return 0
		}
		refused.Add(1)
		return http.StatusServiceUnavailable
	}
	isRefusing.Store(true)
	f.repeat(func() error { return erase(attempt) }, func(hardware.Observation) bool { return refused.Load() > 0 })
	isRefusing.Store(false)
	for _, step := range [][2]string{{"provide", "available"}, {"manage", "manageable"}} {
		f.ask(http.MethodPut, "/states/provision", fmt.Sprintf(`{"target": %q}`, step[0]))
		f.until(step[1], func() bool { return f.stored().State == step[1] })
	}
	isRefusing.Store(true)
	f.repeat(func() error { return erase(attempt) }, func(seen hardware.Observation) bool {
		if seen.Attempt == nil || seen.Attempt.State != hardware.AttemptRunning {
			t.Fatalf("nothing was erased, and the attempt is %+v", seen.Attempt)
		}
		return refused.Load() > 3
	})
	isRefusing.Store(false)
	f.expectSucceeded(2, erase)
	f.expectDone(agent, "erase_devices")
}

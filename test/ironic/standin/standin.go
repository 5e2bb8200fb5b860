package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/rack"
)

// pollInterval is the time between two looks at Ironic's nodes.
const pollInterval = 300 * time.Millisecond

// Options configure a StandIn. Endpoint and Servers are required.
type Options struct {
	// Endpoint is the URL of Ironic's API.
	Endpoint string
	// Servers are those whose nodes have their names, after a namespace and a tilde.
	Servers []*rack.Server
	// Say is told every step that is done in the place of hardware; nil: nobody is.
	Say func(format string, args ...any)
}

// StandIn is what stands between a rack and an Ironic.
type StandIn struct {
	options Options
	stop    context.CancelFunc
	ended   sync.WaitGroup
	servers map[string]*server
}

// server is a server with what stands for the agent that Ironic would have booted on it.
type server struct {
	*rack.Server
	say   func(format string, args ...any)
	agent *ironic.Agent
	works bool
}

// node is what is read of a node.
type node struct {
	UUID, Name string
	Power      string `json:"power_state"`
	State      string `json:"provision_state"`
}

// Start begins to follow Ironic. Stop ends it.
func Start(options Options) (*StandIn, error) {
	if options.Say == nil {
		options.Say = func(string, ...any) {}
	}
	s := &StandIn{options: options, servers: map[string]*server{}}
	for _, one := range options.Servers {
		standing := &server{Server: one, say: options.Say}
		var err error
		if standing.agent, err = ironic.NewAgent(options.Endpoint, one.BootMAC(), ironic.AgentOptions{Absent: true}); err != nil {
			s.stopAgents()
			return nil, err
		}
		s.servers[one.Name()] = standing
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.ended.Go(func() { s.run(ctx) })
	return s, nil
}

// Stop ends what stands for the hardware. The servers stay as they are.
func (s *StandIn) Stop() {
	s.stop()
	s.ended.Wait()
	s.stopAgents()
}

func (s *StandIn) stopAgents() {
	for _, one := range s.servers {
		one.agent.Stop()
	}
}

// Steps returns what Ironic has had done to the disks of a server.
func (s *StandIn) Steps(name string) []string {
	steps, _ := s.servers[name].agent.Done()
	return steps
}

func (s *StandIn) run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var listed struct{ Nodes []node }
		if s.send(ctx, http.MethodGet, "/v1/nodes?fields=uuid,name,power_state,provision_state", nil, &listed) != nil {
			continue // Ironic is away: the servers stay as they are
		}
		for _, n := range listed.Nodes {
			_, name, _ := strings.Cut(n.Name, "~")
			if one := s.servers[name]; one != nil {
				s.follow(ctx, one, n)
			}
		}
	}
}

// follow makes the server what Ironic has made of its node.
func (s *StandIn) follow(ctx context.Context, one *server, n node) {
	if n.Power == "" && (n.State == "enroll" || n.State == "manageable") {
		// The fake hardware has no power state before one is asked for. A real BMC tells that the server is off.
		_ = s.send(ctx, http.MethodPut, "/v1/nodes/"+n.UUID+"/states/power", []byte(`{"target": "power off"}`), nil)
	}
	one.letAgentWork(n)
	isOn := one.Power() != hardware.PowerOff
	switch {
	case n.Power == "power on" && n.State == "active" && !isOn:
		one.say("simulated: the power of %s goes on, and it boots from its disk", one.Name())
		one.Reset(bmc.ResetOn)
	case isOn && n.Power == "power off":
		one.say("simulated: the power of %s goes off", one.Name())
		one.Reset(bmc.ResetForceOff)
	}
}

// letAgentWork starts what stands for Ironic's agent while Ironic waits for it, and ends it afterwards.
func (one *server) letAgentWork(n node) {
	works := false
	switch n.State {
	case "deploying", "wait call-back", "cleaning", "clean wait":
		works = true
	}
	if works == one.works {
		return
	}
	one.works = works
	if works {
		one.say("simulated: Ironic's agent works on %s, which stays off", one.Name())
	}
	one.agent.Set(ironic.AgentOptions{Absent: !works, WriteImage: one.writeImage, Erase: one.erase})
}

func (s *StandIn) send(ctx context.Context, method, path string, body []byte, into any) error {
	status, answer, err := ironic.Ask(ctx, s.options.Endpoint, method, path, string(body))
	if err != nil || into == nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the answer is %d", status)
	}
	return json.Unmarshal(answer, into)
}

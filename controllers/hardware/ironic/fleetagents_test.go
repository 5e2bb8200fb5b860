package ironic_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	server "github.com/ingot-dev/ingot/test/ironic"
)

// killHalfway kills Ironic when half of the nodes are installed, and starts it again.
func (f *fleet) killHalfway(ctx context.Context) {
	select {
	case <-f.halfway:
	case <-ctx.Done():
		return
	}
	f.alive.Lock()
	defer f.alive.Unlock()
	f.begun = time.Now()
	f.ironic.Kill()
	if err := f.ironic.Resume(ctx); err != nil {
		f.Errorf("start Ironic again: %v", err)
	}
	f.ended = time.Now()
}

// wakeAgents has the agents there while Ironic waits for them, as servers do that boot them.
func (f *fleet) wakeAgents(ctx context.Context) {
	ticker := time.NewTicker(listAge)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		states := f.states(ctx)
		for _, m := range f.members {
			if state, isKnown := states[m.name()]; isKnown {
				m.agent.Set(m.agentIn(state))
			}
		}
	}
}

// agentIn returns what the agent does in a state of the node.
func (m *member) agentIn(state string) server.AgentOptions {
	m.mu.Lock()
	defer m.mu.Unlock()
	isAwaited := slices.Contains(deploying, state) || slices.Contains(cleaning, state)
	has := m.trouble
	options := server.AgentOptions{WriteImage: func(ctx context.Context, _ server.Image, _ string) error {
		if has == silentAgent {
			select {
			case <-m.recovered.Done():
			case <-ctx.Done():
			}
			return errors.New("the server was powered off")
		}
		m.written.Add(1)
		return nil
	}}
	switch {
	case !isAwaited, has == missingAgent && !m.isErasing, has == noErasingAgent && m.isErasing:
		options.Absent = true
	case has == failingWrite:
		options.Fails = map[string]server.AgentError{"write_image": {Type: "ImageWriteError", Code: 500, Message: "Error writing image to device: /dev/sda: input/output error"}}
	}
	return options
}

// states returns the provision states of the nodes by their names; nil: Ironic does not answer.
func (f *fleet) states(ctx context.Context) map[string]string {
	_, answer, err := server.Ask(ctx, f.ironic.Endpoint, http.MethodGet, "/v1/nodes?fields=name,provision_state", "")
	if err != nil {
		return nil
	}
	var listed struct {
		Nodes []struct {
			Name  string
			State string `json:"provision_state"`
		}
	}
	if json.Unmarshal(answer, &listed) != nil {
		return nil
	}
	states := map[string]string{}
	for _, n := range listed.Nodes {
		states[n.Name] = n.State
	}
	return states
}

package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/test/crash/relay"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/ironic/standin"
	"github.com/ingot-dev/ingot/test/require"
)

// ironicVariable is choiceVariable for the test of nodes of Ironic.
const ironicVariable = "INGOT_CRASH_IRONIC"

func TestNothingIsLostOnNodesOfIronic(t *testing.T) {
	require.Turn(t, 1)
	if program := ironic.Missing(); program != "" {
		require.Missing(t, program, ironic.Install)
	}
	require.Tool(t, "sgdisk", "apt-get install gdisk")
	testEveryDeath(t, kind{variable: ironicVariable, isIronic: true, sampleSize: sampleSize, scenarios: map[string]scenario{
		"life":    {prepare: (*testbed).prepareLife, tell: (*testbed).runLife},
		"rollout": {prepare: (*testbed).prepareRollout, tell: (*testbed).runRollout},
	}})
}

// ironicSite is a real Ironic whose hardware is memory, the relay before it, and what stands for the hardware of its nodes.
type ironicSite struct {
	process *ironic.Process
	front   *relay.Proxy
	standIn *standin.StandIn
	servers []string
	// before is how often images had been written to each server when the requests began to be numbered.
	before map[string]int
}

// startIronic starts Ironic and the relay through which the manager speaks to it. Its agents speak to Ironic itself.
func (s *testbed) startIronic(ctx context.Context) error {
	if !s.kind.isIronic {
		return nil
	}
	dir := filepath.Join(s.env.Dir, "ironic")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("start Ironic: %w", err)
	}
	process, err := ironic.Launch(ctx, dir, ironic.Options{})
	s.ironic = &ironicSite{process: process}
	if err != nil {
		return err
	}
	s.ironic.front, err = s.steps.Listen("ironic", process.Endpoint, s.management.CA())
	return err
}

// startStandIn puts the rack's servers behind the nodes.
func (s *testbed) startStandIn(context.Context) error {
	if s.ironic == nil {
		return nil
	}
	for _, server := range s.env.Rack.Servers() {
		s.ironic.servers = append(s.ironic.servers, server.Name())
	}
	var err error
	s.ironic.standIn, err = standin.Start(standin.Options{Endpoint: s.ironic.process.Endpoint, Servers: s.env.Rack.Servers()})
	return err
}

// providerSpec is spec.ironic of the NodeProvider.
func (i *ironicSite) providerSpec() map[string]any {
	return map[string]any{"endpoint": i.front.URL(), "caBundle": string(i.front.CA()), "hardwareType": "fake-hardware", "deployInterface": "direct"}
}

// writes counts how often an image was written to each server.
func (i *ironicSite) writes() map[string]int {
	out := map[string]int{}
	for _, name := range i.servers {
		steps := i.standIn.Steps(name)
		out[name] = len(slices.DeleteFunc(steps, func(step string) bool { return step != "write_image" }))
	}
	return out
}

// begin forgets what was before.
func (i *ironicSite) begin() {
	if i != nil {
		i.before = i.writes()
	}
}

// installs is how often an image was written since begin, by server.
func (i *ironicSite) installs() map[string]int {
	if i == nil {
		return nil
	}
	out := map[string]int{}
	for name, n := range i.writes() {
		if n > i.before[name] {
			out[name] = n - i.before[name]
		}
	}
	return out
}

func (i *ironicSite) stop() {
	if i == nil {
		return
	}
	if i.standIn != nil {
		i.standIn.Stop()
	}
	if i.front != nil {
		i.front.Close()
	}
	if i.process != nil {
		i.process.Stop()
	}
}

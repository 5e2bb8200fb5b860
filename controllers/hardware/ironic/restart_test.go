package ironic_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// heldFor, in seconds, is how long Ironic takes for what it is killed in: longer than any test lasts.
	heldFor = 600
	// restTime is the time between two heartbeats of an agent, where many share an Ironic, and listAge how long a list of many nodes is used.
	restTime = 2 * time.Second
	listAge  = 500 * time.Millisecond
)

// held is a node that Ironic is at work on, or rests, when it is killed.
type held struct {
	*fixture
	ironic *server.Server
	agent  *server.Agent
	// written is closed when the agent may end write_image.
	written chan struct{}
	// since is when the change of power was wanted.
	since time.Time
	// hasFailed says that a phase has failed.
	hasFailed bool
}

// stage is a state in which Ironic is killed.
type stage struct {
	// prepare is done while Ironic is fast, and its agents come. It may reach the state.
	prepare func(*held)
	// begin is repeated while Ironic is slow, until the state is reached; nil: prepare has reached it.
	begin func(*held) error
	// isHeld reports whether it is reached.
	isHeld func(*held) bool
	// killed is done before Ironic starts again; nil: nothing is.
	killed func(*held)
	// finish is done after that.
	finish func(*held)
}

func TestIronicDiesInEveryStateOfANode(t *testing.T) {
	require.Alone(t)
	t.Parallel()
	running := server.Start(t, server.Options{AgentTimeout: heldFor})
	nodes := map[string]*held{}
	for name := range stages {
		h := &held{fixture: newFixture(t, ironic.Options{Endpoint: running.Endpoint, DeployInterface: "direct"}), ironic: running, written: make(chan struct{})}
		h.serveImage()
		h.agent = server.StartAgent(t, running.Endpoint, h.host.BootMAC, server.AgentOptions{Absent: true, Interval: restTime})
		nodes[name] = h
	}
	inParallel := func(phase string, do func(stage, *held)) {
		installer := anyOf(nodes).slowly() // each phase is another process
		t.Run(phase, func(t *testing.T) {
			for name, h := range nodes {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if h.hasFailed {
						t.Skip("it has failed before")
					}
					defer func() { h.hasFailed = t.Failed() }()
					h.T, h.installer = t, installer
					do(stages[name], h)
				})
			}
		})
	}

	inParallel("prepared", func(s stage, h *held) {
		if s.prepare != nil {
			s.prepare(h)
		}
	})
	running.Kill()
	running.RunWith(func(options *server.Options) { options.PowerDelay, options.InspectDelay = heldFor, heldFor })
	inParallel("killed", func(s stage, h *held) {
		h.since = time.Now()
		h.until("held", func() bool {
			if s.begin != nil {
				if err := s.begin(h); err != nil && hardware.KindOf(err) != hardware.Busy && hardware.KindOf(err) != hardware.Conflict {
					h.Fatal(err)
				}
			}
			return s.isHeld(h)
		})
	})
	running.Kill()
	for name, h := range nodes {
		if killed := stages[name].killed; killed != nil {
			h.T = t
			killed(h)
		}
	}
	running.RunWith(func(options *server.Options) { options.PowerDelay, options.InspectDelay = 0, 0 })
	inParallel("gone on", func(s stage, h *held) { s.finish(h) })
}

func anyOf(nodes map[string]*held) *held {
	for _, h := range nodes {
		return h
	}
	return nil
}

// slowly returns an Installer for many nodes, whose list is one for all of them.
func (f *fixture) slowly() *ironic.Installer {
	options := f.options
	options.ListAge, options.Log = listAge, nil
	return ironic.New(options)
}

// inState reports whether Ironic has the node in the state.
func inState(state string) func(*held) bool {
	return func(h *held) bool { return h.stored().State == state }
}

// present runs what needs the agent.
func (h *held) present(do func()) {
	h.agent.Set(server.AgentOptions{})
	do()
	h.agent.Set(server.AgentOptions{Absent: true})
}

// isDone ends the attempt with the agent there, where it may fail once by what the death of Ironic has ended. The next attempt must succeed then.
func (h *held) isDone(number int64, call func(hardware.Attempt) error, mayFail bool) {
	h.Helper()
	h.present(func() {
		status := h.untilEnded(number, call)
		if status.State == hardware.AttemptSucceeded {
			return
		}
		if !mayFail || status.Reason != hardware.ReasonInstallerFailed || !strings.Contains(status.Message, "can't be resumed by conductor") {
			h.Fatalf("attempt %d is %s by %s: %s", number, status.State, status.Reason, status.Message)
		}
		h.expectSucceeded(number+1, call)
	})
}

// expectWritten checks how many images the agent has written.
func (h *held) expectWritten(want int) {
	h.Helper()
	steps, _ := h.agent.Done()
	if steps = slices.DeleteFunc(steps, func(step string) bool { return step != "write_image" }); len(steps) != want {
		h.Errorf("%d images were written, expected %d", len(steps), want)
	}
}

func (h *held) isInspected() { h.expectSucceeded(1, h.inspect) }

func (h *held) isInstalled() { h.present(func() { h.expectSucceeded(1, h.install) }) }

// changePower wants the power since the beginning of the phase.
func (h *held) changePower(to hardware.PowerState) func() error {
	return func() error {
		return h.installer.SetPower(h.Context(), h.host, hardware.PowerChange{Desired: to, Since: h.since})
	}
}

func (h *held) reaches(power hardware.PowerState) {
	h.Helper()
	h.repeat(h.changePower(power), func(seen hardware.Observation) bool { return seen.Power == power })
	if n := h.stored(); n.TargetPower != "" || n.Power != map[hardware.PowerState]string{hardware.PowerOn: "power on", hardware.PowerOff: "power off"}[power] {
		h.Errorf("power %s is confirmed, Ironic has %q and changes it to %q", power, n.Power, n.TargetPower)
	}
}

// begins repeats the attempt until the state is reached.
func (h *held) begins(number int64, call func(hardware.Attempt) error, reached func(*held) bool) {
	h.Helper()
	attempt := attemptOf(number)
	h.repeat(func() error { return call(attempt) }, func(hardware.Observation) bool { return reached(h) })
}

// waitToWrite has the agent write an image until written is closed.
func (h *held) waitToWrite(ctx context.Context, _ server.Image, _ string) error {
	select {
	case <-h.written:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func writesImage(h *held) bool { return h.stored().DeployStep.Step == "write_image" }

func erases(h *held) bool {
	n := h.stored()
	return n.State == "clean wait" && n.CleanStep.Step == "erase_devices"
}

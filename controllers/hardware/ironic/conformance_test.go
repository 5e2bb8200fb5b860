package ironic_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/test/conformance"
	server "github.com/ingot-dev/ingot/test/ironic"
)

const (
	// realTime is how long a real Ironic has for what a controller waits for between two calls, and longTime for more than that.
	realTime, longTime = 250 * time.Millisecond, time.Second
	// stepTime is how long the agent takes for a step.
	stepTime = 1500 * time.Millisecond
	// agentTimeout, in seconds, is when Ironic gives an agent up that says nothing.
	agentTimeout = 4
	// neighbour is a conductor that is not there and has locked a node.
	neighbour = "another-conductor"
)

// inspected is what an inspection by Ironic's agent stores.
const inspected = `{"cpu": {"architecture": "x86_64", "count": 8}, "memory": {"physical_mb": 1024}, "interfaces": [], "disks": [],
"system_vendor": {"manufacturer": "Vendor", "product_name": "Model", "serial_number": "SN1"}}`

// rig is one server of the conformance suite: a node of a real Ironic with fake hardware, and what stands for its agent.
type rig struct {
	*fixture
	ironic *server.Server
	gate   *gate
	agent  *server.Agent
	// endpoint is that of Ironic itself.
	endpoint string
	// before is the power of the server before Ironic knows it.
	before hardware.PowerState
	// hasInventory says that the inventory is stored.
	hasInventory bool
	// neighbour is the server that another Installer has Ironic work on, and attempt what it does.
	neighbour *fixture
	attempt   hardware.Attempt

	mu       sync.Mutex
	now      time.Time
	password string
	// disk is what the disk holds, and writes how often an image was written completely. second is what a second disk holds; empty: there is none.
	disk, second string
	writes       int

	faults conformance.Faults
	// bmcPassword is the password of the BMC.
	bmcPassword string
	// hasLostNode says that the node was deleted while its server ran the agent, which it does until Ironic has deployed another node for it.
	hasLostNode bool
	// hasInspector says that the node has the inspect interface inspector.
	hasInspector bool
}

// TestIronicPassesTheConformanceSuite runs the suite on the nodes of one Ironic. The cases of a limit and of a missing agent have one of their own, and those that
// hold a server in a state share one that takes its time.
func TestIronicPassesTheConformanceSuite(t *testing.T) {
	t.Parallel()
	shared := server.Start(t, server.Options{})
	slow := server.Start(t, server.Options{PowerDelay: 3, InspectDelay: 4, InspectorURL: serveInspector(t)})
	t.Run("cases", func(t *testing.T) {
		conformance.Run(t, conformance.Ironic(), func(t *testing.T, faults conformance.Faults) conformance.Rig {
			switch {
			case faults.HasLimit:
				return newRig(t, server.Start(t, server.Options{MaxDeploys: 1}), faults)
			case faults.NoAgent:
				return newRig(t, server.Start(t, server.Options{AgentTimeout: agentTimeout}), faults)
			case faults.HoldIn != "":
				return newRig(t, slow, faults)
			}
			return newRig(t, shared, faults)
		})
	})
}

func newRig(t *testing.T, running *server.Server, faults conformance.Faults) *rig {
	t.Helper()
	r := &rig{
		ironic: running, endpoint: running.Endpoint, before: hardware.PowerOn, now: time.Now(), password: password, disk: conformance.DiskForeign, faults: faults,
	}
	if faults.MissesDisk {
		r.second = conformance.DiskForeign
	}
	options := ironic.Options{Endpoint: running.Endpoint, DeployInterface: "direct", Clock: r.Now, Credentials: r.credentials}
	r.fixture = newFixture(t, options)
	r.bmcPassword = r.host.BMC.Password
	r.gate = newGate(t, running.Endpoint, r.nodeName())
	r.options.Endpoint = r.gate.URL
	r.serveImage()
	r.agent = server.StartAgent(t, running.Endpoint, r.host.BootMAC, server.AgentOptions{
		Absent:     faults.NoAgent || slices.Contains(withoutAgent, faults.HoldIn),
		WriteImage: func(ctx context.Context, _ server.Image, _ string) error { return r.write(ctx, faults) },
		Erase:      func(string) error { return r.touch(t.Context(), conformance.DiskErased, cleaning, nil) },
	})
	r.Restart()
	return r
}

func (r *rig) nodeName() string { return r.host.Namespace + "~" + r.host.Name }

func (r *rig) credentials(context.Context) (ironic.Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ironic.Credentials{Username: username, Password: r.password}, nil
}

func (r *rig) Installer() hardware.Installer { return r.installer }
func (r *rig) Other() hardware.Installer     { return ironic.New(r.options) }
func (r *rig) Restart()                      { r.restart() }
func (r *rig) Host() hardware.Host           { return r.host }
func (r *rig) Image() hardware.Image         { return r.image }

func (r *rig) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Advance lets time pass for the Installer, and a little of it for Ironic, whose clock is real.
func (r *rig) Advance(d time.Duration) {
	r.mu.Lock()
	r.now = r.now.Add(d)
	r.mu.Unlock()
	passing := realTime
	if d > time.Minute/2 {
		passing = longTime
	}
	time.Sleep(passing)
	r.beHardware()
}

// beHardware does what fake hardware does not: it has a power state before one is asked for, and an inventory.
func (r *rig) beHardware() {
	n := r.node()
	if n == nil {
		return
	}
	if r.faults.HoldIn == "inspect wait" && !r.hasInspector {
		r.useInspector()
	}
	// What is written past Ironic stops it for a moment, in which a state may be missed.
	if !r.hasInventory && r.faults.HoldIn == "" {
		r.ironic.StoreInventory(r.nodeName(), inspected, "{}")
		r.hasInventory = true
	}
	if n.Power == "" && n.TargetPower == "" && n.State == "manageable" {
		r.setPower(r.before)
	}
}

// known is what is read of a node past the Installer.
type known struct {
	Power       string `json:"power_state"`
	TargetPower string `json:"target_power_state"`
	State       string `json:"provision_state"`
	Reservation string `json:"reservation"`
	DeployStep  struct {
		Step string `json:"step"`
	} `json:"deploy_step"`
	CleanStep struct {
		Step string `json:"step"`
	} `json:"clean_step"`
}

// node returns the server's node; nil: Ironic does not know the server.
func (r *rig) node() *known {
	r.Helper()
	status, answer, err := server.Ask(context.Background(), r.endpoint, http.MethodGet, "/v1/nodes/"+r.nodeName(), "")
	if err != nil {
		r.Fatal(err)
	}
	if status == http.StatusNotFound {
		return nil
	}
	n := &known{}
	if err := json.Unmarshal(answer, n); err != nil {
		r.Fatal(err)
	}
	return n
}

// setPower has Ironic change the power, as somebody else does. While Ironic works on the node it refuses.
func (r *rig) setPower(to hardware.PowerState) {
	r.Helper()
	r.send(http.MethodPut, "/states/power", map[string]string{"target": map[hardware.PowerState]string{hardware.PowerOn: "power on", hardware.PowerOff: "power off"}[to]})
}

// send sends a request for the node to Ironic, past the gate, and returns the status of the answer.
func (r *rig) send(method, path string, body any) int {
	r.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		r.Fatal(err)
	}
	status, _, err := server.Ask(context.Background(), r.endpoint, method, "/v1/nodes/"+r.nodeName()+path, string(encoded))
	if err != nil {
		r.Fatal(err)
	}
	return status
}

func (r *rig) Power() hardware.PowerState { return r.powerOf(r.node()) }

func (r *rig) powerOf(n *known) hardware.PowerState {
	switch {
	case n == nil || n.Power == "":
		return r.before
	case n.Power == "power on":
		return hardware.PowerOn
	default:
		return hardware.PowerOff
	}
}

func (r *rig) CutPower() {
	r.before = hardware.PowerOff
	for begun := time.Now(); r.Power() != hardware.PowerOff; time.Sleep(pollInterval) {
		if time.Since(begun) > patience {
			r.Fatal("Ironic does not power the node off")
		}
		r.setPower(hardware.PowerOff)
	}
}

func (r *rig) SilenceBMC(silent bool) { r.gate.change(func(g *gate) { g.isSilent = silent }) }
func (r *rig) Vanish(gone bool)       { r.gate.change(func(g *gate) { g.hasHid = gone }) }

func (r *rig) Occupy(busy bool) {
	if !busy {
		r.ironic.Reserve(r.nodeName(), "")
		return
	}
	for begun := time.Now(); ; time.Sleep(pollInterval) {
		switch n := r.node(); {
		case n != nil && n.Reservation == "":
			r.ironic.Reserve(r.nodeName(), neighbour)
			return
		case time.Since(begun) > patience:
			r.Fatal("Ironic does not let go of the node")
		}
	}
}

func (r *rig) RotateCredentials() { r.gate.change(func(g *gate) { g.password = "rotated" }) }

func (r *rig) TakeCredentials() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.password = "rotated"
}

// FillLimit has Ironic wait for the agent of another server, or cancels that.
func (r *rig) FillLimit(full bool) {
	if full {
		options := r.options
		options.Endpoint, options.Credentials, options.Clock = r.endpoint, nil, nil
		r.neighbour, r.attempt = newFixture(r.T, options), attemptOf(1)
		r.neighbour.image = r.image
		r.neighbour.repeat(func() error { return r.neighbour.install(r.attempt) }, func(seen hardware.Observation) bool {
			return seen.Attempt != nil && seen.Attempt.Step == hardware.StepBooting
		})
		return
	}
	r.neighbour.repeat(func() error { return r.neighbour.cancel(r.attempt) }, func(seen hardware.Observation) bool {
		return seen.Attempt != nil && seen.Attempt.State == hardware.AttemptFailed
	})
}

// withoutAgent are the states that are held, or followed by one that is, because no agent comes: Ironic refuses a cancel while it holds the node's lock for an agent.
var withoutAgent = []string{"deploying", "wait call-back", "cleaning", "clean wait"}

// States of a node whose agent is at work.
var (
	deploying = []string{"deploying", "wait call-back"}
	cleaning  = []string{"cleaning", "clean wait"}
)

// write does what the agent does with an image.
func (r *rig) write(ctx context.Context, faults conformance.Faults) error {
	var failure error
	switch {
	case faults.DiskError:
		failure = errors.New("Error writing image to device: Writing image to device /dev/sda failed")
	case faults.WrongDigest:
		failure = errors.New("Image failed to verify against checksum")
	}
	return r.touch(ctx, r.image.Checksum, deploying, failure)
}

// touch leaves on the disk what it says, unless it fails or Ironic has taken the node to a state that is none of these meanwhile: it has powered the server off then.
func (r *rig) touch(ctx context.Context, leaves string, states []string, failure error) error {
	r.setDisk(conformance.DiskPartial, 0)
	holds := r.faults.AgentHangs || r.faults.HoldIn == "write_image" || r.faults.HoldIn == "erase_devices_metadata"
	var n *known
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(stepTime):
		}
		if n = r.node(); !holds || n == nil || !slices.Contains(states, n.State) || time.Since(begun) > patience {
			break
		}
	}
	switch {
	case failure != nil:
		return failure
	case n == nil || !slices.Contains(states, n.State):
		return errors.New("the server was powered off")
	case leaves == conformance.DiskErased:
		r.setDisk(leaves, 0)
	default:
		r.setDisk(leaves, 1)
	}
	return nil
}

func (r *rig) setDisk(content string, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disk = content
	r.writes += writes
}

func (r *rig) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

func (r *rig) Disk() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.disk
}

// Running is what the disk holds, unless Ironic has the server boot its agent.
func (r *rig) Running() string {
	n := r.node()
	r.hasLostNode = r.hasLostNode && (n == nil || n.State != "active")
	switch {
	case r.hasLostNode:
		return ""
	case r.powerOf(n) != hardware.PowerOn:
		return ""
	case n == nil:
		return r.Disk()
	}
	switch n.State {
	case "enroll", "verifying", "manageable", "available", "active", "inspecting":
		return r.Disk()
	default:
		return ""
	}
}

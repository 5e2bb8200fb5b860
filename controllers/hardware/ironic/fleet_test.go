package ironic_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// fleetSize is the number of nodes, and fleetLimit how many Ironic deploys, and how many it cleans, at the same time. When it starts it fails no more than 8 nodes
	// that it was deploying when it died (periodic_max_workers). The others stay in that state until it starts again.
	fleetSize, fleetLimit = 40, 6
	// fleetTimeout, in seconds, is when Ironic gives an agent up.
	fleetTimeout = 8
	// fleetPatience is when the test gives up.
	fleetPatience = 4 * time.Minute
	// killAfter is how many nodes are installed when Ironic is killed.
	killAfter = fleetSize / 2
)

// trouble is what goes wrong on a node, once.
type trouble string

// The troubles. Those of an agent fail an attempt; the others only hold it up.
const (
	noTrouble       trouble = "nothing"
	failingWrite    trouble = "the disk cannot be written"
	missingAgent    trouble = "no agent comes to install"
	silentAgent     trouble = "the agent is silent while it writes"
	noErasingAgent  trouble = "no agent comes to erase"
	lockedByOther   trouble = "another conductor has locked the node"
	maintainedAgain trouble = "a person has the node in maintenance"
)

// Every fifth node lives a whole life, with the troubles of longTroubles one after the other. The others are installed once, with those of shortTroubles.
const longLife = 5

var (
	longTroubles  = []trouble{noTrouble, failingWrite, missingAgent, lockedByOther, silentAgent, maintainedAgain, noErasingAgent, lockedByOther}
	shortTroubles = []trouble{noTrouble, failingWrite, noTrouble, missingAgent, noTrouble, noTrouble, silentAgent, noTrouble, failingWrite}
)

// excuses are the reasons by which an attempt may fail when there is this trouble.
var excuses = map[trouble][]hardware.Reason{
	failingWrite: {hardware.ReasonDiskError}, missingAgent: {hardware.ReasonAgentMissing}, silentAgent: {hardware.ReasonAgentMissing, hardware.ReasonAgentSilent},
	noErasingAgent: {hardware.ReasonAgentMissing, hardware.ReasonInstallerFailed},
}

// fleet is what the nodes share.
type fleet struct {
	*testing.T
	ironic    *server.Server
	installer *ironic.Installer
	members   []*member
	// workers bounds how many calls for attempts are made at the same time, as a controller does: Ironic counts before it takes work on, and takes as much above
	// its limit as is asked for at the same time.
	workers chan struct{}
	// alive is held for writing while Ironic is killed and started again.
	alive sync.RWMutex
	// installed counts the nodes that are installed for the first time; halfway is closed when it is time to kill Ironic.
	installed atomic.Int64
	halfway   chan struct{}
	// begun and ended are when Ironic was killed and answered again.
	begun, ended time.Time
	// refusals counts the refusals by a limit.
	refusals atomic.Int64
}

// member is a node of the fleet.
type member struct {
	*fixture
	fleet  *fleet
	agent  *server.Agent
	number int64
	// isLong says that the node lives a whole life.
	isLong bool
	// succeeded and interrupted count the installs that have succeeded, and those that failed because Ironic was killed.
	succeeded, interrupted int64
	// written counts the images that the agent has written completely.
	written atomic.Int64

	mu      sync.Mutex
	trouble trouble
	// isErasing says that the attempt is an erase.
	isErasing bool
	// recovered ends the silence of the agent.
	recovered context.Context
	recover   context.CancelFunc
}

// TestAFleetLivesItsLifeWithEveryTrouble has Ironic to itself: one Ironic uses one core, and 40 nodes all of that.
func TestAFleetLivesItsLifeWithEveryTrouble(t *testing.T) {
	require.Alone(t)
	f := &fleet{T: t, halfway: make(chan struct{}), workers: make(chan struct{}, 4)}
	f.ironic = server.Start(t, server.Options{MaxDeploys: fleetLimit, MaxCleans: fleetLimit, AgentTimeout: fleetTimeout, PowerSync: never})
	for i := range fleetSize {
		has, isLong := shortTroubles[i%len(shortTroubles)], i%longLife == 0
		if isLong {
			has = longTroubles[i/longLife%len(longTroubles)]
		}
		f.members = append(f.members, f.newMember(has, isLong))
	}
	f.installer = f.members[0].slowly()
	var background sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	background.Go(func() { f.wakeAgents(ctx) })
	background.Go(func() { f.killHalfway(ctx) })

	begun := time.Now()
	var living sync.WaitGroup
	for i, m := range f.members {
		living.Go(func() {
			t.Run(fmt.Sprintf("%d: %s", i, m.trouble), func(t *testing.T) {
				m.T, m.installer = t, f.installer
				m.lives()
			})
		})
	}
	living.Wait()
	stop()
	background.Wait()
	interrupted := int64(0)
	for _, m := range f.members {
		interrupted += m.interrupted
	}
	t.Logf("%d nodes in %s: %d refusals by a limit, %d attempts ended by the death of Ironic, which took %s to come back",
		fleetSize, time.Since(begun).Round(time.Second), f.refusals.Load(), interrupted, f.ended.Sub(f.begun).Round(time.Second))
	if f.refusals.Load() == 0 || f.ended.IsZero() {
		t.Error("no limit was reached, or Ironic was not killed")
	}
}

func (f *fleet) newMember(has trouble, isLong bool) *member {
	m := &member{fixture: newFixture(f.T, ironic.Options{Endpoint: f.ironic.Endpoint, DeployInterface: "direct"}), fleet: f, trouble: has, isLong: isLong}
	m.recovered, m.recover = context.WithCancel(f.Context())
	f.Cleanup(m.recover)
	m.serveImage()
	m.agent = server.StartAgent(f.T, f.ironic.Endpoint, m.host.BootMAC, server.AgentOptions{Absent: true, Interval: restTime})
	return m
}

// lives is the life of a node.
func (m *member) lives() {
	if m.isLong {
		m.succeeds(m.inspect)
	}
	m.installs()
	if m.fleet.installed.Add(1) == killAfter {
		close(m.fleet.halfway)
	}
	if m.isLong {
		m.livesOn()
	}
	if n := m.written.Load(); n < m.succeeded || n > m.succeeded+m.interrupted {
		m.Errorf("%d images were written, %d installs have succeeded and %d were ended by the death of Ironic", n, m.succeeded, m.interrupted)
	}
	if m.troubled() != noTrouble {
		m.Errorf("the trouble has not come: %s", m.trouble)
	}
	m.until("active and on", func() bool { n := m.stored(); return n.State == "active" && n.Power == "power on" })
}

// livesOn is what comes after the first install: the node is rolled, erased, installed for the next, released, and installed once more.
func (m *member) livesOn() {
	m.installs()
	m.erases(hardware.EraseMetadata)
	m.installs()
	m.erases(hardware.EraseNone)
	m.until("manageable and off", func() bool { n := m.stored(); return n.State == "manageable" && n.Power == "power off" })
	m.installs()
}

func (m *member) installs() {
	m.Helper()
	m.setErasing(false)
	install := m.install
	switch has := m.troubled(); {
	case m.succeeded == 0: // Ironic need not know the node yet
	case has == lockedByOther:
		install = m.locked()
	case has == maintainedAgain:
		install = m.maintained()
	}
	m.succeeds(install)
	m.succeeded++
	m.expectPower(hardware.PowerOn)
}

func (m *member) erases(mode hardware.EraseMode) {
	m.Helper()
	m.setErasing(true)
	m.succeeds(m.eraseWith(mode))
	m.repeat(func() error { return nil }, func(seen hardware.Observation) bool { return seen.Power == hardware.PowerOff })
}

// succeeds makes attempts until one succeeds. Only what was excused may fail, and each trouble once.
func (m *member) succeeds(call func(hardware.Attempt) error) {
	m.Helper()
	for {
		m.number++
		begun := time.Now()
		status := m.untilOver(attemptOf(m.number), call)
		if status.State == hardware.AttemptSucceeded {
			return
		}
		m.excuse(status, begun)
	}
}

// untilOver is untilEnded with the patience that a node needs which waits for others.
func (m *member) untilOver(attempt hardware.Attempt, call func(hardware.Attempt) error) hardware.AttemptStatus {
	m.Helper()
	var status hardware.AttemptStatus
	for begun := time.Now(); time.Since(begun) < fleetPatience; time.Sleep(listAge) {
		m.fleet.workers <- struct{}{}
		err := call(attempt)
		<-m.fleet.workers
		switch kind := hardware.KindOf(err); {
		case hardware.ReasonOf(err) == hardware.ReasonInstallerFull:
			m.fleet.refusals.Add(1)
		case err != nil && kind != hardware.Busy && kind != hardware.Unreachable && kind != hardware.Conflict:
			m.Fatal(err)
		}
		if seen := m.observe().Attempt; seen != nil && seen.Number == attempt.Number {
			if status = *seen; status.State != hardware.AttemptRunning {
				return status
			}
		}
	}
	m.Fatalf("attempt %d has not ended: %+v, and the node is %+v", attempt.Number, status, m.stored())
	return status
}

// excuse accepts a failure that the trouble of the node explains, which is over then, or the death of Ironic.
func (m *member) excuse(status hardware.AttemptStatus, begun time.Time) {
	m.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(excuses[m.trouble], status.Reason) {
		m.trouble = noTrouble
		m.recover()
		return
	}
	m.fleet.alive.RLock()
	defer m.fleet.alive.RUnlock()
	wasKilled := !m.fleet.ended.IsZero() && begun.Before(m.fleet.ended)
	if wasKilled && (strings.Contains(status.Message, "can't be resumed by conductor") || status.Reason == hardware.ReasonAgentMissing) {
		m.interrupted++
		return
	}
	m.Fatalf("attempt %d of a node where %s failed at %s by %s: %s", status.Number, m.trouble, status.Step, status.Reason, status.Message)
}

func (m *member) troubled() trouble {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble
}

func (m *member) setErasing(erases bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isErasing = erases
}

// end ends the trouble.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = noTrouble
}

// locked returns an install of a node that another conductor has locked until Ironic has refused it twice.
func (m *member) locked() func(hardware.Attempt) error {
	m.until("locked", func() bool {
		if n := m.stored(); n.State == "" || n.Reservation != "" {
			return false
		}
		m.reserve(neighbour)
		return m.stored().Reservation == neighbour
	})
	refused := 0
	return func(attempt hardware.Attempt) error {
		err := m.install(attempt)
		if err != nil && strings.Contains(err.Error(), neighbour) {
			if refused++; refused == 2 {
				m.reserve("")
				m.end()
			}
		}
		return err
	}
}

func (m *member) reserve(conductor string) {
	m.fleet.alive.RLock()
	defer m.fleet.alive.RUnlock()
	m.fleet.ironic.Reserve(m.name(), conductor)
}

// maintained returns an install of a node that is in maintenance until the attempt has waited for a while. The Installer must leave such a maintenance alone.
func (m *member) maintained() func(hardware.Attempt) error {
	m.insist(http.MethodPut, `{"reason": "a fan is being replaced"}`)
	calls := 0
	return func(attempt hardware.Attempt) error {
		if calls++; calls == 5 {
			if n := m.stored(); n.State != "" && (!n.Maintenance || n.State != "active") {
				m.Errorf("a person has the node in maintenance, and it is %+v", n)
			}
			m.insist(http.MethodDelete, "")
			m.end()
		}
		return m.install(attempt)
	}
}

// insist changes the maintenance of the node as soon as Ironic lets it.
func (m *member) insist(method, body string) {
	m.Helper()
	m.until("maintenance", func() bool {
		status, _, err := server.Ask(m.Context(), m.options.Endpoint, method, "/v1/nodes/"+m.name()+"/maintenance", body)
		return err == nil && status == http.StatusAccepted
	})
}

package rack

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// Server is a simulated server.
type Server struct {
	rack      *Rack
	name      string
	spec      ServerSpec
	inventory hardware.Inventory
	bmc       *bmc.BMC
	log       *slog.Logger

	mu     sync.Mutex
	faults Faults
	power  hardware.PowerState
	// cut takes the power away; nil while it is off.
	cut context.CancelCauseFunc
	// again: the power comes back as soon as it is off.
	again bool
	// stop ends the operating system in order; nil while none runs.
	stop  func(outcome)
	state State
}

// State is what a person in front of the server sees, and more.
type State struct {
	Power hardware.PowerState
	// Step is the last one passed since power-on; empty while off.
	Step Step
	// Doing says it in words: "POST", "no bootable device".
	Doing string
	Since time.Time
	// OS is the operating system that runs, and Node its name in a cluster; empty for none.
	OS, Node string
	// Boots counts the boots since the rack was made.
	Boots int
}

func newServer(r *Rack, spec ServerSpec) (*Server, error) {
	personality, err := bmc.PersonalityNamed(cmp.Or(spec.Profile.BMC, "generic"))
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", spec.Name, err)
	}
	if spec.DiskBytes == 0 {
		spec.DiskBytes = defaultDisk
	}
	if spec.Username == "" {
		spec.Username = "root"
	}
	if spec.Password == "" {
		spec.Password = randomText()
	}
	s := &Server{
		rack: r, name: spec.Name, spec: spec, inventory: spec.Profile.inventory(spec.Name, spec.DiskBytes), faults: spec.Faults,
		power: hardware.PowerOff, log: r.options.Log.With("server", spec.Name),
		state: State{Power: hardware.PowerOff, Doing: "off", Since: r.options.Clock.Now()},
	}
	s.bmc = bmc.New(bmc.Options{
		Name: spec.Name, Address: spec.BMCAddress, Machine: s, Hardware: s.inventory, Authority: r.authority, Username: spec.Username,
		Password: spec.Password, Personality: personality, Now: r.options.Clock.Now, Log: s.log,
	})
	s.bmc.SetFaults(spec.Faults.BMC)
	return s, nil
}

// Name is the server's.
func (s *Server) Name() string { return s.name }

// BMCAddress is the URL of its Redfish service, scheme and host only. It is known once the rack was started.
func (s *Server) BMCAddress() string { return s.bmc.Address() }

// SystemPath is the Redfish path of the server's ComputerSystem.
func (s *Server) SystemPath() string { return bmc.PathSystem }

// Credentials are the BMC's.
func (s *Server) Credentials() (username, password string) { return s.spec.Username, s.spec.Password }

// BMC is the server's management controller.
func (s *Server) BMC() *bmc.BMC { return s.bmc }

// BootMAC is the address that the server network-boots with.
func (s *Server) BootMAC() string { return s.inventory.NICs[0].MAC }

// UUID is the DMI product UUID.
func (s *Server) UUID() string { return s.inventory.SystemUUID }

// DiskPath is the file that stands for the server's disk.
func (s *Server) DiskPath() string { return filepath.Join(s.rack.options.Dir, s.name+".disk") }

// State is how the server stands.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Power = s.power
	return state
}

// hardwareOfThisBoot is what is on the buses now.
func (s *Server) hardwareOfThisBoot() hardware.Inventory {
	s.mu.Lock()
	missing := s.faults.MissingGPUs
	s.mu.Unlock()
	out := s.inventory
	out.PCIDevices = slices.Clone(out.PCIDevices)
	for i := len(out.PCIDevices) - 1; i >= 0 && missing > 0; i-- {
		if isGPU(out.PCIDevices[i]) {
			out.PCIDevices = slices.Delete(out.PCIDevices, i, i+1)
			missing--
		}
	}
	return out
}

// isGPU says whether the device is a display controller: PCI base class 03.
func isGPU(device hardware.PCIDevice) bool { return strings.HasPrefix(device.Class, "03") }

func (s *Server) doing(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Doing, s.state.Since = fmt.Sprintf(format, args...), s.rack.options.Clock.Now()
}

// step marks a point on the server's way. The error is the power's end.
func (s *Server) step(ctx context.Context, step Step) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	s.state.Step, s.state.Doing, s.state.Since = step, string(step), s.rack.options.Clock.Now()
	lost := s.faults.PowerLossAt == step
	if lost {
		s.faults.PowerLossAt = ""
	}
	s.mu.Unlock()
	s.log.Debug("step", "step", string(step))
	if s.rack.options.OnStep != nil {
		s.rack.options.OnStep(s, step)
	}
	if lost {
		s.PowerLoss()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func randomText() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails, see crypto/rand
	return hex.EncodeToString(raw)
}

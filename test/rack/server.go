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
	// faultsReplaced is closed when faults is replaced.
	faultsReplaced chan struct{}
	power          hardware.PowerState
	// cutPower ends everything that runs on the server; nil while the power is off.
	cutPower context.CancelCauseFunc
	// restart means that the power is switched on again as soon as it is off.
	restart bool
	// stop shuts the operating system down; nil while none runs.
	stop  func(outcome)
	state State
}

// State is the observable state of a server.
type State struct {
	Power hardware.PowerState
	// Step is the last step since power-on; empty while the server is off.
	Step Step
	// Activity describes what the server does: "POST", "no bootable device".
	Activity string
	Since    time.Time
	// OS is the operating system that runs, and Node the name of its Node; empty while there is none.
	OS, Node string
	// Boots counts the boots since the rack was created.
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
		rack: r, name: spec.Name, spec: spec, inventory: spec.Profile.inventory(spec.Name, spec.DiskBytes, spec.DataDisks), faults: spec.Faults, faultsReplaced: make(chan struct{}),
		power: hardware.PowerOff, log: r.options.Log.With("server", spec.Name),
		state: State{Power: hardware.PowerOff, Activity: "off", Since: r.options.Clock.Now()},
	}
	s.bmc = bmc.New(bmc.Options{
		Name: spec.Name, Address: spec.BMCAddress, Machine: s, Hardware: s.inventory, Authority: r.authority, Username: spec.Username,
		Password: spec.Password, Personality: personality, Now: r.options.Clock.Now, Log: s.log,
	})
	s.bmc.SetFaults(spec.Faults.BMC)
	return s, nil
}

// Name returns the name of the server.
func (s *Server) Name() string { return s.name }

// BMCAddress returns the URL of the Redfish service, scheme and host only. The rack must have been started.
func (s *Server) BMCAddress() string { return s.bmc.Address() }

// SystemPath returns the Redfish path of the server's ComputerSystem.
func (s *Server) SystemPath() string { return bmc.PathSystem }

// Credentials returns the user name and password of the BMC.
func (s *Server) Credentials() (username, password string) { return s.spec.Username, s.spec.Password }

// BMC returns the server's management controller.
func (s *Server) BMC() *bmc.BMC { return s.bmc }

// BootMAC returns the MAC address of the card that the server boots from.
func (s *Server) BootMAC() string { return s.inventory.NICs[0].MAC }

// UUID returns the DMI product UUID.
func (s *Server) UUID() string { return s.inventory.SystemUUID }

// DiskPath returns the path of the file with the content of the server's first disk.
func (s *Server) DiskPath() string { return s.diskPath(0) }

// DataDiskPath returns the path of the file with the content of a further disk, which are counted from 1.
func (s *Server) DataDiskPath(n int) string { return s.diskPath(n) }

func (s *Server) diskPath(n int) string {
	if n == 0 {
		return filepath.Join(s.rack.options.Dir, s.name+".disk")
	}
	return filepath.Join(s.rack.options.Dir, fmt.Sprintf("%s.disk%d", s.name, n))
}

// BIOSVersion returns the version of the firmware that the server was delivered with.
func (s *Server) BIOSVersion() string { return s.inventory.BIOSVersion }

// Disks returns the disks of the server, the first one first.
func (s *Server) Disks() []hardware.Disk { return slices.Clone(s.inventory.Disks) }

// State returns the state of the server.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Power = s.power
	return state
}

// presentHardware returns the inventory without the GPUs and the disk that are missing.
func (s *Server) presentHardware() hardware.Inventory {
	s.mu.Lock()
	missing, disk, narrow, bios := s.faults.MissingGPUs, s.faults.MissingDisk, s.faults.NarrowGPUs, s.faults.BIOSVersion
	s.mu.Unlock()
	out := s.hardwareWithout(missing)
	out.BIOSVersion = cmp.Or(bios, out.BIOSVersion)
	for i := range out.PCIDevices {
		if isGPU(out.PCIDevices[i]) && narrow > 0 {
			out.PCIDevices[i].LinkWidth = 8
			narrow--
		}
	}
	out.Disks = slices.DeleteFunc(slices.Clone(out.Disks), func(d hardware.Disk) bool { return disk != "" && d.SerialNumber == disk })
	return out
}

// drivenHardware returns the inventory without the GPUs that are missing, and without those that fall off the bus when their driver is loaded.
func (s *Server) drivenHardware() hardware.Inventory {
	s.mu.Lock()
	missing := s.faults.MissingGPUs + s.faults.FallenGPUs
	s.mu.Unlock()
	return s.hardwareWithout(missing)
}

// hardwareWithout returns the inventory without so many GPUs.
func (s *Server) hardwareWithout(missing int) hardware.Inventory {
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

// isGPU reports whether the device is a display controller: PCI base class 03.
func isGPU(device hardware.PCIDevice) bool { return strings.HasPrefix(device.Class, "03") }

// setActivity sets the description of what the server does.
func (s *Server) setActivity(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Activity, s.state.Since = fmt.Sprintf(format, args...), s.rack.options.Clock.Now()
}

// step records that the server has reached a step. It returns an error when the power is lost.
func (s *Server) step(ctx context.Context, step Step) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	s.state.Step, s.state.Activity, s.state.Since = step, string(step), s.rack.options.Clock.Now()
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

package baremetaloperator

import (
	"context"
	"slices"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// installation is what the service knows of the installation on a server.
type installation string

const (
	notInstalled installation = ""
	installing   installation = "installing"
	installed    installation = "installed"
	// unclean is the state after an installation that failed. Only cleaning ends it.
	unclean installation = "unclean"
)

// SimulatedServer is a Server in memory. The zero value is a server that is off and empty, and healthy.
type SimulatedServer struct {
	Faults
	// Accelerators are what inspection finds. They are set before it.
	Accelerators []Accelerator

	mu           sync.Mutex
	on           bool
	disk         Deployment
	installation installation
	isInspecting bool
	isInspected  bool
	hasService   bool
	health       *Health
	isPowerLost  bool
	isPowerDark  bool
	log          []string
}

// Switch presses the power button.
func (s *SimulatedServer) Switch(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// Disk returns what is installed.
func (s *SimulatedServer) Disk() Deployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk
}

// IsRunning reports whether the server is on and has an image.
func (s *SimulatedServer) IsRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on && s.disk.URL != ""
}

// History returns what was done with the disk, in order: deploy URL, clean mode.
func (s *SimulatedServer) History() []string {
	var out []string
	for _, entry := range s.Log() {
		if strings.HasPrefix(entry, string(Deploying)+" ") || strings.HasPrefix(entry, string(Cleaning)+" ") {
			out = append(out, entry)
		}
	}
	return out
}

// Log returns what was done with the server, in order: that of History, inspect, reboot, service, detach, delete.
func (s *SimulatedServer) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// SetHealth sets what the BMC reports.
func (s *SimulatedServer) SetHealth(health Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = &health
}

// SetPowerFailure sets whether the service cannot see the power any more. It cannot change the power then, and cleans nothing.
func (s *SimulatedServer) SetPowerFailure(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isPowerLost = is
}

// HidePower makes the BMC answer that it does not know whether the server is on.
func (s *SimulatedServer) HidePower(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isPowerDark = is
}

// RequestServicing asks for a change of the firmware. It is made when the server is powered on.
func (s *SimulatedServer) RequestServicing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasService = true
}

// Register implements Server.
func (s *SimulatedServer) Register(context.Context) Progress { return s.Next(Registering) }

// Adopt implements Server.
func (s *SimulatedServer) Adopt(context.Context) Progress { return s.Next(Adopting) }

// Prepare implements Server.
func (s *SimulatedServer) Prepare(context.Context) Progress { return s.Next(Preparing) }

// Inspect implements Server.
func (s *SimulatedServer) Inspect(_ context.Context, refresh bool) (*Hardware, Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isInspecting && (refresh || !s.isInspected) {
		s.isInspecting, s.isInspected, s.on = true, false, true
		return nil, Progress{Started: true}
	}
	if s.isInspecting {
		p := s.Next(Inspecting)
		if p.Problem != "" {
			s.isInspecting = false
		}
		if !p.Done {
			return nil, p
		}
		s.isInspecting, s.isInspected, s.on = false, true, false
		s.log = append(s.log, "inspect")
	}
	details := metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: "Example", ProductName: "GPU Server 8"},
		RAMMebibytes: 2 << 20, CPU: metal3.CPU{Arch: "x86_64", Count: 128},
	}
	return &Hardware{HardwareDetails: details, Accelerators: s.Accelerators}, Progress{Done: true}
}

// PoweredOn implements Server.
func (s *SimulatedServer) PoweredOn(context.Context) (*bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.Next(Looking); p.Problem != "" {
		return nil, errNoAnswer
	}
	if s.isPowerDark {
		return nil, nil
	}
	on := s.on
	return &on, nil
}

// SetPower implements Server.
func (s *SimulatedServer) SetPower(_ context.Context, power Power) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isPowerLost:
		return Progress{Problem: errNoAnswer.Error()}
	case !s.isPowerDark && s.on == (power == On) && power != Reboot:
		return Progress{Done: true}
	}
	p := s.Next(Powering)
	if p.Done {
		s.on, p.Done = power == On || power == Reboot, false
		if power == Reboot {
			s.log = append(s.log, "reboot")
		}
	}
	return p
}

// NeedsServicing implements Server.
func (s *SimulatedServer) NeedsServicing(context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasService
}

// Service implements Server.
func (s *SimulatedServer) Service(context.Context) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.Next(Servicing)
	if p.Done && s.hasService {
		s.hasService = false
		s.log = append(s.log, "service")
	}
	return p
}

// Deploy implements Server.
func (s *SimulatedServer) Deploy(ctx context.Context, url string, begin func(context.Context) (Deployment, error)) (Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installation == installed && s.disk.URL == url {
		return Progress{Done: true}, nil
	}
	if s.installation != installing || s.disk.URL != url {
		d, err := begin(ctx)
		if err != nil {
			return Progress{}, err
		}
		s.disk, s.installation, s.on = d, installing, false
	}
	p := s.Next(Deploying)
	switch {
	case p.Problem != "":
		s.installation, s.disk = unclean, Deployment{}
	case p.Done:
		s.installation, s.on = installed, true
		s.log = append(s.log, "deploy "+url)
	}
	return p, nil
}

// Clean implements Server.
func (s *SimulatedServer) Clean(_ context.Context, mode metal3.AutomatedCleaningMode) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.installation == notInstalled {
		return Progress{Done: true}
	}
	if s.isPowerLost {
		return Progress{Problem: errNoAnswer.Error()}
	}
	s.on = false // a ramdisk or nothing runs from now on, and never what was installed
	p := s.Next(Cleaning)
	if p.Done {
		s.disk, s.installation = Deployment{}, notInstalled
		s.log = append(s.log, "clean "+string(mode))
	}
	return p
}

// Detach implements Server.
func (s *SimulatedServer) Detach(context.Context) Progress { return s.forget(Detaching) }

// Delete implements Server.
func (s *SimulatedServer) Delete(context.Context) Progress { return s.forget(Deleting) }

func (s *SimulatedServer) forget(op Operation) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.Next(op)
	if p.Done {
		s.log = append(s.log, string(op))
	}
	return p
}

// Health implements Server.
func (s *SimulatedServer) Health(context.Context) Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health == nil {
		return HealthOK
	}
	return *s.health
}

// HasPowerFailure implements Server.
func (s *SimulatedServer) HasPowerFailure(context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isPowerLost
}

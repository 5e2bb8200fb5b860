package baremetaloperator

import (
	"context"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// Deployment is what is installed on a server.
type Deployment struct {
	// URL is that of the image.
	URL string
	// Checksum is ALGORITHM:DIGEST of the image, and Format that of its file, as the host has them.
	Checksum, Format string
	// UserData, NetworkData and MetaData are the contents of the config drive.
	UserData, NetworkData, MetaData []byte
}

// Hardware is what an inspection finds.
type Hardware struct {
	metal3.HardwareDetails `json:",inline"`
	// Accelerators are the devices that Ironic knows by their PCI ids. Releases of 2026 have the field; see AddConditions.
	Accelerators []Accelerator `json:"accelerators,omitempty"`
}

// Accelerator is a device of Hardware, in the fields of Metal3.
type Accelerator struct {
	Type       string `json:"type,omitempty"`
	VendorID   string `json:"vendorID,omitempty"`
	DeviceID   string `json:"deviceID,omitempty"`
	DeviceInfo string `json:"deviceInfo,omitempty"`
	PCIAddress string `json:"pciAddress,omitempty"`
}

// Progress is the result of an operation on a server.
type Progress struct {
	// Done is true when the operation has ended. It is called again while it has not.
	Done bool
	// Problem says why the operation failed. It is empty otherwise.
	Problem string
}

// Server is what the operator drives: a server and the service that installs it. Every method returns at once.
type Server interface {
	// Register checks the credentials. The problem is empty when they are good.
	Register(ctx context.Context) (problem string)
	// Inspect returns the hardware.
	Inspect(ctx context.Context) (*Hardware, Progress)
	// PoweredOn returns whether the server is on.
	PoweredOn(ctx context.Context) (bool, error)
	// SetPower changes the power. It is done when nothing had to be changed.
	SetPower(ctx context.Context, on bool) Progress
	// Deploy installs the image and boots the server with it.
	Deploy(ctx context.Context, d Deployment) Progress
	// Clean removes what is installed, erases what the mode says, and leaves the server off.
	Clean(ctx context.Context, mode metal3.AutomatedCleaningMode) Progress
}

// Operation names a method of a Server in a fault.
type Operation string

// Operations that can have a fault.
const (
	Registering Operation = "register"
	Inspecting  Operation = "inspect"
	Looking     Operation = "look"
	Powering    Operation = "power"
	Deploying   Operation = "deploy"
	Cleaning    Operation = "clean"
)

// SimulatedServer is a Server in memory. The zero value is a server that is off and empty.
type SimulatedServer struct {
	// Accelerators are what inspection finds. They are set before it.
	Accelerators []Accelerator

	mu       sync.Mutex
	on       bool
	disk     Deployment
	begun    Operation
	rounds   int
	problems map[Operation]int
	delays   map[Operation]int
	history  []string
}

// Fail makes the next calls of the operation fail. A negative number makes all of them fail.
func (s *SimulatedServer) Fail(op Operation, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problems == nil {
		s.problems = map[Operation]int{}
	}
	s.problems[op] = times
}

// Delay makes the operation take the number of calls before it is done.
func (s *SimulatedServer) Delay(op Operation, rounds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delays == nil {
		s.delays = map[Operation]int{}
	}
	s.delays[op] = rounds
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.history...)
}

// progress returns whether this call of the operation fails, or is not done yet. A failed Deploy leaves the server off.
func (s *SimulatedServer) progress(op Operation) Progress {
	if n := s.problems[op]; n != 0 {
		s.problems[op] = n - 1
		s.begun, s.rounds = "", 0
		return Progress{Problem: "the simulated server cannot " + string(op)}
	}
	if s.begun != op {
		s.begun, s.rounds = op, 0
	}
	s.rounds++
	if s.rounds <= s.delays[op] {
		return Progress{}
	}
	s.begun, s.rounds = "", 0
	return Progress{Done: true}
}

// Register implements Server.
func (s *SimulatedServer) Register(context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.problems[Registering]; n != 0 {
		s.problems[Registering] = n - 1
		return "the BMC does not answer"
	}
	return ""
}

// Inspect implements Server.
func (s *SimulatedServer) Inspect(context.Context) (*Hardware, Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress(Inspecting)
	details := metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: "Example", ProductName: "GPU Server 8"},
		RAMMebibytes: 2 << 20, CPU: metal3.CPU{Arch: "x86_64", Count: 128},
	}
	return &Hardware{HardwareDetails: details, Accelerators: s.Accelerators}, p
}

// PoweredOn implements Server.
func (s *SimulatedServer) PoweredOn(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.problems[Looking]; n != 0 {
		s.problems[Looking] = n - 1
		return false, errNoAnswer
	}
	return s.on, nil
}

// SetPower implements Server.
func (s *SimulatedServer) SetPower(_ context.Context, on bool) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == on {
		return Progress{Done: true}
	}
	p := s.progress(Powering)
	if p.Done {
		s.on, p.Done = on, false
	}
	return p
}

// Deploy implements Server.
func (s *SimulatedServer) Deploy(_ context.Context, d Deployment) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress(Deploying)
	if p.Done {
		s.disk, s.on = d, true
		s.history = append(s.history, "deploy "+d.URL)
	}
	return p
}

// Clean implements Server.
func (s *SimulatedServer) Clean(_ context.Context, mode metal3.AutomatedCleaningMode) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false // a ramdisk or nothing runs from now on, and never what was installed
	p := s.progress(Cleaning)
	if p.Done {
		s.disk = Deployment{}
		s.history = append(s.history, "clean "+string(mode))
	}
	return p
}

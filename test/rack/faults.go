package rack

import (
	"github.com/ingot-dev/ingot/test/bmc"
)

// Step is a point that a server passes on its way from power-on to node.
type Step string

// Steps, in order. A power loss can be set on each.
const (
	StepPOST         Step = "POST"         // the power-on self-test begins
	StepBootDocument Step = "BootDocument" // the boot document was fetched
	StepKernel       Step = "Kernel"       // the agent's kernel was fetched
	StepInitrd       Step = "Initrd"       // the agent's initrd was fetched
	StepAgent        Step = "Agent"        // the agent starts
	StepRegistered   Step = "Registered"   // the agent has registered and has its instructions
	StepWriting      Step = "Writing"      // the agent said that it writes
	StepErasing      Step = "Erasing"      // the agent said that it erases
	StepVerifying    Step = "Verifying"    // the agent said that it verifies
	StepReported     Step = "Reported"     // the agent's result was accepted; the reboot or power-off follows
	StepDiskBoot     Step = "DiskBoot"     // the firmware starts what is on the disk
	StepOS           Step = "OS"           // the operating system is up, cloud-init has run
	StepKubelet      Step = "Kubelet"      // kubelet starts
)

// Faults are what goes wrong with a server. The zero value is a server in good health.
type Faults struct {
	// BMC are the management controller's.
	BMC bmc.Faults
	// DeadBootNIC: the network card that boots gets no link; the firmware goes on with the disk.
	DeadBootNIC bool
	// DiskErrorAt: writing or clearing the byte at this offset, and those behind it, fails; 0: none.
	DiskErrorAt int64
	// CorruptImage: one bit of every image is turned on its way to this server.
	CorruptImage bool
	// PowerLossAt cuts the power when the server passes the step, once.
	PowerLossAt Step
	// PowerLossAfter cuts the power when the agent has written so many bytes in one boot, once; 0: never.
	PowerLossAfter int64
	// MissingGPUs is how many GPUs are not on the PCI bus from the next boot on.
	MissingGPUs int
	// UnhealthyGPUs is how many GPUs report errors that are no application's, from the next boot on.
	UnhealthyGPUs int
	// GPUsInUse: something holds the GPUs from the next boot on, so that neither their MIG mode nor their layout changes.
	GPUsInUse bool
	// RemoveUnit is a unit that is not on the disk from the next boot on, with its suffix: "ingot-gpu-mode.service".
	RemoveUnit string
	// ChangeProfile makes nvidia-mig-parted cut GPUs otherwise than it is told, from the next boot on.
	ChangeProfile ProfileChange
	// IncompletePool: the DRA driver publishes one slice less than it announces.
	IncompletePool bool
	// BootLoop: the agent's kernel panics after it has registered, and the firmware boots from the network again.
	BootLoop bool
}

// ProfileChange puts instances of the MIG profile To, "1g.20gb", where those of From are asked for.
type ProfileChange struct{ From, To string }

// SetFaults replaces the server's faults.
func (s *Server) SetFaults(faults Faults) {
	s.mu.Lock()
	s.faults = faults
	s.mu.Unlock()
	s.bmc.SetFaults(faults.BMC)
}

// Faults are those that are left: counts are used up, and a power loss happens once.
func (s *Server) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := s.faults
	faults.BMC = s.bmc.Faults()
	return faults
}

package rack

import (
	"github.com/ingot-dev/ingot/test/bmc"
)

// Step is a point that a server reaches between power-on and its Node.
type Step string

// Steps in their order. The power can be lost at each.
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

// Faults are the defects of a server. The zero value is a healthy server.
type Faults struct {
	// BMC has the faults of the management controller.
	BMC bmc.Faults
	// DeadBootNIC means that the network card that boots has no link. The firmware then boots from the disk.
	DeadBootNIC bool
	// DiskErrorAt is the offset from which on writing and clearing fail; 0: nowhere.
	DiskErrorAt int64
	// MissingDisk is the serial number of a disk that is not found from the next boot on. The BMC goes on reporting it.
	MissingDisk string
	// CorruptImage flips one bit of every image that this server downloads.
	CorruptImage bool
	// PowerLossAt is the step at which the power is lost, once.
	PowerLossAt Step
	// PowerLossAfter is how many bytes the agent writes in one boot before the power is lost, once; 0: never.
	PowerLossAfter int64
	// StallAfter is how many bytes the agent writes in one boot before the disk answers no more, until the faults are replaced; 0: never. A range that
	// is cleared counts while it is.
	StallAfter int64
	// MissingGPUs is how many GPUs are not on the PCI bus from the next boot on.
	MissingGPUs int
	// NarrowGPUs is how many GPUs have 8 of their 16 PCIe lanes from the next boot on.
	NarrowGPUs int
	// BIOSVersion is the version that the firmware has from the next boot on; empty: that of the profile. The BMC goes on reporting that one.
	BIOSVersion string
	// FallenGPUs is how many GPUs fall off the PCI bus when the installed system loads their driver, from the next boot on. The agent, which
	// has no driver, sees them.
	FallenGPUs int
	// UnhealthyGPUs is how many GPUs report errors of the hardware from the next boot on.
	UnhealthyGPUs int
	// GPUsInUse means that a process uses the GPUs from the next boot on, so that neither their MIG mode nor their layout can change.
	GPUsInUse bool
	// RemoveUnit is the name of a unit that is missing on the disk from the next boot on, with its suffix: "ingot-gpu-mode.service".
	RemoveUnit string
	// ChangeProfile makes nvidia-mig-parted create other instances than its configuration asks for, from the next boot on.
	ChangeProfile ProfileChange
	// IncompletePool means that the DRA driver publishes one slice less than it announces.
	IncompletePool bool
	// Dark means that the switch of the server's ports is dead: its kubelet reaches no cluster, and its BMC answers nobody.
	Dark bool
	// BootLoop means that the agent's kernel panics after the agent has registered, and that the firmware boots from the network again.
	BootLoop bool
}

// ProfileChange creates instances of the MIG profile To, "1g.20gb", in place of those of From.
type ProfileChange struct{ From, To string }

// SetFaults replaces the server's faults.
func (s *Server) SetFaults(faults Faults) {
	s.mu.Lock()
	s.faults = faults
	close(s.faultsReplaced)
	s.faultsReplaced = make(chan struct{})
	s.mu.Unlock()
	if faults.Dark {
		faults.BMC.Hang = bmc.All
	}
	s.bmc.SetFaults(faults.BMC)
}

// Faults returns the faults that are left: counts are used up, and a power loss happens once.
func (s *Server) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := s.faults
	faults.BMC = s.bmc.Faults()
	return faults
}

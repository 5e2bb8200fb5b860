package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Contents of a Rig's disk other than a complete image, which is named by its checksum.
const (
	// DiskForeign is a system that another owner left. It boots.
	DiskForeign = "foreign"
	// DiskPartial is an image that was not written completely or not verified. It must never boot.
	DiskPartial = "partial"
	// DiskErased is an empty disk. It does not boot.
	DiskErased = "erased"
)

// Faults are the defects of a Rig's server. The zero value is a sound server.
type Faults struct {
	// IgnorePowerOn and IgnorePowerOff are the numbers of requests that the BMC accepts without effect; -1 means all.
	IgnorePowerOn, IgnorePowerOff int
	// RefusePower means that the BMC refuses every change of power as busy.
	RefusePower bool
	// DeadBootNIC means that the server never asks for a boot document.
	DeadBootNIC bool
	// NoAgent means that the kernel or the initrd never starts the agent.
	NoAgent bool
	// AgentHangs means that the agent registers, writes a little and then stops reporting.
	AgentHangs bool
	// DiskError means that the agent cannot write to the disk.
	DiskError bool
	// MissesDisk means that the server has a second disk, and that the agent erases the first one alone.
	MissesDisk bool
	// WrongDigest means that the served image does not have the checksum that is asked for.
	WrongDigest bool
	// BootLoop means that the agent crashes and the server boots from the network again, without end.
	BootLoop bool
	// HasLimit means that the service that installs works on one server at a time.
	HasLimit bool
	// HoldIn is a state of what installs in which the server stays until its work is cancelled, or long enough to be met; empty: in none.
	HoldIn string
}

// Rig is one server, which is powered on and runs DiskForeign at first, and an Installer for it. Time passes only in
// Advance.
type Rig interface {
	// Installer returns the Installer under test.
	Installer() hardware.Installer
	// Other returns the Installer of a second process that runs at the same time.
	Other() hardware.Installer
	// Restart kills the Installer's process and starts another one, which knows only what is stored.
	Restart()
	// Host returns the server's identity.
	Host() hardware.Host
	// Now returns the time of the Rig's clock.
	Now() time.Time
	// Advance lets time pass for the server too. Writing an image or erasing the disks takes several minutes.
	Advance(d time.Duration)
	// Power returns the server's actual power state.
	Power() hardware.PowerState
	// CutPower interrupts the mains: the server is off afterwards.
	CutPower()
	// SilenceBMC makes what the Installer talks to unreachable, or reachable again: the BMC, or the service that installs.
	SilenceBMC(silent bool)
	// Occupy makes what the Installer talks to busy with something else on this server, or free again.
	Occupy(busy bool)
	// Vanish takes away what the Installer talks to of this server, or gives it back.
	Vanish(gone bool)
	// Delete has the service forget the server for good.
	Delete()
	// RotateCredentials changes the credentials on the far side, and TakeCredentials gives them to the Installer.
	RotateCredentials()
	TakeCredentials()
	// RotateBMC changes the password of the server's BMC, and TakeBMC gives it to the Installer.
	RotateBMC()
	TakeBMC()
	// BMCPassword returns the password with which the server's BMC is logged in to now, and whether it is the BMC's own.
	BMCPassword() (used string, isRight bool)
	// FillLimit has the service work on another server, or end that.
	FillLimit(full bool)
	// Image returns an image that the Installer can write.
	Image() hardware.Image
	// State returns the state in which what installs has the server, by the names of the Subject.
	State() string
	// Writes returns how often an image was written to the disk completely.
	Writes() int
	// Disk returns what the server's disk holds.
	Disk() string
	// SecondDisk returns what the server's second disk holds; empty: it has none.
	SecondDisk() string
	// Running returns what the server has booted from its disk and runs now, or "" when it is off or runs something else.
	Running() string
}

// Harness makes a Rig with these faults. Which ones it cannot make follows from what its Subject lacks.
type Harness func(t *testing.T, faults Faults) Rig

package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// What a Rig's disk may hold besides a whole image, which is named by its checksum.
const (
	// DiskForeign is what somebody else left: it boots.
	DiskForeign = "foreign"
	// DiskPartial is an image that was not written completely, or not verified: it must never boot.
	DiskPartial = "partial"
	// DiskErased boots nothing.
	DiskErased = "erased"
)

// Faults are what is wrong with a Rig's server. The zero value is a sound one.
type Faults struct {
	// IgnorePowerOn and IgnorePowerOff are how many requests the BMC accepts without effect; -1: all.
	IgnorePowerOn, IgnorePowerOff int
	// RefusePower: the BMC answers, and refuses every change of power as busy.
	RefusePower bool
	// DeadBootNIC: it never asks for a boot document.
	DeadBootNIC bool
	// NoAgent: kernel or initrd never come up.
	NoAgent bool
	// AgentHangs: the agent registers, writes a little, and reports no more.
	AgentHangs bool
	// DiskError: the agent cannot write.
	DiskError bool
	// WrongDigest: the image as served is not the one that is named.
	WrongDigest bool
	// BootLoop: the agent dies and the server reboots from the network again and again.
	BootLoop bool
}

// Rig is one server, powered on and running DiskForeign at first, and an Installer for it, in a world where time passes only when told.
type Rig interface {
	// Installer is the one under test.
	Installer() hardware.Installer
	// Restart kills the Installer's process and starts another one, which knows what is stored alone.
	Restart()
	// Host names the server.
	Host() hardware.Host
	// Now is the world's time.
	Now() time.Time
	// Advance lets time pass: the server lives meanwhile. Bytes flow for several minutes when an image is written or disks are erased.
	Advance(d time.Duration)
	// Power is the real power state.
	Power() hardware.PowerState
	// CutPower takes the mains away and gives them back: the server is off then.
	CutPower()
	// SilenceBMC makes the BMC unreachable, or reachable again.
	SilenceBMC(silent bool)
	// Disk is what the server's disk holds.
	Disk() string
	// Running is what the server booted from its disk and runs now; "" when it is off or runs something else.
	Running() string
}

// Harness makes a Rig, or returns nil where it cannot make one with these faults.
type Harness func(t *testing.T, faults Faults) Rig

// Package selferase says what the disks that erase themselves have in common, whichever commands they speak.
package selferase

import (
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Parts is the number of parts in which a disk counts its progress: NVMe, SCSI and ATA have a fraction of 65536.
const Parts = 65536

// State is how far the erase of a disk by itself is.
type State struct {
	// IsRunning is true while the disk erases itself and refuses reads and writes; HasFailed when its last erase failed.
	IsRunning, HasFailed bool
	// Done is the part that is done, of Parts, while IsRunning.
	Done int
}

// Drive is a disk as the commands see it by which it erases itself.
type Drive interface {
	// Methods returns the methods that the disk has, the best first. The error says why it has fewer than it could have; the methods are valid
	// beside it.
	Methods() ([]hardware.EraseMethod, error)
	// Begin begins an erase. Some have ended when it returns, the others go on until State says otherwise, also after a power cut.
	Begin(hardware.EraseMethod) error
	// State returns how far the erase is.
	State() (State, error)
	// Recover makes the disk readable and writable again after an erase that failed or that a power cut has ended.
	Recover() error
	// Estimate returns how long the disk says that the method takes, 0 when it does not say.
	Estimate(hardware.EraseMethod) time.Duration
	// HasZerosAfterDiscard reports whether the disk guarantees that blocks read as zeros once it has deallocated them.
	HasZerosAfterDiscard() bool
}

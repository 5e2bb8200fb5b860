package netboot

import (
	"context"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Session is what is kept durably of a host's current attempt: enough for any replica to serve the host and for any
// successor of a killed process to go on.
type Session struct {
	// HostUID, Namespace and Name identify the host.
	HostUID, Namespace, Name string
	// BootMAC is the address the host network-boots with.
	BootMAC string
	// Work is what the attempt is to do.
	Work
	// Since is when the attempt was wanted first. The boot service answers only between OpenedAt and Deadline.
	Since, Deadline time.Time
	// AttemptStatus is how the attempt stands; its Number is 0 while the host has none. It is what an Observation shows.
	hardware.AttemptStatus
	// StepAt is when the step was entered, OpenedAt when we powered the host on.
	StepAt, OpenedAt time.Time
	// Inventory is what is known of the hardware; nil while that is nothing.
	Inventory *hardware.Inventory
}

// Work is what an attempt is to do. Two calls for one attempt must name the same.
type Work struct {
	// Operation is what the agent is told to do.
	Operation hardware.Operation
	// Image and RootDevice are set for Install.
	Image      hardware.Image
	RootDevice hardware.RootDevice
	// Erase is set for Erase.
	Erase hardware.EraseMode
}

// Store keeps Sessions and config drives. Errors are *hardware.Error; a host that is not known is NotFound.
type Store interface {
	// ByMAC finds the host that boots with the MAC (lower case, colons). A host without an attempt has Number 0.
	ByMAC(ctx context.Context, mac string) (Session, error)
	// ByUID finds the host by its uid.
	ByUID(ctx context.Context, hostUID string) (Session, error)
	// CachedByUID is what ByUID answers, as it was a moment ago: what this process wrote is in it, what another replica wrote may be
	// missing still. It costs less.
	CachedByUID(ctx context.Context, hostUID string) (Session, error)
	// Update changes the host's session under an optimistic lock: change sees the newest state and may run more than
	// once; when it returns an error nothing is written. When it changes nothing, nothing is written.
	Update(ctx context.Context, hostUID string, change func(*Session) error) (Session, error)
	// ConfigDrive reads the documents for the attempt; Conflict when the attempt is not the current one.
	ConfigDrive(ctx context.Context, hostUID string, attempt int64) (hardware.ConfigDrive, error)
}

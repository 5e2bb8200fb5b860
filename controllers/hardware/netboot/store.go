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
	// Attempt numbers the attempt.
	Attempt int64
	// Operation is what the agent is told to do.
	Operation hardware.Operation
	// Image and RootDevice are set for Install.
	Image      hardware.Image
	RootDevice hardware.RootDevice
	// Erase is set for Erase.
	Erase hardware.EraseMode
	// State, Step, DoneBytes, TotalBytes, Reason and Message are as in hardware.AttemptStatus.
	State                 hardware.AttemptState
	Step                  hardware.Step
	DoneBytes, TotalBytes int64
	Reason                hardware.Reason
	Message               string
	// Boots counts how often the boot document was served; the token of an earlier boot is refused.
	Boots int
	// StartedAt is when the attempt began, StepAt when the step was entered, OpenedAt when we powered the host on.
	// The boot service answers only between OpenedAt and Deadline.
	StartedAt, StepAt, OpenedAt, Deadline time.Time
	// Inventory is what the agent reported last; nil before.
	Inventory *hardware.Inventory
}

// Store keeps Sessions and config drives. Errors are *hardware.Error; a host that is not known is NotFound.
type Store interface {
	// ByMAC finds the host that boots with the MAC (lower case, colons). A host without an attempt has Attempt 0.
	ByMAC(ctx context.Context, mac string) (Session, error)
	// ByUID finds the host by its uid.
	ByUID(ctx context.Context, hostUID string) (Session, error)
	// Recent is what ByUID answers, as it was a moment ago: what this process wrote is in it, what another replica wrote may be
	// missing still. It costs less.
	Recent(ctx context.Context, hostUID string) (Session, error)
	// Update changes the host's session under an optimistic lock: change sees the newest state and may run more than
	// once; when it returns an error nothing is written. When it changes nothing, nothing is written.
	Update(ctx context.Context, hostUID string, change func(*Session) error) (Session, error)
	// ConfigDrive reads the documents for the attempt; Conflict when the attempt is not the current one.
	ConfigDrive(ctx context.Context, hostUID string, attempt int64) (hardware.ConfigDrive, error)
}

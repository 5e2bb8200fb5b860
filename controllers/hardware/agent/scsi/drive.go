package scsi

import (
	"errors"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// Drive is a SCSI disk.
type Drive struct {
	// Identity is what the disk says it is.
	Identity Identity
	// Send sends a command and returns an *Error when the disk did not carry it out.
	Send func(Command) error
}

// Identify asks a device what it is, and fails for one that is no SCSI disk.
func Identify(send func(Command) error) (*Drive, error) {
	command := inquiry()
	if err := send(command); err != nil {
		return nil, err
	}
	identity, err := parseInquiry(command.In)
	return &Drive{Identity: identity, Send: send}, err
}

// Methods returns the methods by which the disk can erase itself.
//
// A virtual drive of a RAID controller has none. Without that rule: a controller answers to SANITIZE for one of the disks behind it, or changes its own
// table only, and the blocks of the others are read by whoever takes them out.
func (d *Drive) Methods() ([]hardware.EraseMethod, error) {
	if d.Identity.IsVirtual() {
		return nil, fmt.Errorf("%s is a virtual drive of a RAID controller: its disks cannot be told to erase themselves", d.Identity)
	}
	var found capabilities
	for action, has := range map[sanitizeAction]*bool{blockErase: &found.block, cryptoErase: &found.crypto, overwrite: &found.overwrite} {
		command := supportedOperation(opSanitize, action)
		// A disk without the command has no SANITIZE either: SBC-4 section 4.11.1 wants both.
		*has = d.Send(command) == nil && isSupported(command.In)
	}
	methods := found.methods()
	if len(methods) == 0 {
		return nil, errors.New("neither the disk nor its controller has a command by which it erases itself")
	}
	return methods, nil
}

// Begin begins the erase, which goes on until State says otherwise, also after a power cut.
func (d *Drive) Begin(method hardware.EraseMethod) error {
	switch method {
	case hardware.MethodSanitizeBlock:
		return d.Send(sanitize(blockErase))
	case hardware.MethodSanitizeCrypto:
		return d.Send(sanitize(cryptoErase))
	case hardware.MethodSanitizeOverwrite:
		return d.Send(sanitize(overwrite))
	}
	return fmt.Errorf("a SCSI disk has no method %q", method)
}

// State returns how far a sanitize operation is. REQUEST SENSE has the progress; a disk that says nothing there may still refuse commands.
func (d *Drive) State() (selferase.State, error) {
	command := requestSense()
	if err := d.Send(command); err != nil {
		return selferase.State{}, fmt.Errorf("asking how far the erase is: %w", err)
	}
	if state, isKnown := ParseSense(command.In).state(); isKnown {
		return state, nil
	}
	return d.readiness()
}

// readiness returns what a disk says that is asked whether it can work. The first answers may be about a reset before (UNIT ATTENTION).
func (d *Drive) readiness() (selferase.State, error) {
	const attempts, unitAttention = 5, 0x6
	for range attempts {
		err := d.Send(testUnitReady())
		var answer *Error
		if !errors.As(err, &answer) {
			return selferase.State{}, err
		}
		sense := ParseSense(answer.Sense)
		if state, isKnown := sense.state(); isKnown {
			return state, nil
		}
		if sense.Key != unitAttention {
			return selferase.State{}, nil // Whatever it is, it is no erase; reads and writes say more.
		}
	}
	return selferase.State{}, nil
}

// Recover ends the state that a failed sanitize leaves, in which the disk refuses reads and writes.
func (d *Drive) Recover() error {
	state, err := d.State()
	if err != nil || !state.HasFailed {
		return err
	}
	if err := d.Send(sanitize(exitFailure)); err != nil {
		return fmt.Errorf("leaving the state after a failed sanitize: %w", err)
	}
	return nil
}

// Estimate returns 0: SBC-4 has no field for the duration.
func (d *Drive) Estimate(hardware.EraseMethod) time.Duration { return 0 }

// HasZerosAfterDiscard reports whether deallocated blocks read as zeros (LBPRZ). A virtual drive's word counts for the blocks that it shows, so its own
// overwrite is preferred.
func (d *Drive) HasZerosAfterDiscard() bool {
	command := readCapacity()
	return !d.Identity.IsVirtual() && d.Send(command) == nil && hasZerosAfterUnmap(command.In)
}

package ata

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// Drive is an ATA disk.
type Drive struct {
	// Send sends a SCSI command and returns a *scsi.Error when it was not carried out or has an answer in the disk's registers.
	Send func(scsi.Command) error
}

// Open returns the ATA disk behind a SCSI disk, and an error when no ATA command comes through.
func Open(disk *scsi.Drive) (*Drive, error) {
	drive := &Drive{Send: disk.Send}
	_, err := drive.capabilities()
	return drive, err
}

func (d *Drive) capabilities() (Capabilities, error) {
	command := identify()
	if err := d.Send(command); err != nil {
		return Capabilities{}, fmt.Errorf("asking the disk what it can do: %w", err)
	}
	return parseIdentify(command.In)
}

// Methods returns the methods by which the disk can erase itself, the best first: a sanitize reaches spare blocks and caches too, needs no password,
// and goes on after a power cut.
func (d *Drive) Methods() ([]hardware.EraseMethod, error) {
	c, err := d.capabilities()
	if err != nil {
		return nil, err
	}
	return c.methods()
}

// Begin begins the erase. A security erase has ended when Begin returns; a sanitize goes on, also after a power cut, until State says otherwise.
func (d *Drive) Begin(method hardware.EraseMethod) error {
	switch method {
	case hardware.MethodSanitizeBlock:
		return d.Send(sanitize(sanitizeBlock))
	case hardware.MethodSanitizeCrypto:
		return d.Send(sanitize(sanitizeCrypto))
	case hardware.MethodSanitizeOverwrite:
		return d.Send(sanitize(sanitizeOverwrite))
	case hardware.MethodSecureEraseEnhanced, hardware.MethodSecureErase:
		return d.secureErase(method)
	}
	return fmt.Errorf("an ATA disk has no method %q", method)
}

const (
	// unknownEraseTime is how long a security erase may take when the disk does not say: an overwrite of 30 TB at 150 MB/s takes that long.
	unknownEraseTime = 56 * time.Hour
	// eraseMargin is added to twice the disk's estimate.
	eraseMargin = 30 * time.Minute
)

// secureErase sets a password, which the disk wants first, and erases. The disk removes the password when it has erased itself, and Recover does when
// that failed.
func (d *Drive) secureErase(method hardware.EraseMethod) error {
	timeout := unknownEraseTime
	if estimate := d.Estimate(method); estimate > 0 {
		timeout = 2*estimate + eraseMargin
	}
	for _, command := range []scsi.Command{
		security(cmdSetPassword, 0, shortTimeout), erasePrepare(), eraseUnit(method == hardware.MethodSecureEraseEnhanced, timeout),
	} {
		if err := d.Send(command); err != nil {
			return err
		}
	}
	return d.removePassword()
}

// State returns how far a sanitize operation is. A disk without sanitize has none that runs.
func (d *Drive) State() (selferase.State, error) {
	c, err := d.capabilities()
	if err != nil || !c.HasSanitize {
		return selferase.State{}, err
	}
	err = d.Send(readSanitizeStatus(false))
	answered, isKnown := answer(err)
	if !isKnown {
		return selferase.State{}, fmt.Errorf("reading the state of the sanitize operation: %w", cmp.Or(err, errNoRegisters))
	}
	return answered.sanitizeState()
}

// errNoRegisters means that a controller does not return what a disk has answered.
var errNoRegisters = errors.New("the controller does not return the registers of the disk")

// answer returns the registers that came with an error.
func answer(err error) (registers, bool) {
	var failure *scsi.Error
	if !errors.As(err, &failure) {
		return registers{}, false
	}
	return parseRegisters(scsi.ParseSense(failure.Sense).ATA)
}

// Recover ends the state that a failed sanitize leaves, and removes the password of a security erase that a power cut has ended.
func (d *Drive) Recover() error {
	state, err := d.State()
	if err != nil {
		return err
	}
	if state.HasFailed {
		err = d.Send(readSanitizeStatus(true))
		if answered, isKnown := answer(err); !isKnown || answered.isRefused() {
			return fmt.Errorf("leaving the state after a failed sanitize: %w", cmp.Or(err, errNoRegisters))
		}
	}
	return d.removePassword()
}

// removePassword removes the password of this package from a disk that has one.
//
// Without it: the power goes while the disk erases itself. When it is back, the disk is locked and refuses every read and write, so that no attempt
// could ever erase it.
func (d *Drive) removePassword() error {
	c, err := d.capabilities()
	if err != nil || !c.HasPassword {
		return err
	}
	const remedy = "the disk has a security password"
	switch {
	case c.IsFrozen:
		return fmt.Errorf("%s and cannot be unlocked: %w", remedy, errFrozen)
	case c.IsExhausted:
		return errors.New(remedy + ", and too many wrong ones were tried: take its power away and try again")
	}
	if c.IsLocked {
		if err := d.Send(security(cmdUnlock, 0, shortTimeout)); err != nil {
			return fmt.Errorf("%s that is not Ingot's: remove it (hdparm --security-disable) or replace the disk: %w", remedy, err)
		}
	}
	if err := d.Send(security(cmdDisablePassword, 0, shortTimeout)); err != nil {
		return fmt.Errorf("%s that cannot be removed: remove it (hdparm --security-disable %s) or replace the disk: %w", remedy, Password, err)
	}
	return nil
}

// Estimate returns how long the disk says that a security erase takes. ACS-4 has no field for that of a sanitize.
func (d *Drive) Estimate(method hardware.EraseMethod) time.Duration {
	c, err := d.capabilities()
	switch {
	case err != nil:
		return 0
	case method == hardware.MethodSecureErase:
		return c.EraseTime
	case method == hardware.MethodSecureEraseEnhanced:
		return c.EnhancedEraseTime
	}
	return 0
}

// HasZerosAfterDiscard reports whether trimmed blocks read as zeros (RZAT).
func (d *Drive) HasZerosAfterDiscard() bool {
	c, err := d.capabilities()
	return err == nil && c.ZerosAfterTrim
}

package ata

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// errShort is returned for data that is shorter than the specification says.
var errShort = errors.New("the disk returned less data than the specification says")

// Capabilities are what decides how a disk can erase itself.
type Capabilities struct {
	// HasSanitize is true where the disk has the sanitize feature set; SanitizeBlock, SanitizeCrypto and SanitizeOverwrite are its operations.
	HasSanitize, SanitizeBlock, SanitizeCrypto, SanitizeOverwrite bool
	// HasSecurity is true where the disk has the security feature set, HasEnhancedErase where that has the enhanced erase.
	HasSecurity, HasEnhancedErase bool
	// HasPassword, IsLocked, IsFrozen and IsExhausted are the state of its security: IsExhausted is true when too many wrong passwords were tried.
	HasPassword, IsLocked, IsFrozen, IsExhausted bool
	// EraseTime and EnhancedEraseTime are the disk's estimates, 0 when it has none.
	EraseTime, EnhancedEraseTime time.Duration
	// ZerosAfterTrim is true where trimmed blocks read as zeros.
	ZerosAfterTrim bool
}

// parseIdentify reads the IDENTIFY DEVICE data (ACS-4 table 45).
func parseIdentify(data []byte) (Capabilities, error) {
	if len(data) < sectorBytes {
		return Capabilities{}, errShort
	}
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(data[2*n:]) }
	has := func(n, bit int) bool { return word(n)&(1<<bit) != 0 }
	c := Capabilities{
		HasSecurity: has(128, 0), HasPassword: has(128, 1), IsLocked: has(128, 2), IsFrozen: has(128, 3), IsExhausted: has(128, 4), HasEnhancedErase: has(128, 5),
		EraseTime: parseEraseTime(word(89)), EnhancedEraseTime: parseEraseTime(word(90)),
		// TRIM is supported, reads after it are deterministic, and they are zeros.
		ZerosAfterTrim: has(169, 0) && has(69, 14) && has(69, 5),
	}
	if c.HasSanitize = has(59, 12); c.HasSanitize {
		c.SanitizeCrypto, c.SanitizeOverwrite, c.SanitizeBlock = has(59, 13), has(59, 14), has(59, 15)
	}
	return c, nil
}

// parseEraseTime reads words 89 and 90 (ACS-4 section A.11.8.2): units of two minutes in 8 bits, or in 15 where bit 15 is set. The greatest value
// means more than that, which is taken as that.
func parseEraseTime(word uint16) time.Duration {
	const isExtended = 1 << 15
	units := word & 0xFF
	if word&isExtended != 0 {
		units = word &^ isExtended
	}
	return time.Duration(units) * 2 * time.Minute
}

// methods returns the methods, the one that proves most first, and why there are fewer than the disk has.
func (c Capabilities) methods() ([]hardware.EraseMethod, error) {
	canSecure := c.HasSecurity && !c.IsFrozen
	var out []hardware.EraseMethod
	for _, candidate := range []struct {
		has    bool
		method hardware.EraseMethod
	}{
		{c.SanitizeBlock, hardware.MethodSanitizeBlock},
		{c.SanitizeCrypto, hardware.MethodSanitizeCrypto},
		{c.SanitizeOverwrite, hardware.MethodSanitizeOverwrite},
		{canSecure && c.HasEnhancedErase, hardware.MethodSecureEraseEnhanced},
		{canSecure, hardware.MethodSecureErase},
	} {
		if candidate.has {
			out = append(out, candidate.method)
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case c.HasSecurity:
		return nil, errFrozen
	default:
		return nil, errors.New("the disk has no command by which it erases itself")
	}
}

// errFrozen means that the firmware of the server forbids the security commands until the next power cycle.
var errFrozen = errors.New("the firmware has frozen the disk's security commands: disable the freeze lock in the firmware's settings")

// registers are what a disk answers in, as the ATA Status Return descriptor has them (SAT-4 table 141).
type registers struct {
	status, failure byte
	count           uint16
	lba             uint64
}

func parseRegisters(descriptor []byte) (registers, bool) {
	if len(descriptor) < 14 {
		return registers{}, false
	}
	d := descriptor
	return registers{
		failure: d[3], status: d[13], count: uint16(d[4])<<8 | uint16(d[5]),
		lba: uint64(d[7]) | uint64(d[9])<<8 | uint64(d[11])<<16 | uint64(d[6])<<24 | uint64(d[8])<<32 | uint64(d[10])<<40,
	}, true
}

// isRefused reports whether the command was not carried out (ERR or DF of STATUS).
func (r registers) isRefused() bool { return r.status&0x21 != 0 }

// sanitizeState reads the answer to SANITIZE STATUS EXT (ACS-4 sections 7.34.6.3 and 7.34.6.4).
func (r registers) sanitizeState() (selferase.State, error) {
	const (
		inProgress = 1 << 14
		failed     = 0x01 // SANITIZE COMMAND UNSUCCESSFUL, in bits 7:0 of LBA
	)
	switch {
	case r.isRefused() && r.lba&0xFF == failed:
		return selferase.State{HasFailed: true}, nil
	case r.isRefused():
		return selferase.State{}, errors.New("the disk does not say how far its sanitize operation is")
	case r.count&inProgress != 0:
		return selferase.State{IsRunning: true, Done: int(r.lba & 0xFFFF)}, nil
	}
	return selferase.State{}, nil
}

package scsi

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Command is a command as a SCSI disk gets it.
type Command struct {
	// CDB is the command descriptor block.
	CDB []byte
	// In receives what the disk returns; Out is what it gets. At most one is set.
	In, Out []byte
	// Timeout is after which time the kernel aborts the command.
	Timeout time.Duration
}

// Error is the answer of a disk that did not carry out a command, or that returns something beside its data.
type Error struct {
	Opcode byte
	// Status is the SCSI status, Host and Driver are those of the kernel.
	Status       byte
	Host, Driver uint16
	// Sense is the sense data as the disk returned it; it may be empty.
	Sense []byte
}

// Error returns what the disk has answered.
func (e *Error) Error() string {
	s := ParseSense(e.Sense)
	return fmt.Sprintf("SCSI command %#02x: the disk answered with status %#x, sense %x/%02x/%02x, host status %#x", e.Opcode, e.Status, s.Key, s.Code, s.Qualifier, e.Host)
}

const (
	// shortTimeout is for commands that read something or that only begin something.
	shortTimeout = 30 * time.Second
	inquiryBytes = 96
)

// Operation codes.
const (
	opTestUnitReady     = 0x00
	opRequestSense      = 0x03
	opInquiry           = 0x12
	opSanitize          = 0x48
	opServiceActionIn16 = 0x9E
	opMaintenanceIn     = 0xA3
)

// inquiry returns the command for the standard INQUIRY data.
func inquiry() Command {
	cdb := []byte{opInquiry, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(cdb[3:], inquiryBytes)
	return Command{CDB: cdb, In: make([]byte, inquiryBytes), Timeout: shortTimeout}
}

func testUnitReady() Command { return Command{CDB: make([]byte, 6), Timeout: shortTimeout} }

// requestSense asks for fixed format sense data, in which the progress of an operation is.
func requestSense() Command {
	const bytes = 252
	return Command{CDB: []byte{opRequestSense, 0, 0, 0, bytes, 0}, In: make([]byte, bytes), Timeout: shortTimeout}
}

// supportedOperation asks whether the disk has a command with a service action (reporting option 010b).
func supportedOperation(opcode byte, action sanitizeAction) Command {
	const bytes = 64
	cdb := make([]byte, 12)
	cdb[0], cdb[1], cdb[2], cdb[3] = opMaintenanceIn, 0x0C, 0b010, opcode
	binary.BigEndian.PutUint16(cdb[4:], uint16(action))
	binary.BigEndian.PutUint32(cdb[6:], bytes)
	return Command{CDB: cdb, In: make([]byte, bytes), Timeout: shortTimeout}
}

// readCapacity returns READ CAPACITY (16), whose data says what deallocated blocks read as.
func readCapacity() Command {
	const bytes = 32
	cdb := make([]byte, 16)
	cdb[0], cdb[1] = opServiceActionIn16, 0x10
	binary.BigEndian.PutUint32(cdb[10:], bytes)
	return Command{CDB: cdb, In: make([]byte, bytes), Timeout: shortTimeout}
}

// sanitizeAction is what a SANITIZE command does (SBC-4 table 105).
type sanitizeAction byte

const (
	overwrite   sanitizeAction = 0x01
	blockErase  sanitizeAction = 0x02
	cryptoErase sanitizeAction = 0x03
	exitFailure sanitizeAction = 0x1F
)

// sanitize returns the command for the action, which returns at once (IMMED). It allows that a failed sanitize is left without another one (AUSE).
// Without it: a block erase fails once, and from then on the disk refuses every read and write, also the overwrite that would have been the next way.
func sanitize(action sanitizeAction) Command {
	const immediate, allowUnrestrictedExit = 1 << 7, 1 << 5
	cdb := make([]byte, 10)
	cdb[0], cdb[1] = opSanitize, byte(action)
	command := Command{CDB: cdb, Timeout: 2 * time.Minute}
	if action != exitFailure {
		cdb[1] |= immediate | allowUnrestrictedExit
	}
	if action == overwrite {
		// One pass (OVERWRITE COUNT) of a pattern of four zeros.
		command.Out = []byte{1, 0, 0, 4, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(cdb[7:], uint16(len(command.Out)))
	}
	return command
}

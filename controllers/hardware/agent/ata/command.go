package ata

import (
	"encoding/binary"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
)

// ATA commands.
const (
	cmdSanitize        = 0xB4
	cmdIdentify        = 0xEC
	cmdSetPassword     = 0xF1
	cmdUnlock          = 0xF2
	cmdErasePrepare    = 0xF3
	cmdEraseUnit       = 0xF4
	cmdDisablePassword = 0xF6
)

const (
	sectorBytes = 512
	// shortTimeout is for commands that read something or that only begin something.
	shortTimeout = 30 * time.Second
)

// Password is the password that a disk has while it erases itself by SECURITY ERASE UNIT. It protects nothing and is no secret: it is the same for
// every disk, so that a later attempt, or a person with hdparm --security-disable, can remove it after a power cut.
const Password = "ingot-erase"

// protocol is how the data of a command travels (SAT-4 table 142).
type protocol byte

const (
	nonData protocol = 3
	pioIn   protocol = 4
	pioOut  protocol = 5
)

// request is what the registers of a disk get.
type request struct {
	command  byte
	features uint16
	count    uint16
	lba      uint64
	// extended is true for a command with 48-bit registers; wantsRegisters where the disk answers in its registers.
	extended, wantsRegisters bool
	protocol                 protocol
	data                     []byte
	timeout                  time.Duration
}

// passThrough returns the ATA PASS-THROUGH (16) command that carries the request (SAT-4 table 143).
func passThrough(r request) scsi.Command {
	const (
		opPassThrough  = 0x85
		checkCondition = 1 << 5 // CK_COND: the registers are returned
		fromDevice     = 1 << 3 // T_DIR
		lengthInBlocks = 1 << 2 // BYT_BLOK
		lengthInCount  = 2      // T_LENGTH
	)
	cdb := make([]byte, 16)
	cdb[0], cdb[1] = opPassThrough, byte(r.protocol)<<1
	if r.extended {
		cdb[1] |= 1
		cdb[3], cdb[5] = byte(r.features>>8), byte(r.count>>8)
		cdb[7], cdb[9], cdb[11] = byte(r.lba>>24), byte(r.lba>>32), byte(r.lba>>40)
	}
	cdb[4], cdb[6], cdb[8], cdb[10], cdb[12], cdb[14] = byte(r.features), byte(r.count), byte(r.lba), byte(r.lba>>8), byte(r.lba>>16), r.command
	command := scsi.Command{CDB: cdb, Timeout: r.timeout}
	switch r.protocol {
	case pioIn:
		cdb[2], command.In = fromDevice|lengthInBlocks|lengthInCount, r.data
	case pioOut:
		cdb[2], command.Out = lengthInBlocks|lengthInCount, r.data
	}
	if r.wantsRegisters {
		cdb[2] |= checkCondition
	}
	return command
}

// identify returns IDENTIFY DEVICE.
func identify() scsi.Command {
	return passThrough(request{command: cmdIdentify, count: 1, protocol: pioIn, data: make([]byte, sectorBytes), timeout: shortTimeout})
}

// passwordData returns the data of a SECURITY command: the control word, then the password. The control word of 0 means the user password, a
// normal erase, and the security level High, at which the manufacturer's master password can unlock the disk too.
func passwordData(control uint16) []byte {
	data := make([]byte, sectorBytes)
	binary.LittleEndian.PutUint16(data, control)
	copy(data[2:34], Password)
	return data
}

// security returns a SECURITY command with the password.
func security(command byte, control uint16, timeout time.Duration) scsi.Command {
	return passThrough(request{command: command, count: 1, protocol: pioOut, data: passwordData(control), timeout: timeout})
}

// erasePrepare returns SECURITY ERASE PREPARE, which the disk wants immediately before the erase.
func erasePrepare() scsi.Command {
	return passThrough(request{command: cmdErasePrepare, protocol: nonData, timeout: shortTimeout})
}

// eraseUnit returns SECURITY ERASE UNIT, which returns when the disk is erased. An enhanced erase reaches the sectors too that the disk has
// reallocated.
func eraseUnit(isEnhanced bool, timeout time.Duration) scsi.Command {
	control := uint16(0)
	if isEnhanced {
		control = 1 << 1
	}
	return security(cmdEraseUnit, control, timeout)
}

// sanitizeFeature is what a SANITIZE DEVICE command does.
type sanitizeFeature uint16

const (
	sanitizeStatus    sanitizeFeature = 0x0000
	sanitizeCrypto    sanitizeFeature = 0x0011
	sanitizeBlock     sanitizeFeature = 0x0012
	sanitizeOverwrite sanitizeFeature = 0x0014
)

// sanitizeKeys are what the LBA of each has, so that no other command is taken for one: "Cryp", "BkEr", and "OW" with a pattern of zeros.
var sanitizeKeys = map[sanitizeFeature]uint64{sanitizeCrypto: 0x43727970, sanitizeBlock: 0x426B4572, sanitizeOverwrite: 0x4F57 << 32}

// sanitize returns the command that begins an operation. Its FAILURE MODE bit allows that a failed operation is left without another one. Without it:
// a block erase fails once, and from then on the disk refuses every read and write, also the overwrite that would have been the next way.
func sanitize(feature sanitizeFeature) scsi.Command {
	const failureMode, onePass = 1 << 4, 1
	count := uint16(failureMode)
	if feature == sanitizeOverwrite {
		count |= onePass
	}
	return passThrough(request{
		command: cmdSanitize, features: uint16(feature), count: count, lba: sanitizeKeys[feature],
		extended: true, protocol: nonData, timeout: shortTimeout,
	})
}

// readSanitizeStatus returns SANITIZE STATUS EXT. With clearFailure it ends the state after an operation that failed.
func readSanitizeStatus(clearFailure bool) scsi.Command {
	count := uint16(0)
	if clearFailure {
		count = 1
	}
	return passThrough(request{
		command: cmdSanitize, features: uint16(sanitizeStatus), count: count,
		extended: true, wantsRegisters: true, protocol: nonData, timeout: shortTimeout,
	})
}

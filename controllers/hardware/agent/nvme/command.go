package nvme

import "time"

// Command is an admin command as a controller gets it.
type Command struct {
	Opcode    uint8
	Namespace uint32
	// CDW10 is the command's dword 10; the commands of this package leave dwords 11 to 15 at 0.
	CDW10 uint32
	// Data receives what the controller returns; nil for a command without data.
	Data []byte
	// Timeout is after which time the kernel aborts the command.
	Timeout time.Duration
}

// Opcodes of admin commands (figure 138).
const (
	opGetLogPage = 0x02
	opIdentify   = 0x06
	opFormat     = 0x80
	opSanitize   = 0x84
)

const (
	// allNamespaces is the namespace of a command that is for all of them.
	allNamespaces = 0xFFFFFFFF
	// shortTimeout is for commands that read something.
	shortTimeout = 30 * time.Second
	// formatTimeout is for Format NVM, which returns when every block is erased. An attempt's own deadline is earlier where it must be.
	formatTimeout = 6 * time.Hour
	identifyBytes = 4096
	logBytes      = 512
)

// What Identify returns (CNS, figure 273).
const (
	cnsNamespace  = 0x00
	cnsController = 0x01
	cnsNamespaces = 0x02
)

// identify returns the command for one data structure about the namespace, which is 0 for those about the controller.
func identify(cns uint32, namespace uint32) Command {
	return Command{Opcode: opIdentify, Namespace: namespace, CDW10: cns, Data: make([]byte, identifyBytes), Timeout: shortTimeout}
}

// sanitizeLog returns the command for the Sanitize Status log page. Dword 10 has the page, and the number of dwords less one.
func sanitizeLog() Command {
	const page = 0x81
	return Command{Opcode: opGetLogPage, Namespace: allNamespaces, CDW10: page | (logBytes/4-1)<<16, Data: make([]byte, logBytes), Timeout: shortTimeout}
}

// sanitizeAction is what a Sanitize command does (SANACT, figure 303).
type sanitizeAction uint32

const (
	exitFailure sanitizeAction = 1
	blockErase  sanitizeAction = 2
	cryptoErase sanitizeAction = 4
)

// sanitize returns the command for the action. It allows that a failed sanitize is left without another one (AUSE). Without it: a block erase
// fails once, and from then on the disk refuses every read and write, also the overwrite that would have been the next way.
func sanitize(action sanitizeAction) Command {
	const allowUnrestrictedExit = 1 << 3
	command := Command{Opcode: opSanitize, CDW10: uint32(action), Timeout: 2 * time.Minute}
	if action != exitFailure {
		command.CDW10 |= allowUnrestrictedExit
	}
	return command
}

// secureErase is what Format NVM does with the user data (SES).
type secureErase uint32

const (
	eraseUserData secureErase = 1
	eraseKey      secureErase = 2
)

// format returns the command that erases the namespace and keeps its block size, its metadata and its protection information. With another
// block size the disk would have another size, and images whose partition tables count sectors would not boot.
func format(namespace uint32, layout namespaceLayout, erase secureErase) Command {
	cdw10 := uint32(layout.formatIndex&0xF) | uint32(layout.formatIndex>>4&0x3)<<12 | uint32(layout.protection&0x7)<<5 | uint32(erase)<<9
	if layout.isExtended {
		cdw10 |= 1 << 4 // MSET
	}
	if layout.isProtectionFirst {
		cdw10 |= 1 << 8 // PIL
	}
	return Command{Opcode: opFormat, Namespace: namespace, CDW10: cdw10, Timeout: formatTimeout}
}

package nvme

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// errShort is returned for a data structure that is shorter than the specification says.
var errShort = errors.New("the controller returned less data than the specification says")

// Capabilities are what decides how a namespace can be erased.
type Capabilities struct {
	// CanFormat is true where the controller has Format NVM; FormatCrypto where that can replace the key of encrypted data.
	CanFormat, FormatCrypto bool
	// FormatsAll is true where a format or its erase concerns every namespace.
	FormatsAll bool
	// SanitizeBlock and SanitizeCrypto are the sanitize operations that the controller has.
	SanitizeBlock, SanitizeCrypto bool
	// IsShared is true where other namespaces, or other controllers that may have some, belong to the same disk.
	IsShared bool
}

// parseController reads the Identify Controller data structure (figure 275). IsShared covers its controllers only.
func parseController(data []byte) (Capabilities, error) {
	if len(data) < identifyBytes {
		return Capabilities{}, errShort
	}
	const (
		multiController = 1 << 1 // of CMIC
		formatSupported = 1 << 1 // of OACS
	)
	oacs, sanicap, fna := binary.LittleEndian.Uint16(data[256:]), binary.LittleEndian.Uint32(data[328:]), data[524]
	return Capabilities{
		CanFormat: oacs&formatSupported != 0, FormatsAll: fna&0b11 != 0, FormatCrypto: fna&0b100 != 0,
		SanitizeCrypto: sanicap&0b1 != 0, SanitizeBlock: sanicap&0b10 != 0, IsShared: data[76]&multiController != 0,
	}, nil
}

// countNamespaces returns the length of an Active Namespace ID list, which ends at the first 0.
func countNamespaces(data []byte) int {
	n := 0
	for ; len(data) >= 4 && binary.LittleEndian.Uint32(data) != 0; data = data[4:] {
		n++
	}
	return n
}

// namespaceLayout is how the blocks of a namespace are laid out.
type namespaceLayout struct {
	formatIndex, protection       uint8
	isExtended, isProtectionFirst bool
}

// parseNamespace reads the Identify Namespace data structure (FLBAS and DPS, figure 97 of the NVM Command Set).
func parseNamespace(data []byte) (namespaceLayout, error) {
	if len(data) < identifyBytes {
		return namespaceLayout{}, errShort
	}
	flbas, dps := data[26], data[29]
	return namespaceLayout{
		formatIndex: flbas&0xF | flbas>>5&0x3<<4, isExtended: flbas&(1<<4) != 0, protection: dps & 0x7, isProtectionFirst: dps&(1<<3) != 0,
	}, nil
}

// parseSanitizeLog reads the Sanitize Status log page (figure 246).
func parseSanitizeLog(data []byte) (selferase.State, error) {
	if len(data) < 4 {
		return selferase.State{}, errShort
	}
	const running, failed = 2, 3
	status := binary.LittleEndian.Uint16(data[2:]) & 0x7
	state := selferase.State{IsRunning: status == running, HasFailed: status == failed}
	if state.IsRunning {
		state.Done = int(binary.LittleEndian.Uint16(data))
	}
	return state, nil
}

// parseEstimate reads how long the disk says that a sanitize operation takes, which is 0 when it does not say (figure 246).
func parseEstimate(data []byte, method hardware.EraseMethod) time.Duration {
	const unknown = 0xFFFFFFFF
	at, isKnown := map[hardware.EraseMethod]int{hardware.MethodSanitizeBlock: 12, hardware.MethodSanitizeCrypto: 16}[method]
	if !isKnown || len(data) < at+4 {
		return 0
	}
	seconds := binary.LittleEndian.Uint32(data[at:])
	if seconds == unknown {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// hasZerosAfterDeallocate reads whether the controller deallocates blocks (ONCS bit 2, Dataset Management) and whether these read as zeros (DLFEAT
// bits 2:0, figure 97 of the NVM Command Set).
func hasZerosAfterDeallocate(controller, namespace []byte) bool {
	const deallocates, zeros = 1 << 2, 0b001
	return len(controller) >= identifyBytes && len(namespace) >= identifyBytes &&
		binary.LittleEndian.Uint16(controller[520:])&deallocates != 0 && namespace[33]&0b111 == zeros
}

// Methods returns the methods by which the disk can erase the namespace, the one that proves most first: a sanitize reaches spare blocks and caches
// too, and a block erase leaves no data of which a weak key could be found. It returns none that would erase another namespace. Without it: the
// disks of a server are erased at the same time, one of two namespaces has been read back as erased, and the erase of the other one changes it.
func (c Capabilities) Methods() []hardware.EraseMethod {
	var out []hardware.EraseMethod
	if c.SanitizeBlock && !c.IsShared {
		out = append(out, hardware.MethodSanitizeBlock)
	}
	if c.SanitizeCrypto && !c.IsShared {
		out = append(out, hardware.MethodSanitizeCrypto)
	}
	if !c.CanFormat || c.IsShared && c.FormatsAll {
		return out
	}
	if c.FormatCrypto {
		out = append(out, hardware.MethodFormatCrypto)
	}
	return append(out, hardware.MethodFormat)
}

package scsi

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// errShort is returned for data that is shorter than the specification says.
var errShort = errors.New("the disk returned less data than the specification says")

// Sense is what sense data says, in fixed or in descriptor format (SPC-5 sections 4.4.2 and 4.4.3).
type Sense struct {
	// Key, Code and Qualifier are SENSE KEY, ADDITIONAL SENSE CODE and its QUALIFIER.
	Key, Code, Qualifier byte
	// Progress is the progress of an operation of selferase.Parts, when HasProgress.
	Progress    int
	HasProgress bool
	// ATA is the ATA Status Return descriptor (SAT-4 section 12.2.2.7), nil when there is none.
	ATA []byte
}

// ParseSense returns what sense data says, and the zero value for data that says nothing.
func ParseSense(data []byte) Sense {
	if len(data) < 8 {
		return Sense{}
	}
	switch data[0] & 0x7F {
	case 0x70, 0x71:
		s := Sense{Key: data[2] & 0xF}
		if len(data) >= 14 {
			s.Code, s.Qualifier = data[12], data[13]
		}
		if len(data) >= 18 {
			s.setProgress(data[15:18])
		}
		return s
	case 0x72, 0x73:
		s := Sense{Key: data[1] & 0xF, Code: data[2], Qualifier: data[3]}
		s.readDescriptors(data[8:min(len(data), 8+int(data[7]))])
		return s
	}
	return Sense{}
}

// readDescriptors reads the descriptors of sense data in descriptor format.
func (s *Sense) readDescriptors(data []byte) {
	const senseKeySpecific, ataStatusReturn = 0x02, 0x09
	for len(data) >= 2 && len(data) >= 2+int(data[1]) {
		descriptor := data[:2+int(data[1])]
		switch {
		case descriptor[0] == senseKeySpecific && len(descriptor) >= 7:
			s.setProgress(descriptor[4:7])
		case descriptor[0] == ataStatusReturn && len(descriptor) >= 14:
			s.ATA = descriptor[:14]
		}
		data = data[len(descriptor):]
	}
}

// setProgress reads the sense key specific field, which is a progress for the sense keys NO SENSE and NOT READY (SPC-5 section 4.4.2.4.4).
func (s *Sense) setProgress(field []byte) {
	const isValid, notReady = 0x80, 0x2
	if field[0]&isValid != 0 && (s.Key == 0 || s.Key == notReady) {
		s.Progress, s.HasProgress = int(binary.BigEndian.Uint16(field[1:])), true
	}
}

// isSanitizing is true for LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS, and hasFailed for SANITIZE COMMAND FAILED (SPC-5 annex F).
func (s Sense) isSanitizing() bool { return s.Code == 0x04 && s.Qualifier == 0x1B }
func (s Sense) hasFailed() bool    { return s.Code == 0x31 && s.Qualifier == 0x03 }

// state returns what the sense data says of a sanitize operation.
func (s Sense) state() (state selferase.State, isKnown bool) {
	switch {
	case s.isSanitizing():
		return selferase.State{IsRunning: true, Done: s.Progress}, true
	case s.hasFailed():
		return selferase.State{HasFailed: true}, true
	}
	return selferase.State{}, false
}

// Identity is what a disk says it is.
type Identity struct {
	// Vendor and Product are T10 VENDOR IDENTIFICATION and PRODUCT IDENTIFICATION.
	Vendor, Product string
}

// parseInquiry reads the standard INQUIRY data (SPC-5 section 6.7.2). Another type of device than a disk is an error.
func parseInquiry(data []byte) (Identity, error) {
	if len(data) < 36 {
		return Identity{}, errShort
	}
	if kind := data[0] & 0x1F; kind != 0x00 && kind != 0x14 {
		return Identity{}, errors.New("the device is no disk")
	}
	text := func(part []byte) string {
		return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(string(part), "\x00", " "), ""))
	}
	return Identity{Vendor: text(data[8:16]), Product: text(data[16:32])}, nil
}

// IsATA reports whether the disk is an ATA disk that the kernel or a host bus adapter translates for (SAT-4 section 10.3.2).
func (i Identity) IsATA() bool { return i.Vendor == "ATA" }

// virtualProducts are parts of the names that RAID controllers give their virtual drives: Dell PERC, Broadcom MegaRAID and its Lenovo and Intel
// versions, HPE Smart Array, Microchip Adaptec.
var virtualProducts = []string{"PERC", "MR9", "MR-", "RAID", "LOGICAL VOLUME", "LOGICALDRV", "VIRTUAL DISK"}

// IsVirtual reports whether the disk is a virtual drive of a RAID controller.
func (i Identity) IsVirtual() bool {
	product := strings.ToUpper(i.Product)
	return slices.ContainsFunc(virtualProducts, func(part string) bool { return strings.Contains(product, part) })
}

// String returns vendor and product.
func (i Identity) String() string { return strings.TrimSpace(i.Vendor + " " + i.Product) }

// isSupported reads what REPORT SUPPORTED OPERATION CODES says about one command: SUPPORT is 011b for one of the standard (SPC-5 table 236).
func isSupported(data []byte) bool { return len(data) >= 4 && data[1]&0b111 == 0b011 }

// hasZerosAfterUnmap reads LBPME and LBPRZ of READ CAPACITY (16) data (SBC-4 table 86).
func hasZerosAfterUnmap(data []byte) bool {
	const managed, zeros = 1 << 7, 1 << 6
	return len(data) >= 15 && data[14]&managed != 0 && data[14]&zeros != 0
}

// capabilities are the sanitize operations that a disk has.
type capabilities struct{ block, crypto, overwrite bool }

// methods returns the methods, the one that proves most first: a block erase leaves no data of which a weak key could be found, and an overwrite by
// the disk reaches spare blocks, which writes do not.
func (c capabilities) methods() []hardware.EraseMethod {
	var out []hardware.EraseMethod
	for _, candidate := range []struct {
		has    bool
		method hardware.EraseMethod
	}{{c.block, hardware.MethodSanitizeBlock}, {c.crypto, hardware.MethodSanitizeCrypto}, {c.overwrite, hardware.MethodSanitizeOverwrite}} {
		if candidate.has {
			out = append(out, candidate.method)
		}
	}
	return out
}

package uefi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf16"
)

// guid is a GUID as UEFI stores it.
type guid [16]byte

var (
	// globalVariable is EFI_GLOBAL_VARIABLE, 8be4df61-93ca-11d2-aa0d-00e098032b8c (UEFI 2.10, 3.3).
	globalVariable = guid{0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c}
	// authenticatedStore is gEfiAuthenticatedVariableGuid, aaf32c78-947b-439a-a180-2e144ec37792 (EDK II, MdeModulePkg.dec).
	authenticatedStore = guid{0x78, 0x2c, 0xf3, 0xaa, 0x7b, 0x94, 0x9a, 0x43, 0xa1, 0x80, 0x2e, 0x14, 0x4e, 0xc3, 0x77, 0x92}
	// certX509 is EFI_CERT_X509_GUID, a5c059a1-94e4-4aa7-87b5-ab155c2bf072 (UEFI 2.10, 32.4.1).
	certX509 = guid{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}
)

const (
	// The numbers of EDK II's AuthenticatedVariableFormat.h.
	variableStart    = 0x55aa
	variableAdded    = 0x3f
	variableDeleted  = 0xfd
	storeHeaderSize  = 28
	variableAlign    = 4
	attributesOfBoot = 7 // non-volatile, at boot and at run time
	// bootOption is the number of the option that is written.
	bootOption = 0xb007
)

// variableHeader is AUTHENTICATED_VARIABLE_HEADER.
type variableHeader struct {
	StartID        uint16
	State          uint8
	_              uint8
	Attributes     uint32
	MonotonicCount uint64
	TimeStamp      [16]byte
	PubKeyIndex    uint32
	NameSize       uint32
	DataSize       uint32
	Vendor         guid
}

// WriteBootNext makes the firmware whose variables are in the file load the EFI program at the URI at its next boot, and at that one alone. It removes what an
// earlier call has left.
func WriteBootNext(file, uri string) error {
	return changeStore(file, func(s *store) error {
		s.remove("BootNext")
		s.remove(fmt.Sprintf("Boot%04X", bootOption))
		if uri == "" {
			return nil
		}
		return errors.Join(s.add(fmt.Sprintf("Boot%04X", bootOption), loadOption(uri)), s.add("BootNext", binary.LittleEndian.AppendUint16(nil, bootOption)))
	})
}

// loadOption returns an EFI_LOAD_OPTION with the short form of a device path, which has a URI alone (UEFI 2.10, 3.1.2).
func loadOption(uri string) []byte {
	var path []byte
	path = append(path, 3, 24) // messaging, URI
	path = binary.LittleEndian.AppendUint16(path, uint16(4+len(uri)))
	path = append(path, uri...)
	path = append(path, 0x7f, 0xff, 4, 0)
	out := binary.LittleEndian.AppendUint32(nil, 1) // active
	out = binary.LittleEndian.AppendUint16(out, uint16(len(path)))
	out = append(out, text("Pinned URL")...)
	return append(out, path...)
}

// text returns a text as UEFI stores it, with its end.
func text(s string) []byte {
	var out []byte
	for _, unit := range append(utf16.Encode([]rune(s)), 0) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}

// store is a variable store.
type store struct {
	// content is the file, and end where its variables end.
	content    []byte
	begin, end int
	// limit is where the store ends.
	limit int
}

// changeStore changes the variable store in a file.
func changeStore(file string, change func(*store) error) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, err := openStore(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := change(s); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, s.content, 0o600)
}

// openStore finds the variables in a firmware volume: after the volume's header, whose length is in it, and that of the store.
func openStore(content []byte) (*store, error) {
	const lengthAt = 0x30 // HeaderLength of EFI_FIRMWARE_VOLUME_HEADER
	if len(content) < lengthAt+2 || string(content[0x28:0x2c]) != "_FVH" {
		return nil, errors.New("no firmware volume")
	}
	at := int(binary.LittleEndian.Uint16(content[lengthAt:]))
	if len(content) < at+storeHeaderSize || !bytes.Equal(content[at:at+16], authenticatedStore[:]) {
		return nil, errors.New("no store of authenticated variables")
	}
	s := &store{content: content, begin: at + storeHeaderSize, limit: at + int(binary.LittleEndian.Uint32(content[at+16:]))}
	if s.limit > len(content) {
		return nil, errors.New("the store is longer than the file")
	}
	s.end = s.begin
	for {
		header, size := s.variableAt(s.end)
		if header == nil {
			return s, nil
		}
		s.end += size
	}
}

// variableAt returns the header of the variable at the position and how many bytes it takes; nil where there is none.
func (s *store) variableAt(at int) (*variableHeader, int) {
	header := &variableHeader{}
	n, err := binary.Decode(s.content[at:s.limit], binary.LittleEndian, header)
	if err != nil || header.StartID != variableStart {
		return nil, 0
	}
	size := n + int(header.NameSize) + int(header.DataSize)
	return header, (size + variableAlign - 1) / variableAlign * variableAlign
}

// remove marks the boot variable of the name as deleted.
func (s *store) remove(name string) {
	headerSize := binary.Size(variableHeader{})
	for at := s.begin; at < s.end; {
		header, size := s.variableAt(at)
		stored := s.content[at+headerSize : at+headerSize+int(header.NameSize)]
		if header.Vendor == globalVariable && slices.Equal(stored, text(name)) {
			s.content[at+2] &= variableDeleted // bits of flash memory are only cleared
		}
		at += size
	}
}

// add appends a boot variable.
func (s *store) add(name string, data []byte) error {
	var out bytes.Buffer
	header := variableHeader{StartID: variableStart, State: variableAdded, Attributes: attributesOfBoot, NameSize: uint32(len(text(name))), DataSize: uint32(len(data)), Vendor: globalVariable}
	if err := binary.Write(&out, binary.LittleEndian, header); err != nil {
		return err
	}
	out.Write(text(name))
	out.Write(data)
	size := (out.Len() + variableAlign - 1) / variableAlign * variableAlign
	if s.end+size > s.limit {
		return errors.New("the store is full")
	}
	copy(s.content[s.end:], out.Bytes())
	s.end += size
	return nil
}

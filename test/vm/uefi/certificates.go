package uefi

import (
	"encoding/binary"
	"encoding/pem"
)

// SignatureLists returns the certificates in PEM as EFI_SIGNATURE_LISTs, one for each (UEFI 2.10, 32.4.1). OVMF reads the authorities that it trusts for
// HTTPS in this form from the fw_cfg file etc/edk2/https/cacerts.
func SignatureLists(certificates string) []byte {
	const headerSize = 28 // EFI_SIGNATURE_LIST
	var out []byte
	for block, rest := pem.Decode([]byte(certificates)); block != nil; block, rest = pem.Decode(rest) {
		size := uint32(len(guid{}) + len(block.Bytes))
		out = append(out, certX509[:]...)
		out = binary.LittleEndian.AppendUint32(out, headerSize+size)
		out = binary.LittleEndian.AppendUint32(out, 0)
		out = binary.LittleEndian.AppendUint32(out, size)
		out = append(out, make([]byte, len(guid{}))...) // nobody in particular owns it
		out = append(out, block.Bytes...)
	}
	return out
}

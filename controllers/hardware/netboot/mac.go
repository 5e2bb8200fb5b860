package netboot

import (
	"encoding/hex"
	"errors"
	"strings"
)

// errMAC names what is expected, never what was seen: the text comes from strangers.
var errMAC = errors.New("not a MAC address: expected six octets like 0c:42:a1:00:00:01")

// ParseMAC reads a 48-bit MAC address with colons, with hyphens or bare, in any case, and returns it in lower case with colons.
func ParseMAC(text string) (string, error) {
	bare := text
	if len(text) == 17 {
		separator := text[2]
		if separator != ':' && separator != '-' {
			return "", errMAC
		}
		for i := 2; i < 17; i += 3 {
			if text[i] != separator {
				return "", errMAC
			}
		}
		bare = strings.ReplaceAll(text, string(separator), "")
	}
	octets, err := hex.DecodeString(bare)
	if err != nil || len(octets) != 6 {
		return "", errMAC
	}
	var out strings.Builder
	for i, octet := range octets {
		if i > 0 {
			out.WriteByte(':')
		}
		out.WriteString(hex.EncodeToString([]byte{octet}))
	}
	return out.String(), nil
}

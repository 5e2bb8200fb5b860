package identity

import (
	"strings"
	"testing"
)

func TestAPlaceholderIdentifiesNothing(t *testing.T) {
	for _, text := range []string{
		"", " ", "To be filled by O.E.M.", "To Be Filled By O.E.M", "TO BE FILLED BY OEM", "ToBeFilledByOEM", "Not Specified", "NotSpecified", "N/A", "NA", "n.a.", "None", "NULL", "Unknown", "Default string",
		"System Serial Number", "SystemSerialNumber", "Chassis Serial Number", "Base Board Serial Number", "Serial Number", "0123456789", "123456789", "1234567890", "0123456789ABCDEF", "123",
		"0", "0000000000", "00000000-0000", "xxxxxxxx", "----", "...........", "FFFFFFFF", "11111111", "INVALID", "Empty", "Not Available", "Not Applicable", "Not Provided", "No Asset Tag", "Undefined", "OEM", "TBD", "System-Serial-Number",
		"System manufacturer", "System Product Name", "Not Present", "Unspecified System Serial Number", "not set", "Product Name", "empty string",
	} {
		if !IsPlaceholder(text) || SerialNumber(text) != "" {
			t.Errorf("%q is taken for a name", text)
		}
	}
	for _, text := range []string{"4XK92T3", "SN0001", "CZ2D1K0ABC", "S123456X7654321", "1234568", "A1B2", "7", "BNSMTXX", "2103EA", "MXQ0000001", "0000001", "PowerEdge R750", "Supermicro", "Example", "GX-8", strings.Repeat("baseboard", 9) + "x"} {
		if IsPlaceholder(text) != (text == "7") {
			t.Errorf("%q: taken for a placeholder: %t", text, IsPlaceholder(text))
		}
	}
}

func TestAnAddressThatIdentifiesAServer(t *testing.T) {
	for text, want := range map[string]string{
		"A0-88-C2-00-00-01": "a0:88:c2:00:00:01", " a088.c200.0001 ": "a0:88:c2:00:00:01",
		"": "", "00:00:00:00:00:00": "", "52:54:00:aa:00:01": "", "01:00:5e:00:00:01": "", "Not Available": "", "80:00:02:08:fe:80:00:00:00:00:00:00:b8:ce:f6:03": "",
	} {
		if got := MAC(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

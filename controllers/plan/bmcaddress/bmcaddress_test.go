package bmcaddress

import (
	"strings"
	"testing"
)

func TestBMCAddressesAreRedfishOverTLS(t *testing.T) {
	for _, c := range []struct{ given, address, path string }{
		{"redfish://10.0.0.7/redfish/v1/Systems/1", "https://10.0.0.7", "/redfish/v1/Systems/1"},
		{"redfish+https://bmc-7:8443/redfish/v1/Systems/1/", "https://bmc-7:8443", "/redfish/v1/Systems/1"},
		{"redfish-virtualmedia+https://10.0.0.7/redfish/v1/Systems/Self", "https://10.0.0.7", "/redfish/v1/Systems/Self"},
		{"redfish-virtualmedia://10.0.0.7", "https://10.0.0.7", ""},
		{"idrac-redfish://10.0.0.7/redfish/v1/Systems/System.Embedded.1", "https://10.0.0.7", "/redfish/v1/Systems/System.Embedded.1"},
		{"idrac-virtualmedia://10.0.0.7/redfish/v1/Systems/System.Embedded.1", "https://10.0.0.7", "/redfish/v1/Systems/System.Embedded.1"},
		{"ilo5-virtualmedia://10.0.0.7/redfish/v1/Systems/1", "https://10.0.0.7", "/redfish/v1/Systems/1"},
		{"https://[2001:db8::7]:443", "https://[2001:db8::7]:443", ""},
		{"redfish://root:hunter2@10.0.0.7", "https://10.0.0.7", ""},
	} {
		e, err := Parse(c.given, false)
		if err != nil || e.Address != c.address || e.SystemPath != c.path {
			t.Errorf("%s: %s and %q, %v", c.given, e.Address, e.SystemPath, err)
		}
	}
	for _, given := range []string{"", "10.0.0.7", "ipmi://10.0.0.7", "redfish+http://root:hunter2@10.0.0.7", "idrac-virtualmedia+http://10.0.0.7", "idrac://10.0.0.7", "ilo5://10.0.0.7", "irmc://10.0.0.7", "http://10.0.0.7",
		"redfish://", "redfish://bad host/", "nonsense://root:hunter2@host", "redfish://a:hunter2@%zz", "redfish://-host-:hunter2"} {
		if e, err := Parse(given, false); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %+v, %v", given, e, err)
		}
	}
}

func TestIPMIIsForInstallersThatSpeakIt(t *testing.T) {
	for given, address := range map[string]string{"ipmi://10.0.0.7": "ipmi://10.0.0.7:623", "ipmi://bmc-7:6230": "ipmi://bmc-7:6230", "ipmi://[2001:db8::7]": "ipmi://[2001:db8::7]:623", "10.0.0.7": "ipmi://10.0.0.7:623"} {
		if e, err := Parse(given, true); err != nil || e.Address != address {
			t.Errorf("%s: %+v, %v", given, e, err)
		}
	}
}

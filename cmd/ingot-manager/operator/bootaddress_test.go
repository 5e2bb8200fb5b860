package operator

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheBootServicesAddressMakesAURL(t *testing.T) {
	for address, want := range map[string]string{
		"10.20.0.2":            "http://10.20.0.2:8090",
		"10.20.0.2:80":         "http://10.20.0.2:80",
		"boot.hall-1.internal": "http://boot.hall-1.internal:8090",
		"[fd00::2]":            "http://[fd00::2]:8090",
		"[fd00::2]:9000":       "http://[fd00::2]:9000",
	} {
		if got := bootURL(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func TestTheSecureAddressFollowsTheAddress(t *testing.T) {
	for _, c := range []struct{ address, secure, port, want string }{
		{"10.20.0.2", "", "8092", "https://10.20.0.2:8092"},
		{"10.20.0.2:80", "", "8092", "https://10.20.0.2:8092"},
		{"10.20.0.2:80", "10.20.0.3", "8092", "https://10.20.0.3:8092"},
		{"10.20.0.2:80", "boot.hall-1.internal:443", "8092", "https://boot.hall-1.internal:443"},
		{"[fd00::2]:80", "", "8092", "https://[fd00::2]:8092"},
		{"10.20.0.2", "[fd00::3]", "8092", "https://[fd00::3]:8092"},
		{"10.20.0.2", "10.20.0.3:443", "", ""},
	} {
		if got := secureURL(v1alpha1.NetbootSpec{Address: c.address, SecureAddress: c.secure}, c.port); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.address, c.secure, got, c.want)
		}
	}
}

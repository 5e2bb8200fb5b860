package operator

import "testing"

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

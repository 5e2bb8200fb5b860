package main

import (
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestTheFirmwareOfANICIsWhatItsDriverTells(t *testing.T) {
	for field, want := range map[string]string{
		"28.39.1002 (MT_0000000838)\x00\x00": "28.39.1002 (MT_0000000838)", "N/A\x00garbage": "", "\x00": "", "": "", "32 characters without an end char": "32 characters without an end char",
	} {
		if got := firmwareVersion([]byte(field)); got != want {
			t.Errorf("%q: %q, expected %q", field, got, want)
		}
	}
	kept := hardware.Inventory{NICs: []hardware.NIC{{Name: "lo", Firmware: "sysfs"}, {Name: "no-such-nic"}}}
	addNICFirmware(&kept)
	if kept.NICs[0].Firmware != "sysfs" || kept.NICs[1].Firmware != "" {
		t.Errorf("%+v", kept.NICs)
	}
}

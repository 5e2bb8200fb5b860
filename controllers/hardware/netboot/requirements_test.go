package netboot

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

func TestAServerThatLacksHardwareGetsNoInstructions(t *testing.T) {
	required := hardware.Requirements{
		FullGPULinkWidth: true, GPUVendors: []string{"10de"}, Firmware: []hardware.RequiredFirmware{{Component: hardware.FirmwareBMC, MinVersion: "7.10"}},
	}
	for name, c := range map[string]struct {
		width, bmc string
		operation  hardware.Operation
		says       string
	}{
		"all there":                            {"16", "7.10.30", hardware.OpInstall, ""},
		"a GPU at x8":                          {"8", "7.10.30", hardware.OpInstall, "has its 16 PCIe lanes, seen 8"},
		"an old BMC, which only the BMC knows": {"16", "6.99", hardware.OpInstall, "of the BMC, seen 6.99"},
		"a BMC that told nothing":              {"16", "", hardware.OpInstall, "which does not tell its version"},
		"an erase needs nothing of it":         {"8", "", hardware.OpErase, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.host().Operation, s.host().Requirements, s.host().Inventory = c.operation, required, &hardware.Inventory{BMCVersion: c.bmc}
			token := s.boot()
			code := s.call("POST", protocol.PathRegister, token, `{"inventory":{"systemUUID":"dmi","deviceSource":"Agent","nics":[{"mac":"0c:42:a1:00:00:0a"}],"pciDevices":[`+
				`{"address":"0000:3b:00.0","vendorID":"10de","deviceID":"2330","class":"030200","linkWidth":`+c.width+`,"maxLinkWidth":16}]}}`)
			h := s.host()
			if h.Inventory == nil || h.Inventory.SystemUUID != "dmi" || h.Inventory.BMCVersion != c.bmc {
				t.Errorf("the inventory of the agent was not stored: %+v", h.Inventory)
			}
			if c.says == "" {
				if code != "" || h.State != hardware.AttemptRunning {
					t.Errorf("code %q, %s %s", code, h.State, h.Message)
				}
				return
			}
			if code != protocol.AttemptClosed || h.State != hardware.AttemptFailed || h.Reason != hardware.ReasonHardwareInsufficient {
				t.Errorf("code %q, %s %s", code, h.State, h.Reason)
			}
			for _, word := range []string{c.says, "nothing was written", "spec.hardware"} {
				if !strings.Contains(h.Message, word) {
					t.Errorf("the message %q lacks %q", h.Message, word)
				}
			}
			if code := s.call("GET", protocol.PathConfigDrive, token, ""); code != protocol.AttemptClosed {
				t.Errorf("the config drive after the refusal: code %q", code)
			}
		})
	}
}

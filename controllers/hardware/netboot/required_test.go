package netboot

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

func TestAServerWithoutTheRequiredGPUsGetsNoInstructions(t *testing.T) {
	const (
		gpu    = `{"vendorID":"10de","deviceID":"2330","class":"030200"}`
		other  = `{"vendorID":"10de","deviceID":"2335","class":"030200"}`
		nic    = `{"vendorID":"15b3","deviceID":"1021","class":"020000"}`
		differ = hardware.ReasonHardwareDiffers
	)
	for name, c := range map[string]struct {
		devices string
		reason  hardware.Reason
	}{
		"all of them": {gpu + "," + gpu + "," + nic, ""}, "one is missing": {gpu, differ}, "other GPUs": {other + "," + other, differ}, "none": {nic, differ}, "no scan": {"", differ},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.host().GPUs = hardware.RequiredGPUs{Model: "H100-SXM5-80GB", VendorID: "10de", DeviceIDs: "2330", Count: 2}
			token := s.boot()
			code := s.call("POST", protocol.PathRegister, token, `{"inventory":{"systemUUID":"dmi","deviceSource":"Agent","nics":[{"mac":"0c:42:a1:00:00:0a"}],"pciDevices":[`+c.devices+`]}}`)
			h := s.host()
			if c.reason == "" {
				if code != "" || h.State != hardware.AttemptRunning {
					t.Errorf("code %q, %s", code, h.State)
				}
				return
			}
			if code != protocol.AttemptClosed || h.State != hardware.AttemptFailed || h.Reason != c.reason || h.Inventory == nil || h.Inventory.SystemUUID != "dmi" {
				t.Errorf("code %q, %s %s, inventory %+v", code, h.State, h.Reason, h.Inventory)
			}
			for _, word := range []string{"expected 2 GPUs H100-SXM5-80GB", "nothing was written", "NodeType"} {
				if !strings.Contains(h.Message, word) {
					t.Errorf("the message %q lacks %q", h.Message, word)
				}
			}
			for _, path := range []string{protocol.PathConfigDrive, protocol.PathProgress} {
				method := map[string]string{protocol.PathConfigDrive: "GET", protocol.PathProgress: "POST"}[path]
				if code := s.call(method, path, token, `{"step":"Writing","doneBytes":1,"totalBytes":9}`); code != protocol.AttemptClosed {
					t.Errorf("%s after the refusal: code %q", path, code)
				}
			}
		})
	}
}

func TestAServerOfAnotherArchitectureThanTheImageGetsNoInstructions(t *testing.T) {
	s := newSite(t)
	s.host().Requirements = hardware.Requirements{Architecture: "amd64"}
	code := s.call("POST", protocol.PathRegister, s.boot(), `{"inventory":{"systemUUID":"dmi","architecture":"aarch64","nics":[{"mac":"0c:42:a1:00:00:0a"}]}}`)
	if h := s.host(); code != protocol.AttemptClosed || h.Reason != hardware.ReasonHardwareInsufficient || !strings.Contains(h.Message, "amd64, seen arm64") || !strings.Contains(h.Message, "nothing was written") {
		t.Errorf("code %q, %s: %s", code, h.Reason, h.Message)
	}
}

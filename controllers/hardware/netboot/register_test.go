package netboot

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

const bootPath = "/boot/0c:42:a1:00:00:0a"

func TestTheFirstKeyThatRegistersOwnsTheBoot(t *testing.T) {
	s := newSite(t)
	token := s.boot()
	before := s.store.updates
	for range 2 { // the answer to the first may have been lost
		if got := s.call("POST", protocol.PathRegister, token, hostRegistration); got != "" {
			t.Fatalf("registering: %q", got)
		}
	}
	h := s.host()
	if h.Channel != hardware.ChannelNetwork {
		t.Errorf("the boot document was asked for, and the channel is %q", h.Channel)
	}
	if h.Agent.KeyDigest == "" || strings.Contains(h.Agent.KeyDigest, s.agentKey) || h.Agent.Address != "127.0.0.1" || h.Step != hardware.StepRegistered || h.Inventory.SystemUUID != "dmi" {
		t.Errorf("agent %+v at %s, inventory %+v", h.Agent, h.Step, h.Inventory)
	}
	if h.Findings != (Findings{}) || s.store.updates-before > 2 {
		t.Errorf("findings %+v after %d writes", h.Findings, s.store.updates-before)
	}
}

// TestASecondAgentEndsTheAttempt: which of two agents is the server's is not known, so that neither is believed.
func TestASecondAgentEndsTheAttempt(t *testing.T) {
	for path, body := range map[string]string{
		protocol.PathRegister: hostRegistration, protocol.PathProgress: `{"step":"Writing","doneBytes":1,"totalBytes":2}`, protocol.PathResult: `{"reason":"DiskError"}`,
		protocol.PathDisks: `{}`, protocol.PathConfigDrive: "",
	} {
		for _, isDone := range []bool{false, true} {
			s := newSite(t)
			token := s.bootAgent()
			own := s.agentKey
			if isDone {
				if got := s.call("POST", protocol.PathResult, token, `{"rootDisk":{"serialNumber":"S1"}}`); got != "" {
					t.Fatal(got)
				}
			}
			s.agentKey = strings.Repeat("0b", protocol.KeyBytes)
			method := "POST"
			if body == "" {
				method = "GET"
			}
			if got := s.call(method, path, token, body); got != protocol.AnotherAgent && !(isDone && got == protocol.AttemptClosed) {
				t.Errorf("%s with another key: %q", path, got)
			}
			h := s.host()
			if isDone {
				if h.State != hardware.AttemptRunning || h.Step != hardware.StepFinishing {
					t.Errorf("%s after an installation was done: the attempt is %s at %s, %s", path, h.State, h.Step, h.Reason)
				}
				continue
			}
			if h.State != hardware.AttemptFailed || h.Reason != hardware.ReasonAnotherAgent || strings.Count(h.Message, "127.0.0.1") != 2 || h.Findings.AnotherAgent.Count != 1 {
				t.Errorf("%s: the attempt is %s, %s %q; finding %+v", path, h.State, h.Reason, h.Message, h.Findings.AnotherAgent)
			}
			s.agentKey = own
			if got := s.call("POST", protocol.PathProgress, token, `{"step":"Writing","doneBytes":1,"totalBytes":2}`); got != protocol.AttemptClosed {
				t.Errorf("%s, then the first agent: %q", path, got)
			}
		}
	}
}

func TestAConfigDriveThatIsNotWrittenYetIsAwaited(t *testing.T) {
	s := newSite(t)
	s.store.isUnwritten = true
	token := s.boot()
	if got := s.call("POST", protocol.PathRegister, token, hostRegistration); got != "" || !s.host().ConfigDriveAwaitedAt.IsZero() {
		t.Fatalf("registering: %q, the config drive is awaited since %s", got, s.host().ConfigDriveAwaitedAt)
	}
	asked, before := s.now, s.store.updates
	for range 3 {
		if got := s.drive(token); got != protocol.NotYet {
			t.Errorf("a config drive that is not written: %q", got)
		}
		s.now = s.now.Add(10 * time.Second)
	}
	if at := s.host().ConfigDriveAwaitedAt; !at.Equal(asked) || s.store.updates != before+1 {
		t.Errorf("awaited since %s after %d writes, expected %s and one", at, s.store.updates-before, asked)
	}
	s.store.isUnwritten = false
	if got := s.drive(token); got != "" {
		t.Errorf("the config drive that is written: %q", got)
	}
}

func TestAServerWithoutTheBootMACIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for nics, want := range map[string]protocol.Code{
		`[{"mac":"0C-42-A1-00-00-0A"}]`:                               "",
		`[{"mac":"52:54:00:00:00:01"},{"mac":"0c:42:a1:00:00:0a"}]`:   "",
		`[{"mac":"0c:42:a1:00:00:0b"}]`:                               protocol.WrongServer,
		`[{"mac":"80:00:02:08:fe:80:00:00:00:00:00:00:b8:ce:f6:03"}]`: protocol.WrongServer,
		`[]`: protocol.WrongServer,
	} {
		s := newSite(t)
		if got := s.call("POST", protocol.PathRegister, s.boot(), `{"inventory":{"nics":`+nics+`}}`); got != want {
			t.Errorf("%s: %q, expected %q", nics, got, want)
		}
		h := s.host()
		if failed := h.State == hardware.AttemptFailed && h.Reason == hardware.ReasonWrongServer; failed != (want != "") {
			t.Errorf("%s: the attempt is %s: %s", nics, h.State, h.Reason)
		}
		if want != "" && (!strings.Contains(h.Message, h.BootMAC) || h.Agent != (Agent{}) || h.Inventory != nil) {
			t.Errorf("%s: %s; agent %+v", nics, h.Message, h.Agent)
		}
	}
}

func TestAServerThatDiffersIsReportedOrRefused(t *testing.T) {
	known := hardware.Inventory{SerialNumber: "SN1", NICs: []hardware.NIC{{MAC: "0c:42:a1:00:00:0a"}, {MAC: "0c:42:a1:00:00:ff"}, {MAC: "02:00:00:00:00:01"}}}
	for name, c := range map[string]struct {
		known   hardware.Inventory
		found   string
		differs string
	}{
		"the same":                {known, `"serialNumber":"sn1 ","nics":[{"mac":"0c:42:a1:00:00:0a"},{"mac":"0c:42:a1:00:00:ff"}]`, ""},
		"another serial number":   {known, `"serialNumber":"SN2","nics":[{"mac":"0c:42:a1:00:00:0a"},{"mac":"0c:42:a1:00:00:ff"}]`, `serial number expected "SN1", seen "SN2"`},
		"a placeholder":           {known, `"serialNumber":"To be filled by O.E.M.","nics":[{"mac":"0c:42:a1:00:00:0a"},{"mac":"0c:42:a1:00:00:ff"}]`, `serial number expected "SN1"`},
		"no serial number":        {known, `"nics":[{"mac":"0c:42:a1:00:00:0a"},{"mac":"0c:42:a1:00:00:ff"}]`, `serial number expected "SN1", seen ""`},
		"none, and the same UUID": {hardware.Inventory{SerialNumber: "SN1", SystemUUID: "11112222-0000-4000-8000-000000000001"}, `"systemUUID":"11112222-0000-4000-8000-000000000001","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, ""},
		"no system UUID":          {hardware.Inventory{SystemUUID: "11112222-0000-4000-8000-000000000001"}, `"serialNumber":"SN1","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, `system UUID expected "11112222-0000-4000-8000-000000000001", seen ""`},
		"zeros":                   {hardware.Inventory{SerialNumber: "0000000"}, `"serialNumber":"SN2","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, ""},
		"a missing NIC":           {known, `"serialNumber":"SN1","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, "known NICs are missing: 0c:42:a1:00:00:ff"},
		"more NICs":               {hardware.Inventory{}, `"nics":[{"mac":"0c:42:a1:00:00:0a"},{"mac":"0c:42:a1:00:00:ff"}]`, ""},
		"another system UUID":     {hardware.Inventory{SystemUUID: "11112222-0000-4000-8000-000000000001"}, `"systemUUID":"11112222-0000-4000-8000-000000000002","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, "system UUID expected"},
		"a UUID only one knows":   {hardware.Inventory{SystemUUID: ""}, `"systemUUID":"11112222-0000-4000-8000-000000000002","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, ""},
		"a UUID of all the same":  {hardware.Inventory{SystemUUID: "ffffffff-ffff-ffff-ffff-ffffffffffff"}, `"systemUUID":"11112222-0000-4000-8000-000000000002","nics":[{"mac":"0c:42:a1:00:00:0a"}]`, ""},
	} {
		for _, strict := range []bool{false, true} {
			s := newSite(t)
			s.settings.StrictIdentity, s.host().Inventory = strict, &c.known
			got := s.call("POST", protocol.PathRegister, s.boot(), `{"inventory":{`+c.found+`}}`)
			h := s.host()
			switch {
			case c.differs == "":
				if got != "" || h.Findings != (Findings{}) {
					t.Errorf("%s: %q, %+v", name, got, h.Findings)
				}
			case strict:
				if got != protocol.ServerDiffers || h.Reason != hardware.ReasonServerDiffers || h.State != hardware.AttemptFailed || !strings.Contains(h.Message, c.differs) {
					t.Errorf("%s with strictIdentity: %q, the attempt is %s: %s %s", name, got, h.State, h.Reason, h.Message)
				}
			case got != "" || h.Findings.ServerDiffers.Count != 1 || !strings.Contains(h.Findings.ServerDiffers.Message, c.differs):
				t.Errorf("%s: %q, %+v", name, got, h.Findings)
			}
		}
	}
}

func TestTheSerialNumberOfTheBMCStaysTheKnownOne(t *testing.T) {
	s := newSite(t)
	s.host().Inventory = &hardware.Inventory{SerialNumber: "SN1"}
	s.call("POST", protocol.PathRegister, s.boot(), `{"inventory":{"serialNumber":"SN2","systemUUID":"dmi","nics":[{"mac":"0c:42:a1:00:00:0a"}]}}`)
	if i := s.host().Inventory; i.SerialNumber != "SN1" || i.SystemUUID != "dmi" {
		t.Errorf("inventory %+v, expected the next boot of that server to differ again", i)
	}
}

func TestAnAgentThatFindsOtherHardwareThanTheBMCIsBelieved(t *testing.T) {
	gpus := func(n int) []hardware.PCIDevice {
		return slices.Repeat([]hardware.PCIDevice{{VendorID: "10de", DeviceID: "2330", Class: "030200"}}, n)
	}
	s := newSite(t)
	s.host().Work = Work{Operation: hardware.OpInspect, Inspector: hardware.InspectByAgent}
	s.host().Inventory = &hardware.Inventory{Manufacturer: "Example", BIOSVersion: "1.2", BMCVersion: "7.1", MemoryBytes: 64 << 30, PCIDevices: gpus(8), DeviceSource: hardware.DevicesByBMC}
	devices, err := json.Marshal(gpus(7))
	if err != nil {
		t.Fatal(err)
	}
	token := s.boot()
	if code := s.call("POST", protocol.PathRegister, token, `{"inventory":{"systemUUID":"dmi","deviceSource":"Agent","nics":[{"mac":"0c:42:a1:00:00:0a"}],"pciDevices":`+string(devices)+`}}`); code != "" {
		t.Fatal(code)
	}
	h := s.host()
	if found := h.Findings.InventoryDiffers; found.Count != 1 || !strings.Contains(found.Message, "the BMC reports 8 GPUs 10de:2330, the agent sees 7 GPUs 10de:2330") {
		t.Errorf("finding %+v", found)
	}
	if i := h.Inventory; len(i.PCIDevices) != 7 || i.Manufacturer != "Example" || i.BIOSVersion != "1.2" || i.BMCVersion != "7.1" || i.MemoryBytes != 64<<30 {
		t.Errorf("inventory %+v, expected the agent's GPUs, and what only the BMC told", i)
	}
	if code := s.call("POST", protocol.PathResult, token, `{}`); code != "" || s.host().Step != hardware.StepFinishing {
		t.Errorf("code %q, step %s: expected the result of the inspection to be taken", code, s.host().Step)
	}
}

func TestAFindingAboutPartsStaysUntilTheyAreBack(t *testing.T) {
	finding := Finding{Count: 1, Message: "the BMC reports 8 GPUs 10de:2330, the agent sees 7 GPUs 10de:2330"}
	known := func(n int, uuid string) *hardware.Inventory {
		return &hardware.Inventory{SystemUUID: uuid, DeviceSource: hardware.DevicesByBMC, PCIDevices: slices.Repeat([]hardware.PCIDevice{{VendorID: "10de", DeviceID: "2330", Class: "030200"}}, n)}
	}
	for name, c := range map[string]struct {
		known *hardware.Inventory
		found int
		stays bool
	}{
		"an agent sees the same":            {known(7, "dmi"), 7, true},
		"an agent sees less":                {known(7, "dmi"), 6, true},
		"the part is back":                  {known(7, "dmi"), 8, false},
		"the BMC was asked again, and errs": {known(8, ""), 7, true},
		"the BMC was asked again":           {known(7, ""), 7, false},
	} {
		s := newSite(t)
		s.host().Inventory, s.host().Findings.InventoryDiffers = c.known, finding
		devices, err := json.Marshal(known(c.found, "").PCIDevices)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"inventory":{"systemUUID":"dmi","deviceSource":"Agent","nics":[{"mac":"0c:42:a1:00:00:0a"}],"pciDevices":` + string(devices) + `}}`
		if code := s.call("POST", protocol.PathRegister, s.boot(), body); code != "" {
			t.Fatalf("%s: %s", name, code)
		}
		if got := s.host().Findings.InventoryDiffers; (got.Count > 0) != c.stays {
			t.Errorf("%s: finding %+v", name, got)
		}
	}
}

func TestAFurtherBootDocumentIsServedAfterSilenceOrAPowerChange(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	for range 4 { // 8 minutes: more often than a BootLoop has boots
		s.now = s.now.Add(time.Minute)
		if status, script := s.get(bootPath); status != 200 || !strings.Contains(script, "sleep 30") || !strings.Contains(script, "chain --replace --autofree "+s.url+bootPath) {
			t.Fatalf("while the agent is at work: %d %s", status, script)
		}
		s.now = s.now.Add(time.Minute)
		if got := s.call("POST", protocol.PathProgress, token, `{"step":"Writing","doneBytes":1,"totalBytes":9}`); got != "" {
			t.Fatalf("the agent: %q", got)
		}
	}
	if h := s.host(); h.Boots != 1 || h.State != hardware.AttemptRunning || h.Findings.BootRequestedAgain.Count != 4 || !strings.Contains(h.Findings.BootRequestedAgain.Message, "127.0.0.1") {
		t.Errorf("%d boots, %s, %+v", h.Boots, h.State, h.Findings)
	}
	s.now = s.now.Add(2*time.Minute - time.Second)
	if _, script := s.get(bootPath); strings.Contains(script, "ingot.token") {
		t.Errorf("a second before two minutes of silence: %s", script)
	}
	s.now = s.now.Add(time.Second)
	s.boot()
	if h := s.host(); h.Boots != 2 || h.Agent != (Agent{}) || h.Step != hardware.StepLoading {
		t.Errorf("after the silence: %d boots, agent %+v at %s", h.Boots, h.Agent, h.Step)
	}
	token = s.bootAgentAgain()
	// The Installer saw that the power was lost, and powered the server on again.
	s.host().Step, s.host().Agent = hardware.StepBooting, Agent{}
	s.boot()
	if got := s.drive(token); got != protocol.TokenSuperseded {
		t.Errorf("the agent of the boot before: %q", got)
	}
}

// bootAgentAgain registers an agent with the token of the boot that was counted last.
func (s *site) bootAgentAgain() string {
	s.Helper()
	h := s.host()
	token := signToken(s.key, claims{hostUID: h.HostUID, attempt: h.Number, boot: int64(h.Boots), expires: h.Deadline})
	if got := s.call("POST", protocol.PathRegister, token, hostRegistration); got != "" {
		s.Fatalf("registering: %s", got)
	}
	return token
}

func TestAReplicaThatHasJustHeardTheAgentKnowsIt(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	s.now = s.now.Add(61 * time.Second)
	s.call("POST", protocol.PathProgress, token, `{"step":"Registered","doneBytes":0,"totalBytes":0}`) // stored
	s.now = s.now.Add(59 * time.Second)
	stored := s.store.updates
	s.call("POST", protocol.PathProgress, token, `{"step":"Registered","doneBytes":0,"totalBytes":0}`) // not stored
	if s.store.updates != stored {
		t.Fatal("the report was stored: nothing was tested")
	}
	s.now = s.now.Add(119 * time.Second)
	if _, script := s.get(bootPath); strings.Contains(script, "ingot.token") {
		t.Error("the agent was heard two minutes ago and its boot is given away")
	}
}

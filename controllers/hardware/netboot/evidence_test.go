package netboot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// TestTheBootServiceHandsOverWhatTheAgentSaysOfAnErase: the manager judges it (diskrules.CheckEvidence).
func TestTheBootServiceHandsOverWhatTheAgentSaysOfAnErase(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	session := s.host()
	session.Operation, session.Erase = hardware.OpErase, hardware.EraseFull
	session.Disks = &hardware.KnownDisks{Expected: []hardware.Disk{{SerialNumber: "S1", SizeBytes: 100}, {SerialNumber: "S2", SizeBytes: 100}}}
	s.store.sessions[session.HostUID] = session
	half := hardware.DiskEvidence{Disk: hardware.Disk{SerialNumber: "S1", SizeBytes: 100}, Method: hardware.MethodOverwrite, Bytes: 50, Result: hardware.DiskErased}
	body, err := json.Marshal(protocol.Result{Evidence: []hardware.DiskEvidence{half}, Message: "done"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.call("POST", protocol.PathResult, token, string(body)); got != "" {
		t.Errorf("the result is refused: %q", got)
	}
	if got := s.host(); got.Step != hardware.StepFinishing || got.Evidence == nil || len(got.Evidence.Disks) != 1 || got.Evidence.Disks[0] != half || got.Message != "done" {
		t.Errorf("session %+v", got)
	}
}

func TestEvidenceThatCannotBeStoredIsRefused(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	for _, evidence := range []string{
		`[{"method":"Magic","result":"Erased"}]`, `[{"method":"Overwrite","result":"Gone"}]`, `[{"method":"Overwrite","bytes":-1,"result":"Erased"}]`,
		`[` + strings.Repeat(`{"result":"Erased"},`, hardware.MaxDisks) + `{"result":"Erased"}]`,
	} {
		if got := s.call("POST", protocol.PathResult, token, `{"evidence":`+evidence+`}`); got != protocol.BadRequest {
			t.Errorf("%.60s: %q", evidence, got)
		}
	}
	long := strings.Repeat("\x01x", 200)
	body, err := json.Marshal(protocol.Result{RootDisk: &hardware.Disk{SerialNumber: long, SizeBytes: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.call("POST", protocol.PathResult, token, string(body)); got != "" {
		t.Fatalf("result: %q", got)
	}
	if disk := s.host().RootDisk; len(disk.SerialNumber) != maxDiskText || strings.Contains(disk.SerialNumber, "\x01") || disk.SizeBytes != 0 {
		t.Errorf("root disk %+v", disk)
	}
}

// TestARegistrationIsBoundedAndItsTextsAreClean: whatever runs on a server may send it.
func TestARegistrationIsBoundedAndItsTextsAreClean(t *testing.T) {
	disks := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"name":"/dev/sda","serialNumber":"S","sizeBytes":1},`, n), ",")
	}
	s := newSite(t)
	token := s.boot()
	for name, inventory := range map[string]string{
		"a thousand disks and more": `{"disks":[` + disks(maxItems+1) + `]}`,
		"many elements":             `{"disks":[` + strings.TrimSuffix(strings.Repeat("{},", 40_000), ",") + `]}`,
		"depth":                     strings.Repeat("[", 1000),
	} {
		if got := s.call("POST", protocol.PathRegister, token, `{"inventory":`+inventory+`}`); got != protocol.BadRequest {
			t.Errorf("%s: %q", name, got)
		}
	}
	body := `{"inventory":{"manufacturer":"Evil\u001b[2J\u202eCorp\nserver-2","cpuThreads":-3,"nics":[{"mac":"` + s.host().BootMAC + `"}],"disks":[` + disks(maxItems) + `]}}`
	if got := s.call("POST", protocol.PathRegister, token, body); got != "" {
		t.Fatalf("register: %q", got)
	}
	if found := s.host().Inventory; found.Manufacturer != "Evil?[2J?Corp server-2" || found.CPUThreads < 0 {
		t.Errorf("the inventory is %q with %d threads", found.Manufacturer, found.CPUThreads)
	}
}

package netboot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

func TestAnEraseCountsOnlyWithEvidenceForEveryDisk(t *testing.T) {
	first, second := hardware.Disk{Name: "/dev/nvme0n1", SerialNumber: "S1", SizeBytes: 100}, hardware.Disk{Name: "/dev/nvme1n1", SerialNumber: "S2", SizeBytes: 100}
	erased := func(disk hardware.Disk, change ...func(*hardware.DiskEvidence)) hardware.DiskEvidence {
		out := hardware.DiskEvidence{Disk: disk, Method: hardware.MethodOverwrite, Bytes: disk.SizeBytes, Result: hardware.DiskErased}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	metadata := func(e *hardware.DiskEvidence) { e.Method, e.Bytes = hardware.MethodMetadata, 10 }
	sanitized := func(e *hardware.DiskEvidence) { e.Method = hardware.MethodSanitizeBlock }
	half := func(e *hardware.DiskEvidence) { e.Bytes = 50 }
	failed := func(e *hardware.DiskEvidence) { e.Result = hardware.DiskFailed }
	for _, c := range []struct {
		name     string
		mode     hardware.EraseMode
		known    *hardware.KnownDisks
		found    []hardware.Disk
		evidence []hardware.DiskEvidence
		code     protocol.Code
		names    string
	}{
		{"all", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first, second}}, []hardware.Disk{first, second}, []hardware.DiskEvidence{erased(second), erased(first)}, "", ""},
		{"none", hardware.EraseFull, nil, nil, nil, protocol.EvidenceMissing, "no evidence"},
		{"none, for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, nil, protocol.EvidenceMissing, "no evidence"},
		{"a disk of the record", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first, second}}, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, protocol.EvidenceMissing, "S2"},
		{"a disk that the agent found", hardware.EraseFull, nil, []hardware.Disk{first, second}, []hardware.DiskEvidence{erased(first)}, protocol.EvidenceMissing, "S2"},
		{"a disk that is gone", hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{first}, Gone: []string{"S2"}}, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, "", ""},
		{"a disk that failed", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, failed)}, protocol.EvidenceMissing, "S1"},
		{"half a disk", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, half)}, protocol.EvidenceMissing, "50 of 100"},
		{"metadata for full", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, metadata)}, protocol.EvidenceMissing, "Metadata"},
		{"metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, metadata)}, "", ""},
		{"full for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first)}, "", ""},
		{"by the disk itself", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, sanitized)}, "", ""},
		{"half a disk by itself", hardware.EraseFull, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, sanitized, half)}, protocol.EvidenceMissing, "50 of 100"},
		{"half a disk for metadata", hardware.EraseMetadata, nil, []hardware.Disk{first}, []hardware.DiskEvidence{erased(first, half)}, protocol.EvidenceMissing, "50 of 100"},
	} {
		s := newSite(t)
		token := s.bootAgent()
		session := s.host()
		session.Operation, session.Erase, session.Disks, session.Inventory = hardware.OpErase, c.mode, c.known, &hardware.Inventory{Disks: c.found}
		s.store.sessions[session.HostUID] = session
		body, err := json.Marshal(protocol.Result{Evidence: c.evidence, Message: "done"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.call("POST", protocol.PathResult, token, string(body)); got != c.code {
			t.Errorf("%s: %q, want %q", c.name, got, c.code)
		}
		switch got := s.host(); {
		case c.code == "" && (got.Step != hardware.StepFinishing || got.Evidence == nil || len(got.Evidence.Disks) != len(c.evidence) || got.Message != "done"):
			t.Errorf("%s: session %+v", c.name, got)
		case c.code != "" && (got.State != hardware.AttemptFailed || got.Reason != hardware.ReasonEvidenceMissing || !strings.Contains(got.Message, c.names)):
			t.Errorf("%s: session %s %s %q, want %s with %q", c.name, got.State, got.Reason, got.Message, hardware.ReasonEvidenceMissing, c.names)
		}
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

package netboot

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// answer sends a request of the agent and returns the whole answer.
func (s *site) answer(method, path, token, body string) string {
	s.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(protocol.HeaderKey, s.agentKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// TestNoAnswerToAnAgentTellsWhatTheServerIsKnownBy: a neighbour boots with the MAC address of a server, and repeats what it is told.
func TestNoAnswerToAnAgentTellsWhatTheServerIsKnownBy(t *testing.T) {
	secret := hardware.Disk{Name: "/dev/nvme7n1", SerialNumber: "SECRET-SERIAL", WWN: "eui.5ec2e70000000001", Model: "SECRET-MODEL", SizeBytes: 7_777_777_777}
	for _, operation := range []hardware.Operation{hardware.OpErase, hardware.OpInstall} {
		for _, strict := range []bool{false, true} {
			s := newSite(t)
			s.settings.StrictIdentity = strict
			h := s.host()
			h.Operation, h.Erase, h.Disks = operation, hardware.EraseFull, &hardware.KnownDisks{Expected: []hardware.Disk{secret}}
			h.PreviousRootDisk, h.AcceptedRootDisk, h.RootDevice = secret, "SECRET-ACCEPTED", hardware.RootDevice{SerialNumber: "SECRET-SERIAL", Model: "SECRET-MODEL"}
			h.Inventory = &hardware.Inventory{
				SerialNumber: "SECRET-SYSTEM", SystemUUID: "5ec2e700-0000-4000-8000-000000000001", Disks: []hardware.Disk{secret},
				NICs: []hardware.NIC{{MAC: "0c:42:a1:00:00:0a"}, {MAC: "5e:c2:e7:00:00:01"}},
			}
			token := s.boot()
			told := s.answer("POST", protocol.PathRegister, token, `{"inventory":{"nics":[{"mac":"0c:42:a1:00:00:0a"}]}}`)
			told += s.answer("POST", protocol.PathDisks, token, `{"disks":[{"name":"/dev/sda","serialNumber":"MINE","sizeBytes":100}]}`)
			told += s.answer("POST", protocol.PathProgress, token, `{"step":"Erasing","doneBytes":1,"totalBytes":2}`)
			told += s.answer("POST", protocol.PathResult, token, `{"evidence":[{"serialNumber":"MINE","sizeBytes":100,"bytes":100,"method":"Overwrite","result":"Erased"}]}`)
			for _, known := range []string{"SECRET", "5ec2e7", "5e:c2:e7", "nvme7n1", "7777777777"} {
				if strings.Contains(told, known) {
					t.Errorf("%s, strict %t: the agent is told %q: %s", operation, strict, known, told)
				}
			}
			if got := s.host(); got.State != hardware.AttemptFailed || !strings.Contains(got.Message, "SECRET") {
				t.Errorf("%s, strict %t: the attempt is %s: %s %s, expected what differs for who may read the host", operation, strict, got.State, got.Reason, got.Message)
			}
		}
	}
}

// TestWhatAnAgentSaysOfItsDisksIsBounded: it may be another program.
func TestWhatAnAgentSaysOfItsDisksIsBounded(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	for _, unusable := range []bool{false, true} {
		var request protocol.Disks
		if unusable {
			request.Unusable = make([]hardware.UnusableDisk, hardware.MaxDisks+1)
		} else {
			request.Disks = make([]hardware.Disk, hardware.MaxDisks+1)
		}
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.call("POST", protocol.PathDisks, token, string(body)); got != protocol.BadRequest {
			t.Errorf("%d disks, unusable %t: %q", hardware.MaxDisks+1, unusable, got)
		}
	}
	s.host().Operation = hardware.OpInspect
	if got := s.call("POST", protocol.PathDisks, token, `{}`); got != protocol.BadRequest {
		t.Errorf("disks in an inspection: %q", got)
	}
	s.host().Operation, s.host().Step = hardware.OpInstall, hardware.StepFinishing
	if got := s.call("POST", protocol.PathDisks, token, `{}`); got != protocol.AttemptClosed {
		t.Errorf("disks after the result: %q", got)
	}
}

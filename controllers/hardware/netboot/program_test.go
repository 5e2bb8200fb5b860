package netboot

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

const programPath = "/boot/0c:42:a1:00:00:0a/" + ProgramARM64

// newSiteARM64 is a site with files for servers with an arm64 processor.
func newSiteARM64(t *testing.T) *site {
	s := newSite(t)
	s.service.options.ARM64 = BootFiles{Kernel: "k", Initrd: "i", Program: func(commandLine string) (io.ReadSeeker, error) {
		return strings.NewReader((commandLine + strings.Repeat(" ", 2048))[:2048]), nil
	}}
	return s
}

func TestFirmwareOfARM64GetsTheAgentAsOneProgram(t *testing.T) {
	s := newSiteARM64(t)
	response, err := http.Head(s.url + programPath)
	if err != nil || response.StatusCode != http.StatusOK || response.ContentLength != 2048 || s.host().Boots != 0 {
		t.Fatalf("the size: %v, %+v; %d boots", err, response, s.host().Boots)
	}
	status, program := s.get(programPath)
	if status != http.StatusOK || !strings.Contains(program, "ingot.url="+s.url) || !strings.Contains(program, "ingot.token=") || !strings.Contains(program, "ingot.mac=0c:42:a1:00:00:0a") {
		t.Fatalf("%d %q", status, program)
	}
	h := s.host()
	if h.Boots != 1 || h.Step != hardware.StepLoading || h.KernelFetchedAt.IsZero() || h.KernelAwaited != (KernelAwaited{}) {
		t.Errorf("%d boots, step %s, kernel awaited %+v, fetched %s: expected one boot that awaits no kernel", h.Boots, h.Step, h.KernelAwaited, h.KernelFetchedAt)
	}
	_, rest, _ := strings.Cut(program, "ingot.token=")
	if code := s.call("POST", protocol.PathRegister, strings.Fields(rest)[0], hostRegistration); code != "" {
		t.Errorf("the token of the program: %s", code)
	}
	// The agent is at work: a further boot waits, and its program has no token.
	if status, program = s.get(programPath); status != http.StatusOK || strings.Contains(program, "ingot.") || s.host().Boots != 1 {
		t.Errorf("while the agent is at work: %d %q, %d boots", status, program, s.host().Boots)
	}
}

func TestAServerThatBootsNothingGetsNoProgram(t *testing.T) {
	s := newSiteARM64(t)
	for _, path := range []string{"/boot/0c:42:a1:00:00:ff/" + ProgramARM64, "/boot/0c:42:a1:00:00:0a/amd64.efi"} {
		if status, _ := s.get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := s.get("/boot/nonsense/" + ProgramARM64); status != http.StatusBadRequest {
		t.Errorf("no MAC address: %d", status)
	}
	s.host().State, s.host().Step = hardware.AttemptFailed, hardware.StepLoading
	s.host().OpenedAt = s.now.Add(-time.Minute)
	if status, program := s.get(programPath); status != http.StatusOK || strings.Contains(program, "ingot.") {
		t.Errorf("a server that must not boot its disk: %d %q", status, program)
	}
	s.host().State = hardware.AttemptSucceeded
	if status, _ := s.get(programPath); status != http.StatusNotFound {
		t.Errorf("a server that boots its disk: %d", status)
	}
	if status, _ := newSite(t).get(programPath); status != http.StatusNotFound {
		t.Errorf("without files: %d", status)
	}
}

func TestTheKernelIsThatOfTheArchitecture(t *testing.T) {
	s := newSiteARM64(t)
	s.service.options.ARM64.Kernel = "i"
	for query, want := range map[string]string{"": "KERNEL", "?arch=x86_64": "KERNEL", "?arch=arm64": "INITRD", "?arch=${buildarch}": "KERNEL"} {
		if status, body := s.get("/files/kernel" + query); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", query, status, body)
		}
	}
	if status, _ := newSite(t).get("/files/kernel?arch=arm64"); status != http.StatusNotFound {
		t.Errorf("without files: %d", status)
	}
}

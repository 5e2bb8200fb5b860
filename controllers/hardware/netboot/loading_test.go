package netboot

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAServerSaysWhatItCouldNotLoad(t *testing.T) {
	s := newSite(t)
	s.settings.URL = "http://10.9.9.9:8090"
	_, script := s.get("/boot/0c:42:a1:00:00:0a")
	for _, want := range []string{"kernel http://10.9.9.9:8090/files/kernel?mac=0c:42:a1:00:00:0a&boot=1&arch=${buildarch} ", "\nchain --replace --autofree /boot/0c:42:a1:00:00:0a?failed=${failed}&errno=${error} ||\n"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	for _, query := range []string{"?failed=passwd&errno=0x1", "?errno=0x1", "?failed="} {
		if s.get("/boot/0c:42:a1:00:00:0b" + query); s.store.sessions["host-b"].Findings != (Findings{}) {
			t.Errorf("%s: %+v", query, s.store.sessions["host-b"].Findings)
		}
	}
	s.get("/boot/0c:42:a1:00:00:0a?failed=kernel&errno=0x4c0a6092")
	found := s.host().Findings.BootLoadFailed
	for _, want := range []string{"could not load the kernel from http://10.9.9.9:8090 ", "https://ipxe.org/4c0a6092", "spec.redfish.netboot.address", "the server at 127.0.0.1"} {
		if found.Count != 1 || !strings.Contains(found.Message, want) {
			t.Errorf("the finding lacks %q: %+v", want, found)
		}
	}
	s.get("/boot/0c:42:a1:00:00:0a?failed=kernel&errno=%0aevil")
	s.get("/boot/0c:42:a1:00:00:0a?failed=kernel")
	if h := s.host(); h.Reason != hardware.ReasonBootLoop || !strings.Contains(h.Message, "could not load the kernel from") || strings.Contains(h.Message, "evil") {
		t.Errorf("the attempt: %s %s", h.Reason, h.Message)
	}
}

func TestAServerThatAsksForNoKernelIsNoticedAndOneThatAsksIsNot(t *testing.T) {
	s := newSite(t)
	before := *s.host()
	s.boot()
	late := s.now.Add(kernelWait)
	if s.host().MustReportMissingKernel(late.Add(-time.Nanosecond)) || !s.host().MustReportMissingKernel(late) || before.MustReportMissingKernel(late) {
		t.Errorf("at %s: %+v", late, s.host())
	}
	told := *s.host()
	if told.AddKernelNotRequested(late); told.MustReportMissingKernel(late) || !strings.Contains(told.Findings.KernelNotRequested.Message, "expected a request at "+s.url) {
		t.Errorf("%+v", told.Findings)
	}
	if response, err := http.Head(s.url + "/files/kernel?mac=0c:42:a1:00:00:0a&boot=1"); err != nil || !s.host().MustReportMissingKernel(late) {
		t.Errorf("a HEAD request counted: %v", err)
	} else {
		response.Body.Close()
	}
	for _, path := range []string{"/files/kernel", "/files/kernel?mac=0c:42:a1:00:00:0a&boot=7", "/files/kernel?mac=0c:42:a1:00:00:0f&boot=1"} {
		if status, body := s.get(path); status != http.StatusOK || body != "KERNEL" || !s.host().MustReportMissingKernel(late) {
			t.Errorf("%s: %d %s, %+v", path, status, body, s.host().KernelAwaited)
		}
	}
	updates := s.store.updates
	for range 3 {
		if status, body := s.get("/files/kernel?mac=0c:42:a1:00:00:0a&boot=1"); status != http.StatusOK || body != "KERNEL" || s.host().MustReportMissingKernel(late) {
			t.Errorf("%d %s: %+v", status, body, s.host().KernelAwaited)
		}
	}
	if s.store.updates != updates+1 {
		t.Errorf("%d writes for one boot, expected 1", s.store.updates-updates)
	}
}

func TestAKernelIsServedThoughTheStoreIsDown(t *testing.T) {
	s := newSite(t)
	s.boot()
	s.store.err = hardware.Errorf(hardware.Unreachable, "read", "api", "down")
	request := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/files/kernel?mac=0c:42:a1:00:00:0a&boot=1", nil)
	answer := httptest.NewRecorder()
	if s.service.ServeHTTP(answer, request); answer.Code != http.StatusOK || answer.Body.String() != "KERNEL" {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// A server that boots three times and never registers is told once for each boot, and the end of the attempt says how often and where to look.
func TestEachBootWithoutAnAgentIsCounted(t *testing.T) {
	s := newSite(t)
	for boot := 1; boot <= maxBoots; boot++ {
		s.boot()
		if s.host().MustReportMissingAgent(s.now.Add(agentWait)) {
			t.Errorf("boot %d: reported before the kernel was fetched", boot)
		}
		s.get("/files/kernel?mac=0c:42:a1:00:00:0a&boot=" + strconv.Itoa(boot))
		late := s.now.Add(agentWait)
		if s.host().MustReportMissingAgent(late.Add(-time.Nanosecond)) || !s.host().MustReportMissingAgent(late) {
			t.Errorf("boot %d at %s: %+v", boot, late, s.host())
		}
		s.now = late
		s.host().AddNoAgentRegistered(late)
		if s.host().MustReportMissingAgent(late.Add(time.Hour)) {
			t.Errorf("boot %d is reported twice", boot)
		}
	}
	s.get("/boot/0c:42:a1:00:00:0a")
	if h := s.host(); h.Reason != hardware.ReasonBootLoop || h.Findings.NoAgentRegistered.Count != maxBoots || !strings.Contains(h.Message, "has booted the agent 3 times in attempt 3, fetched the kernel last at ") {
		t.Errorf("%s %s, %+v", h.Reason, h.Message, h.Findings)
	}
}

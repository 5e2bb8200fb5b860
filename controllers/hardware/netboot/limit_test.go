package netboot

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestStrangersDoNotKeepAHostFromBooting(t *testing.T) {
	s := newSite(t)
	refused := 0
	for i := range strangerBurst + 50 {
		status, script := s.get(fmt.Sprintf("/boot/02:00:00:00:%02x:%02x", i/256, i%256))
		switch {
		case status == http.StatusServiceUnavailable:
			refused++
		case script != exitScript:
			t.Fatalf("a stranger gets %d %s", status, script)
		}
	}
	if refused != 50 {
		t.Errorf("%d of %d requests of strangers were refused, expected 50", refused, strangerBurst+50)
	}
	s.boot()
	s.now = s.now.Add(strangerInterval)
	if status, _ := s.get("/boot/02:00:00:00:00:01"); status != http.StatusOK {
		t.Errorf("a stranger after the pause: status %d", status)
	}
	if n := len(s.service.limits.hosts); n != 1 {
		t.Errorf("%d addresses are kept, expected that of the host alone", n)
	}
}

func TestOneAddressCannotAskWithoutEnd(t *testing.T) {
	s := newSite(t)
	s.host().Operation = "" // each answer is exit, so that only the number of requests counts
	for i := range macBurst {
		if status, _ := s.get(bootPath); status != http.StatusOK {
			t.Fatalf("request %d: status %d", i+1, status)
		}
	}
	reads := s.store.reads
	response, err := http.Get(s.url + bootPath)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "3" || s.store.reads != reads {
		t.Errorf("status %d, Retry-After %q, %d reads: expected 503, which iPXE repeats, without a read", response.StatusCode, response.Header.Get("Retry-After"), s.store.reads-reads)
	}
	if status, _ := s.get("/boot/0c:42:a1:00:00:0b"); status != http.StatusOK {
		t.Errorf("another host: status %d", status)
	}
	s.now = s.now.Add(macInterval)
	if status, _ := s.get(bootPath); status != http.StatusOK {
		t.Errorf("after the pause: status %d", status)
	}
	delete(s.store.sessions, "host-a")
	s.now = s.now.Add(time.Minute)
	if _, script := s.get(bootPath); script != exitScript || len(s.service.limits.hosts) != 1 {
		t.Errorf("a host that is gone: %s, %d addresses are kept", script, len(s.service.limits.hosts))
	}
}

func TestTheLimitsForgetWhoAsksNoMore(t *testing.T) {
	var l documentLimits
	for i := range maxBuckets {
		l.addHost(fmt.Sprint(i), start)
	}
	l.addHost("later", start.Add(time.Hour))
	if len(l.hosts) != 1 {
		t.Errorf("%d addresses are kept, expected 1", len(l.hosts))
	}
}

func TestWhatIsServedIsCounted(t *testing.T) {
	s := newSite(t)
	s.bootAgent()
	s.get(bootPath)
	s.get("/boot/02:00:00:00:00:01")
	s.host().State = hardware.AttemptFailed
	s.get(bootPath)
	if got := strings.Join(s.events, " "); got != "boot wait stranger hold" {
		t.Errorf("counted %q", got)
	}
}

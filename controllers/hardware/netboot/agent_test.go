package netboot

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// lateStore calls before between the first read of the session in a request and its next read or update.
type lateStore struct {
	*fakeStore
	before func()
}

func (s *lateStore) ByUID(ctx context.Context, uid string) (Session, error) {
	s.before()
	return s.fakeStore.ByUID(ctx, uid)
}

func (s *lateStore) Update(ctx context.Context, uid string, change func(*Session) error) (Session, error) {
	s.before()
	return s.fakeStore.Update(ctx, uid, change)
}

func TestARequestAfterTheResultIsRefused(t *testing.T) {
	for path, body := range map[string]string{
		protocol.PathProgress: `{"step":"Verifying","doneBytes":1,"totalBytes":1}`,
		protocol.PathRegister: hostRegistration,
		protocol.PathResult:   `{"reason":"DiskError","message":"late"}`,
	} {
		t.Run(path, func(t *testing.T) { testLateRequest(t, path, body) })
	}
}

func testLateRequest(t *testing.T, path, body string) {
	s := newSite(t)
	token := s.bootAgent()
	s.now = s.now.Add(time.Minute) // so that progress is due
	service, err := New(Options{
		Store: &lateStore{fakeStore: s.store, before: func() { s.host().Step = hardware.StepFinishing }},
		Key:   func(context.Context) ([]byte, error) { return s.key, nil }, Clock: func() time.Time { return s.now },
		BaseURL: s.url, Files: fstest.MapFS{"k": {}, "i": {}}, Kernel: "k", Initrd: "i",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	s.url = server.URL
	if code := s.call("POST", path, token, body); code != protocol.AttemptClosed {
		t.Errorf("code %q", code)
	}
	if s.host().Step != hardware.StepFinishing || s.host().State != hardware.AttemptRunning {
		t.Errorf("step %s, %s", s.host().Step, s.host().State)
	}
}

func TestAFailureHasTheStepThatWasNotStored(t *testing.T) {
	s := newSite(t)
	token := s.bootAgent()
	if got := s.call("POST", protocol.PathProgress, token, `{"step":"Verifying","doneBytes":7,"totalBytes":9}`); got != "" || s.host().Step != hardware.StepRegistered {
		t.Errorf("progress: %q, at %s", got, s.host().Step)
	}
	if got := s.call("POST", protocol.PathResult, token, `{"reason":"DigestMismatch"}`); got != "" {
		t.Errorf("result: %q", got)
	}
	if h := s.host(); h.State != hardware.AttemptFailed || h.Step != hardware.StepVerifying || h.DoneBytes != 7 {
		t.Errorf("session: %s at %s with %d bytes", h.State, h.Step, h.DoneBytes)
	}
}

func TestProgressIsDueAfterAnIntervalByQuartersOrAfterSixIntervals(t *testing.T) {
	session := Session{StepAt: start, AttemptStatus: hardware.AttemptStatus{Step: hardware.StepWriting, DoneBytes: 100, TotalBytes: 400}}
	for _, c := range []struct {
		after    time.Duration
		step     hardware.Step
		done     int64
		expected bool
	}{
		{9 * time.Second, hardware.StepVerifying, 400, false},
		{10 * time.Second, hardware.StepVerifying, 100, true},
		{10 * time.Second, hardware.StepWriting, 199, false},
		{10 * time.Second, hardware.StepWriting, 200, true},
		{59 * time.Second, hardware.StepWriting, 101, false},
		{60 * time.Second, hardware.StepWriting, 101, true},
	} {
		progress := protocol.Progress{Step: c.step, DoneBytes: c.done, TotalBytes: 400}
		if due := (agentReport{storedAt: start}).isDue(session, progress, start.Add(c.after), 10*time.Second); due != c.expected {
			t.Errorf("%s with %d bytes after %s: due is %t, expected %t", c.step, c.done, c.after, due, c.expected)
		}
	}
}

func TestASessionIsOpenFromThePowerOnUntilTheDeadline(t *testing.T) {
	session := Session{AttemptStatus: hardware.AttemptStatus{Number: 1, State: hardware.AttemptRunning}, OpenedAt: start, Deadline: start.Add(time.Hour)}
	for after, expected := range map[time.Duration]bool{-1: false, 0: true, time.Hour - 1: true, time.Hour: false} {
		if open := isOpen(session, start.Add(after)); open != expected {
			t.Errorf("%s after the power-on: open is %t, expected %t", after, open, expected)
		}
	}
	session.Number = 0
	if isOpen(session, start) {
		t.Error("a session without an attempt is open")
	}
}

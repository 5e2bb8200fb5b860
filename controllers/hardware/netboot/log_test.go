package netboot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
)

type logStore map[string]agentlogs.Log

func (s logStore) SaveLog(_ context.Context, log agentlogs.Log) error {
	s[log.HostUID] = log
	return nil
}

func TestOnlyTheAgentOfTheBootWritesItsLog(t *testing.T) {
	s, stored := newSite(t), logStore{}
	s.service.options.Logs = agentlogs.New(stored, func() time.Time { return s.now }, nil)
	token := s.boot()
	chunk := func(text string) string { return fmt.Sprintf(`{"offset":0,"oldest":0,"text":%q}`, text) }
	if got := s.call("POST", protocol.PathLog, token, chunk("too early\n")); got != protocol.NotRegistered {
		t.Errorf("before the registration: %q", got)
	}
	if got := s.call("POST", protocol.PathRegister, token, hostRegistration); got != "" {
		t.Fatal(got)
	}
	own := s.agentKey
	if got := s.call("POST", protocol.PathLog, token, chunk("one, and "+token+" and "+own+"\n")); got != "" {
		t.Error(got)
	}
	for body, name := range map[string]string{
		`{"offset":-1,"oldest":-1,"text":"x"}`: "a negative offset", `{"offset":1,"oldest":2,"text":"x"}`: "an offset before the oldest", `{"offset":9223372036854775807,"oldest":0,"text":"x"}`: "an offset that overflows",
		chunk(strings.Repeat("x", protocol.MaxLogChunk+1)): "too long a text", chunk(strings.Repeat("x", 10*protocol.MaxLogChunk)): "too long a body",
	} {
		if got := s.call("POST", protocol.PathLog, token, body); got != protocol.BadRequest {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := s.call("POST", protocol.PathResult, token, `{"reason":"DiskError","message":"broken"}`); got != "" {
		t.Fatal(got)
	}
	s.service.options.Logs.SaveDue(t.Context())
	if got := stored["host-a"]; got.Text != "one, and [secret] and [secret]\n" || got.Attempt != 3 || got.Boot != 1 {
		t.Errorf("%+v", got)
	}
	if got := s.call("POST", protocol.PathLog, token, chunk("late\n")); got != protocol.AttemptClosed {
		t.Errorf("after the result: %q", got)
	}
	other := newSite(t)
	other.service.options.Logs = agentlogs.New(stored, func() time.Time { return other.now }, nil)
	token, other.agentKey = other.bootAgent(), strings.Repeat("0b", protocol.KeyBytes)
	if got := other.call("POST", protocol.PathLog, token, chunk("a neighbour's\n")); got != protocol.AnotherAgent {
		t.Errorf("with another key: %q", got)
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the token is in the log of the boot service")
	}
}

package agentlogs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/logbuffer"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// stored is a store.
type stored struct {
	logs []Log
	err  error
}

func (s *stored) SaveLog(_ context.Context, log Log) error {
	if s.err == nil {
		s.logs = append(s.logs, log)
	}
	return s.err
}

// site is a Keeper with a clock that is told.
type site struct {
	*testing.T
	now    time.Time
	store  stored
	keeper *Keeper
}

func newSite(t *testing.T) *site {
	s := &site{T: t, now: time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)}
	s.keeper = New(&s.store, func() time.Time { return s.now }, nil)
	return s
}

var hostLog = Log{HostUID: "uid-1", Namespace: "metal", Name: "gpu-1", Attempt: 3, Boot: 1}

// send sends what the agent has to send, as the agent does, and returns the next offset.
func (s *site) send(b *logbuffer.Buffer, next int64) int64 {
	s.Helper()
	for range 100 {
		chunk := b.Chunk(next)
		if chunk.Text == "" {
			return next
		}
		var isLimited bool
		if next, isLimited = s.keeper.Add(hostLog, chunk, []string{"TOKEN"}); isLimited {
			s.Fatal("limited")
		}
	}
	s.Fatal("it does not end")
	return 0
}

func (s *site) text() string { return s.keeper.entries["uid-1"].log.Text }

func TestTheLogIsWrittenSoonThenSeldomAndAtTheEnd(t *testing.T) {
	s, b := newSite(t), &logbuffer.Buffer{}
	fmt.Fprintln(b, "one")
	next := s.send(b, 0)
	s.keeper.SaveDue(t.Context())
	if len(s.store.logs) != 0 {
		t.Error("the first line was written at once")
	}
	s.now = s.now.Add(firstSave)
	s.keeper.SaveDue(t.Context())
	fmt.Fprintln(b, "two")
	next = s.send(b, next)
	s.now = s.now.Add(saveInterval - time.Second)
	s.keeper.SaveDue(t.Context())
	if len(s.store.logs) != 1 || s.store.logs[0].Text != "one\n" || s.store.logs[0].Attempt != 3 || s.store.logs[0].Name != "gpu-1" {
		t.Errorf("%+v", s.store.logs)
	}
	s.now = s.now.Add(time.Second)
	s.store.err = errors.New("the API server is away")
	s.keeper.SaveDue(t.Context())
	s.store.err = nil
	fmt.Fprintln(b, "three")
	s.send(b, next)
	s.keeper.Finish("uid-1")
	s.keeper.SaveDue(t.Context())
	if len(s.store.logs) != 2 || s.store.logs[1].Text != "one\ntwo\nthree\n" {
		t.Errorf("%+v", s.store.logs)
	}
	s.now = s.now.Add(time.Hour)
	s.keeper.SaveDue(t.Context())
	s.keeper.SaveDue(t.Context())
	if len(s.store.logs) != 2 || len(s.keeper.entries) != 0 {
		t.Errorf("what is stored is written again, or stays in memory: %d, %v", len(s.store.logs), s.keeper.entries)
	}
}

func TestWhatIsInMemoryIsWrittenWhenTheReplicaEnds(t *testing.T) {
	s, b := newSite(t), &logbuffer.Buffer{}
	fmt.Fprintln(b, "last words")
	s.send(b, 0)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.keeper.Run(ctx); err != nil || len(s.store.logs) != 1 {
		t.Errorf("%v %+v", err, s.store.logs)
	}
}

// An agent's requests may reach another replica at any time, and each may be the one that writes last.
func TestEachReplicaHasTheEndOfTheLog(t *testing.T) {
	one, two, b := newSite(t), newSite(t), &logbuffer.Buffer{}
	next := int64(0)
	for i := range 3000 {
		fmt.Fprintf(b, "line %d of the agent, which is long enough to fill the memory of a replica\n", i)
		switch i {
		case 100, 1400:
			next = one.send(b, next)
		case 1300, 2999:
			next = two.send(b, next)
		}
	}
	check := func(name string, replica *site) {
		t.Helper()
		all := ""
		for offset := int64(0); ; {
			c := b.Chunk(offset)
			if c.Text == "" {
				break
			}
			all, offset = all+c.Text, c.Offset+int64(len(c.Text))
		}
		if got := replica.text(); !strings.HasSuffix(all, got) || len(got) < protocol.MaxLog*9/10 || len(got) > protocol.MaxLog {
			t.Errorf("the %s replica has %d bytes", name, len(got))
		}
	}
	check("second", two)
	fmt.Fprintln(b, "the end")
	one.send(b, next)
	check("first", one)
}

func TestWhatTheAgentHasForgottenIsSaid(t *testing.T) {
	s := newSite(t)
	s.keeper.Add(hostLog, protocol.LogChunk{Text: "begin\n"}, nil)
	if next, _ := s.keeper.Add(hostLog, protocol.LogChunk{Offset: 500, Oldest: 100, Text: "x\n"}, nil); next != 100 {
		t.Errorf("next %d", next)
	}
	if next, _ := s.keeper.Add(hostLog, protocol.LogChunk{Offset: 100, Oldest: 100, Text: "later\n"}, nil); next != 106 {
		t.Errorf("next %d", next)
	}
	if got := s.text(); got != "begin\n[94 bytes of the log are lost]\nlater\n" {
		t.Errorf("%q", got)
	}
}

func TestALogHasNoSecretsAndNothingThatATerminalActsOn(t *testing.T) {
	s := newSite(t)
	s.keeper.Add(hostLog, protocol.LogChunk{Text: "a TOKEN, half a TOK"}, []string{"TOKEN"})
	s.keeper.Add(hostLog, protocol.LogChunk{Offset: 19, Text: "EN\x1b]0;owned\x07\r\u202e\u009b31m\xff äß\n"}, []string{"TOKEN"})
	if got := s.text(); got != "a [secret], half a [secret]?]0;owned?????31m? äß\n" && strings.ContainsAny(got, "\x1b\x07\r\u202e\u009b") || strings.Contains(got, "TOKEN") || !strings.HasSuffix(got, " äß\n") {
		t.Errorf("%q", got)
	}
}

func TestAHostThatSendsTooMuchIsLimitedAndTheOthersAreNot(t *testing.T) {
	s := newSite(t)
	refused := 0
	for i := range 100 {
		log := hostLog
		log.Boot = i // A further boot is no way around it.
		if _, isLimited := s.keeper.Add(log, protocol.LogChunk{Text: "x\n"}, nil); isLimited {
			refused++
		}
	}
	other := hostLog
	other.HostUID = "uid-2"
	if _, isLimited := s.keeper.Add(other, protocol.LogChunk{Text: "x\n"}, nil); isLimited || refused != 100-burst {
		t.Errorf("refused %d, the other host %t", refused, isLimited)
	}
	s.now = s.now.Add(refill)
	if _, isLimited := s.keeper.Add(hostLog, protocol.LogChunk{Text: "x\n"}, nil); isLimited {
		t.Error("it stays refused")
	}
}

func FuzzAdd(f *testing.F) {
	f.Add(int64(0), int64(0), "one\n", int64(4), int64(0), "two\n")
	f.Add(int64(9), int64(3), "one\n", int64(3), int64(3), "\x1b[2J")
	f.Fuzz(func(t *testing.T, offset, oldest int64, text string, offset2, oldest2 int64, text2 string) {
		var l Log
		for _, c := range []protocol.LogChunk{{Offset: offset, Oldest: oldest, Text: text}, {Offset: offset2, Oldest: oldest2, Text: text2}} {
			if c.Oldest < 0 || c.Offset < c.Oldest || c.Offset > 1<<40 || len(c.Text) > protocol.MaxLogChunk {
				continue
			}
			before := l.End
			if next := l.add(c, []string{"TOKEN"}); next < 0 || l.End < before || next > max(l.End, c.Offset) {
				t.Fatalf("next %d of %+v", next, c)
			}
			if strings.ContainsAny(l.Text, "\x1b\x07\r") || len(l.Text) > protocol.MaxLog {
				t.Fatalf("%q", l.Text)
			}
		}
	})
}

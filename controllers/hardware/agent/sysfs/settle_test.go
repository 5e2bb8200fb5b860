package sysfs

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"testing"
	"time"
)

// toldClock is a clock that goes on when somebody sleeps, and changes the server at set times.
type toldClock struct {
	now, begin time.Time
	// changes are what happens to the server after so many seconds.
	changes map[int]func()
}

func (c *toldClock) Now() time.Time { return c.now }

func (c *toldClock) Sleep(ctx context.Context, d time.Duration) error {
	before := c.now.Sub(c.begin)
	c.now = c.now.Add(d)
	for at, change := range c.changes {
		if at := time.Duration(at) * time.Second; before < at && at <= c.now.Sub(c.begin) {
			change()
		}
	}
	return ctx.Err()
}

// waited waits for the disks of the server and returns how long that took.
func waited(t *testing.T, s server, changes map[int]func()) (time.Duration, error) {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := &toldClock{now: begin, begin: begin, changes: changes}
	err := WaitForDisks(t.Context(), os.DirFS(s.root), clock)
	return clock.now.Sub(begin), err
}

func TestTheDisksAreFoundWhenNothingHasChangedForSomeSeconds(t *testing.T) {
	s := newServer(t)
	s.block("pci0/nvme0", "nvme0n1", "size=2048")
	s.set("sys/class/nvme/nvme0", "state=live")
	took, err := waited(t, s, map[int]func(){
		4: func() { s.block("pci0/nvme1", "nvme1n1", "size=0") },
		8: func() { s.set("sys/block/nvme1n1", "size=2048") }, // its size is read later
	})
	if want := 8*time.Second + quietPeriod; err != nil || took != want {
		t.Errorf("after %s: %v, expected %s", took, err, want)
	}
	if disks, _ := s.readDisks(); len(disks) != 2 {
		t.Errorf("%+v", disks)
	}
}

func TestADiskWhoseControllerStartsIsWaitedForHoweverLongNothingChanges(t *testing.T) {
	for _, c := range []struct{ dir, starting, started string }{
		{"sys/class/nvme/nvme1", "state=resetting", "state=live"},
		{"sys/class/nvme/nvme1", "state=new", "state=live"},
		{"sys/class/nvme/nvme1", "state=connecting", "state=dead"},
		{"sys/class/scsi_host/host2", "state=recovery", "state=running"},
		{"sys/bus/pci/devices/0000:65:00.0", "waiting_for_supplier=1", "waiting_for_supplier=0"},
	} {
		s := newServer(t)
		s.block("pci0/nvme0", "nvme0n1", "size=2048")
		s.set(c.dir, c.starting)
		took, err := waited(t, s, map[int]func(){90: func() { s.set(c.dir, c.started) }})
		if want := 90*time.Second + quietPeriod; err != nil || took < want-settlePoll || took > want {
			t.Errorf("%s %s: after %s: %v, expected %s", c.dir, c.starting, took, err, want)
		}
		s.set(c.dir, c.starting)
		took, err = waited(t, s, nil)
		if err == nil || took < settleLimit || !strings.Contains(err.Error(), path.Base(c.dir)) {
			t.Errorf("%s %s for ever: after %s: %v", c.dir, c.starting, took, err)
		}
	}
}

func TestTheWaitForDisksEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := WaitForDisks(ctx, os.DirFS(t.TempDir()), &toldClock{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

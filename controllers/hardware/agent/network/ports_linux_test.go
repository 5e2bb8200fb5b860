package network

import (
	"context"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// countedClock passes no time, and counts how much was slept.
type countedClock struct{ now time.Time }

func (c *countedClock) Now() time.Time { return c.now }

func (c *countedClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

func TestPortsThatAreNotUsedAreStartedWithoutAnAddress(t *testing.T) {
	s := newSegment(t)
	s.plugUnlit(s.other, otherMAC, "sw0", "10.88.0.1/24")
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24")
	ownDHCP(s, "sw1")
	v := newServer(t, "10.77.0.1", Config{Network: cmdline.Network{MAC: bootMAC}})
	v.mustUp()
	began := time.Unix(0, 0)
	clock := &countedClock{now: began}
	StartOtherPorts(t.Context(), clock)
	if waited := clock.now.Sub(began); waited < linkTime || waited > 2*linkTime {
		t.Errorf("waited %s for a port without a cable, expected %s", waited, linkTime)
	}
	s.light("sw0")
	clock.now = began
	StartOtherPorts(t.Context(), clock)
	link, err := netlink.LinkByName(s.other)
	if err != nil || link.Attrs().Flags&1 == 0 {
		t.Errorf("%+v, %v: expected that the port is started", link, err)
	}
	for _, n := range ListNICs() {
		if n.Name == s.other && len(n.Addresses) > 0 {
			t.Errorf("another NIC was configured: %s", n)
		}
	}
	v.wantAddress(s.boot, "10.77.0.50/24")
}

package leases_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/leases"
)

var small = leases.Range{First: netip.MustParseAddr("10.20.0.254"), Last: netip.MustParseAddr("10.20.1.1")}

func known(string) bool { return true }

func TestEachHostHasAnAddressOfItsOwnAndKeepsIt(t *testing.T) {
	assigned := map[string]netip.Addr{}
	owner := map[netip.Addr]string{}
	for i := range 4 {
		mac := fmt.Sprintf("52:54:00:00:00:%02x", i)
		next, err := leases.Assign(assigned, small, mac, known)
		if err != nil {
			t.Fatal(err)
		}
		for other, address := range assigned {
			if next[other] != address {
				t.Errorf("%s lost %s", other, address)
			}
		}
		if other, taken := owner[next[mac]]; taken {
			t.Errorf("%s and %s have %s", mac, other, next[mac])
		}
		owner[next[mac]] = mac
		assigned = next
	}
	if again, err := leases.Assign(assigned, small, "52:54:00:00:00:02", known); err != nil || again["52:54:00:00:00:02"] != assigned["52:54:00:00:00:02"] {
		t.Errorf("asked again: %v, %v", again, err)
	}
	if _, err := leases.Assign(assigned, small, "52:54:00:00:00:99", known); !errors.Is(err, leases.ErrFull) {
		t.Errorf("the fifth of four: %v", err)
	}
	// One that is nobody's any more makes room.
	next, err := leases.Assign(assigned, small, "52:54:00:00:00:99", func(mac string) bool { return mac != "52:54:00:00:00:01" })
	if err != nil || next["52:54:00:00:00:99"] != assigned["52:54:00:00:00:01"] || len(assigned) != 4 {
		t.Errorf("%v, %v", next, err)
	}
}

func TestTheSameHostsGetTheSameAddressesWhenWhatWasAssignedIsLost(t *testing.T) {
	big := leases.Range{First: netip.MustParseAddr("10.0.0.1"), Last: netip.MustParseAddr("10.0.255.254")}
	a, err := leases.Assign(nil, big, "52:54:00:00:00:01", known)
	if err != nil {
		t.Fatal(err)
	}
	b, err := leases.Assign(map[string]netip.Addr{"52:54:00:00:00:01": netip.MustParseAddr("192.0.2.1")}, big, "52:54:00:00:00:01", known)
	if err != nil || a["52:54:00:00:00:01"] != b["52:54:00:00:00:01"] {
		t.Errorf("%v and %v, %v: an address of another range is not kept", a, b, err)
	}
}

func TestARangeThatCannotBeLeasedIsRefused(t *testing.T) {
	network := netip.MustParsePrefix("10.20.0.0/23")
	if err := small.Validate(network); err != nil {
		t.Error(err)
	}
	for _, bad := range []leases.Range{
		{First: small.Last, Last: small.First}, {First: small.First, Last: netip.MustParseAddr("10.20.2.1")}, {},
		{First: netip.MustParseAddr("2001:db8::1"), Last: netip.MustParseAddr("2001:db8::2")},
	} {
		if err := bad.Validate(network); err == nil {
			t.Errorf("%v passed", bad)
		}
	}
}

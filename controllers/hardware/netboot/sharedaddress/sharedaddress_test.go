package sharedaddress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

var mac = net.HardwareAddr{0x52, 0x54, 0, 0, 8, 1}

// network makes a bridge with a machine, once.
func network(t *testing.T) {
	t.Helper()
	if !lab.IsInside() {
		t.Skip("needs root, to make a network of its own")
	}
	if _, err := netlink.LinkByName("node"); err == nil {
		return
	}
	if err := errors.Join(lab.MakeBridge(), lab.AddMachine("node", mac)); err != nil {
		t.Fatal(err)
	}
}

func address(prefix string) *Address {
	return &Address{Interface: "node", Prefix: netip.MustParsePrefix(prefix), Clock: time.Now}
}

func expectHere(t *testing.T, a *Address, want bool) {
	t.Helper()
	if here, err := a.IsHere(); err != nil || here != want {
		t.Errorf("%s on the interface: %v, expected %v, %v", a.Prefix, here, want, err)
	}
}

func TestAnAddressVanishesByItself(t *testing.T) {
	network(t)
	for _, prefix := range []string{"10.77.0.200/24", "fd00:77::200/64"} {
		a := address(prefix)
		for range 2 { // the second prolongs it
			if err := a.Keep(time.Now().Add(1500 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		expectHere(t, a, true)
		for here := true; here; {
			var err error
			if here, err = a.IsHere(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-t.Context().Done():
				t.Fatalf("%s stays", prefix)
			case <-time.After(20 * time.Millisecond):
			}
		}
		if err := a.Remove(); err != nil {
			t.Errorf("removing what is not there: %v", err)
		}
	}
}

func TestWhatAnEarlierProcessLeftIsRemovedAndWhatSomebodyConfiguredIsRefused(t *testing.T) {
	network(t)
	a := address("10.77.0.201/24")
	if err := a.Keep(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(); err != nil {
		t.Error(err)
	}
	expectHere(t, a, false)
	link, err := netlink.LinkByName("node")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(link, a.netlinkAddress()); err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(); err == nil || !strings.Contains(err.Error(), "remove it from this machine's network configuration") {
		t.Error(err)
	}
	expectHere(t, a, true)
	if err := a.Remove(); err != nil {
		t.Error(err)
	}
	// No time is left, as after a process was stopped for a while.
	if err := a.Keep(time.Now().Add(900 * time.Millisecond)); err == nil || !strings.Contains(err.Error(), "no time is left") {
		t.Error(err)
	}
	expectHere(t, a, false)
	if err := (&Address{Interface: "none", Prefix: a.Prefix, Clock: time.Now}).Prepare(); err == nil || !strings.Contains(err.Error(), "interface none") {
		t.Error(err)
	}
}

func TestTheNetworkIsToldWhoHasTheAddress(t *testing.T) {
	network(t)
	// The bridge's own interface is a neighbour, and receives what the machine sends to all.
	bridge, err := net.InterfaceByName(lab.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	big := func(v uint16) uint16 { return v<<8 | v>>8 }
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(big(unix.ETH_P_ARP)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Close(socket); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: big(unix.ETH_P_ARP), Ifindex: bridge.Index}); err != nil {
		t.Fatal(err)
	}
	a := address("10.77.0.202/24")
	if err := a.Keep(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 100)
	for want := string(arpAnnouncement(mac, a.Prefix.Addr())); ; {
		n, _, err := unix.Recvfrom(socket, frame, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(want) && string(frame[:len(want)]) == want {
			break
		}
	}
	conn, _, err := ndp.Listen(bridge, ndp.Unspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	six := address("fd00:77::202/64")
	if err := six.Keep(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for {
		message, _, _, err := conn.ReadFrom()
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := message.(*ndp.NeighborAdvertisement); ok && m.TargetAddress == six.Prefix.Addr() && m.Override {
			break
		}
	}
}

package network

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/vishvananda/netlink"
)

// portOf returns a port by its index.
func portOf(index int, p port) port {
	p.link = &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
	return p
}

func TestAmongInterfacesWithOneAddressTheCardThatWasMadeWithItIsFound(t *testing.T) {
	const mac, another = "0c:42:a1:00:00:01", "0c:42:a1:00:00:02"
	for name, c := range map[string]struct {
		ports []port
		want  int
	}{
		"the card, which has taken another's address": {[]port{portOf(2, port{current: mac, permanent: another}), portOf(3, port{current: another, permanent: mac})}, 3},
		"a virtual function with its address":         {[]port{portOf(2, port{current: mac, permanent: mac, isVirtual: true}), portOf(3, port{current: mac, permanent: mac})}, 3},
		"members of a bond":                           {[]port{portOf(2, port{current: mac, permanent: another, isMember: true}), portOf(3, port{current: mac, permanent: mac, isMember: true})}, 3},
		"firmware has assigned the address":           {[]port{portOf(2, port{current: another, permanent: another}), portOf(3, port{current: mac, permanent: "0c:42:a1:00:00:03"})}, 3},
		"the driver names no permanent address":       {[]port{portOf(2, port{current: mac})}, 2},
		"a server that is a virtual function":         {[]port{portOf(2, port{current: mac, permanent: mac, isVirtual: true})}, 2},
		"nobody":                                      {[]port{portOf(2, port{current: another, permanent: another}), portOf(3, port{current: mac, permanent: another, isMember: true})}, 0},
	} {
		got, found := findPort(c.ports, mac)
		if found != (c.want > 0) || found && got.link.Attrs().Index != c.want {
			t.Errorf("%s: %+v, %t", name, got, found)
		}
	}
}

func TestABondWithoutNamesHasThePortsOfTheBootNICsCard(t *testing.T) {
	boot := portOf(4, port{card: "0000:41:00"})
	ports := []port{portOf(2, port{card: "0000:3b:00"}), portOf(3, port{card: "0000:41:00"}), boot, portOf(5, port{card: "0000:41:00", isVirtual: true}), portOf(6, port{})}
	var got []int
	for _, p := range portsOfCard(ports, boot) {
		got = append(got, p.link.Attrs().Index)
	}
	if len(got) != 2 || got[0] != 4 || got[1] != 3 {
		t.Errorf("%v", got)
	}
	if alone := portsOfCard([]port{portOf(2, port{}), portOf(3, port{})}, portOf(2, port{})); len(alone) != 1 {
		t.Errorf("ports that are on no card were taken together: %v", alone)
	}
}

func TestNameServersOfTheNodeProviderWinAndADomainIsNoLineOfItsOwn(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	offered := map[string][]netip.Addr{"DHCP": {b, b, netip.IPv4Unspecified()}, "router": {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8::3")}}
	for _, c := range []struct {
		configured []netip.Addr
		domain     string
		want       string
	}{
		{[]netip.Addr{a}, "x.example", "nameserver 10.0.0.1\nsearch x.example\n"},
		{nil, "", "nameserver 10.0.0.2\nnameserver 2001:db8::1\nnameserver 2001:db8::2\n"},
		{[]netip.Addr{a}, "x\nnameserver 6.6.6.6", "nameserver 10.0.0.1\n"},
	} {
		if got := resolverContent(c.configured, offered, c.domain); got != c.want {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
	if got := resolverContent(nil, nil, "x.example"); got != "" {
		t.Errorf("%q", got)
	}
}

// Any machine of the segment may answer as a DHCP server.
func FuzzLease4(f *testing.F) {
	reply, err := dhcpv4.New(dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 5)), dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithRouter(net.IPv4(10, 0, 0, 1)),
		dhcpv4.WithDNS(net.IPv4(10, 0, 0, 2)), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("x")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reply.ToBytes())
	f.Fuzz(func(t *testing.T, packet []byte) {
		message, err := dhcpv4.FromBytes(packet)
		if err != nil {
			return
		}
		l, err := parseLease4(message)
		if err != nil {
			return
		}
		if !l.address.IsValid() || !l.address.Addr().IsGlobalUnicast() || l.address.Bits() == 0 || l.mtu != 0 && l.mtu < minMTU {
			t.Fatalf("%+v", l)
		}
		if content := resolverContent(nil, map[string][]netip.Addr{"DHCP": l.dns}, l.domain); strings.Count(content, "\n") > maxNameServers+1 {
			t.Fatalf("%q", content)
		}
	})
}

func FuzzLease6(f *testing.F) {
	reply, err := dhcpv6.NewMessage(dhcpv6.WithIANA(dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP("2001:db8::5")}), dhcpv6.WithDNS(net.ParseIP("2001:db8::7")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reply.ToBytes())
	f.Fuzz(func(t *testing.T, packet []byte) {
		message, err := dhcpv6.MessageFromBytes(packet)
		if err != nil {
			return
		}
		if l, err := parseLease6(message); err == nil && (!l.address.Is6() || !l.address.IsGlobalUnicast()) {
			t.Fatalf("%+v", l)
		}
	})
}

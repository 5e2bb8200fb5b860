package network

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/dhcp"
)

const (
	bootMAC  = "02:00:00:00:00:01"
	otherMAC = "02:00:00:00:00:02"
)

// ownDHCP is our own DHCP server, which knows the boot MAC address.
func ownDHCP(s *segment, peer string) {
	s.start(func(ctx context.Context) error {
		return dhcp.Serve(ctx, dhcp.Options{
			Network: dhcp.Network{
				Server: netip.MustParseAddr("10.77.0.1"), BootURL: "http://10.77.0.1:8090",
				Lease: &dhcp.LeaseSettings{Prefix: netip.MustParsePrefix("10.77.0.0/24"), DNS: []netip.Addr{netip.MustParseAddr("10.77.0.1")}, Time: time.Hour},
			},
			Interface: peer,
			Find: func(_ context.Context, mac string, _ netip.Addr) (dhcp.Host, bool, error) {
				return dhcp.Host{Address: netip.MustParseAddr("10.77.0.50")}, mac == bootMAC, nil
			},
		})
	})
}

func TestTheBootNICGetsALeaseFromOurOwnServerAndOtherNICsNone(t *testing.T) {
	s := newSegment(t)
	s.plug(s.other, otherMAC, "sw0", "10.88.0.1/24")
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24")
	ownDHCP(s, "sw1")
	s.dnsmasq("--interface=sw0", "--bind-interfaces", "--dhcp-range=10.88.0.50,10.88.0.99")
	v := newServer(t, "10.77.0.1", Config{Network: cmdline.Network{MAC: bootMAC}})
	v.mustUp()
	v.wantAddress(s.boot, "10.77.0.50/24")
	v.wantResolver("nameserver 10.77.0.1")
	v.wantReachable(s)
	for _, n := range ListNICs() {
		if n.Name == s.other && len(n.Addresses) > 0 {
			t.Errorf("another NIC was configured: %s", n)
		}
	}
}

func TestWithoutABootMACTheNICWithAServerIsUsed(t *testing.T) {
	s := newSegment(t)
	s.plug(s.other, otherMAC, "sw0")
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24")
	ownDHCP(s, "sw1")
	v := newServer(t, "10.77.0.1", Config{})
	v.mustUp()
	v.wantAddress(s.boot, "10.77.0.50/24")
}

func TestAnotherDHCPServersRoutesNameServersAndMTUAreUsed(t *testing.T) {
	s := newSegment(t)
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24", "10.99.0.1/32", "10.99.0.2/32")
	s.dnsmasq("--interface=sw1", "--bind-interfaces", "--dhcp-range=10.77.0.50,10.77.0.99", "--dhcp-option=option:dns-server,10.77.0.7,10.77.0.8",
		"--dhcp-option=option:classless-static-route,10.99.0.1/32,10.77.0.1", "--dhcp-option=option:router,10.77.0.9", "--dhcp-option=option:mtu,1400", "--domain=rack.example.com")
	v := newServer(t, "10.99.0.1", Config{Network: cmdline.Network{MAC: bootMAC}})
	v.mustUp()
	v.wantReachable(s)
	v.wantResolver("nameserver 10.77.0.8")
	v.wantResolver("search rack.example.com")
	if link, err := netlink.LinkByName(s.boot); err != nil || link.Attrs().MTU != 1400 {
		t.Errorf("MTU %+v, %v", link, err)
	}
	// RFC 3442: the router option beside the static routes is not used.
	if routes, err := netlink.RouteGet(netip.MustParseAddr("10.99.0.2").AsSlice()); err == nil {
		t.Errorf("there is a default route: %v", routes)
	}
}

func TestAddressesComeFromDHCPv6AndRouterAdvertisements(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		address   string
	}{
		"stateful": {[]string{"--enable-ra", "--dhcp-range=2001:db8:77::50,2001:db8:77::50,64", "--dhcp-option=option6:dns-server,[2001:db8:77::7]"}, "2001:db8:77::50/128"},
		"stateless": {[]string{"--enable-ra", "--dhcp-range=2001:db8:77::,ra-stateless", "--dhcp-option=option6:dns-server,[2001:db8:77::7]"},
			"2001:db8:77:0:0:ff:fe00:1/64"},
		"advertisement alone": {[]string{"--enable-ra", "--dhcp-range=2001:db8:77::,ra-only", "--dhcp-option=option6:dns-server,[2001:db8:77::7]"}, "2001:db8:77:0:0:ff:fe00:1/64"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSegment(t)
			s.plug(s.boot, bootMAC, "sw1", "2001:db8:77::1/64")
			s.dnsmasq(append(c.arguments, "--interface=sw1", "--bind-interfaces")...)
			v := newServer(t, "2001:db8:77::1", Config{Network: cmdline.Network{MAC: bootMAC}})
			v.mustUp()
			v.wantReachable(s)
			v.wantResolver("nameserver 2001:db8:77::7")
			v.wantAddress(s.boot, c.address)
		})
	}
}

func TestStaticAddressesAskNobody(t *testing.T) {
	s := newSegment(t)
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24", "10.99.0.1/32", "2001:db8:77::1/64")
	s.dnsmasq("--interface=sw1", "--bind-interfaces", "--dhcp-range=10.77.0.50,10.77.0.99", "--dhcp-option=option:dns-server,10.77.0.8")
	v := newServer(t, "10.99.0.1", Config{Network: cmdline.Network{
		MAC: bootMAC, Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.5/24"), netip.MustParsePrefix("2001:db8:77::5/64")},
		Gateways: []netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("2001:db8:77::1")}, DNS: []netip.Addr{netip.MustParseAddr("10.77.0.7")},
	}})
	v.mustUp()
	v.wantAddress(s.boot, "10.77.0.5/24")
	v.wantResolver("nameserver 10.77.0.7")
	v.wantReachable(s)
	for _, n := range ListNICs() {
		for _, a := range n.Addresses {
			if netip.MustParsePrefix("10.77.0.48/28").Contains(a.Addr()) {
				t.Errorf("a lease beside the static address: %s", n)
			}
		}
	}
}

// Each thing that can be missing is named with what was seen, and the network comes up when it is there.
func TestWhatIsMissingIsNamedAndWaitedFor(t *testing.T) {
	s := newSegment(t)
	s.plug(s.other, otherMAC, "sw0")
	v := newServer(t, "10.77.0.1", Config{Network: cmdline.Network{MAC: bootMAC}})
	wait := v.begin()
	if f := v.awaitFailure(NICMissing); !strings.Contains(f.Message, bootMAC) || !strings.Contains(f.Message, s.other+" "+otherMAC) || len(f.NICs) != 1 {
		t.Errorf("%+v", f)
	}
	s.plugUnlit(s.boot, bootMAC, "sw1", "10.77.0.1/24")
	if f := v.awaitFailure(LinkMissing); !strings.Contains(f.Message, s.boot+" "+bootMAC+" no link") {
		t.Errorf("%+v", f)
	}
	// Idle ports are started so that this can be seen: the cable is in another port.
	if f := v.awaitFailure(LinkMissing); !strings.Contains(f.Message, s.other+" "+otherMAC+" link") {
		t.Errorf("%+v", f)
	}
	s.light("sw1")
	if f := v.awaitFailure(AddressMissing); !strings.Contains(f.Look, "DHCP") {
		t.Errorf("%+v", f)
	}
	ownDHCP(s, "sw1")
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	v.wantAddress(s.boot, "10.77.0.50/24")
}

func TestALeaseWithoutARouteToTheBootServiceIsNotEnough(t *testing.T) {
	s := newSegment(t)
	s.plug(s.boot, bootMAC, "sw1", "10.77.0.1/24")
	ownDHCP(s, "sw1")
	v := newServer(t, "10.99.0.1", Config{Network: cmdline.Network{MAC: bootMAC}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Up(ctx, ctx, v.config) }()
	if f := v.awaitFailure(RouteMissing); !strings.Contains(f.Message, "10.99.0.1") || !strings.Contains(f.Message, "10.77.0.50") || !strings.Contains(f.Message, "10.77.0.1 gave") {
		t.Errorf("%+v", f)
	}
	stop()
	var failure *Failure
	if err := <-ended; !errors.As(err, &failure) || failure.Reason != RouteMissing || !errors.Is(err, context.Canceled) {
		t.Errorf("at the end: %v", err)
	}
}

func TestABondTakesTheBootMACAndDHCPWorksOverIt(t *testing.T) {
	for _, mode := range []string{"active-backup", "802.3ad"} {
		t.Run(mode, func(t *testing.T) {
			s := newSegment(t)
			if err := netlink.LinkAdd(netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond9"})); err != nil {
				t.Skipf("the kernel of this machine has no bonds: %v", err)
			}
			s.plug(s.boot, bootMAC, "sw1")
			s.plug(s.other, otherMAC, "sw2")
			s.run(func() error { return joinPorts(mode, "10.77.0.1/24", "sw1", "sw2") })
			ownDHCP(s, "sw")
			v := newServer(t, "10.77.0.1", Config{Network: cmdline.Network{MAC: bootMAC, Bond: &cmdline.Bond{Mode: mode, MACs: []string{otherMAC, bootMAC}}}})
			v.mustUp()
			v.wantAddress(bondName, "10.77.0.50/24")
			v.wantReachable(s)
		})
	}
}

// joinPorts makes the ports of the switch one interface, sw: a bridge, or a bond with LACP.
func joinPorts(mode, address string, ports ...string) error {
	var made netlink.Link = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "sw"}}
	if mode == "802.3ad" {
		bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: "sw"})
		bond.Mode, bond.Miimon, bond.LacpRate = netlink.BOND_MODE_802_3AD, miimon, netlink.BOND_LACP_RATE_FAST
		made = bond
	}
	if err := netlink.LinkAdd(made); err != nil {
		return err
	}
	for _, name := range ports {
		port, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkSetDown(port), netlink.LinkSetMaster(port, made), netlink.LinkSetUp(port)); err != nil {
			return err
		}
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(made, parsed), netlink.LinkSetUp(made))
}

func TestAVLANIsUsedInsteadOfTheInterface(t *testing.T) {
	s := newSegment(t)
	s.plug(s.boot, bootMAC, "sw1")
	probe, err := netlink.LinkByName(s.boot)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkAdd(&netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "probe", ParentIndex: probe.Attrs().Index}, VlanId: 7}); err != nil {
		t.Skipf("the kernel of this machine has no VLANs: %v", err)
	}
	s.run(func() error {
		parent, err := netlink.LinkByName("sw1")
		if err != nil {
			return err
		}
		tagged := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "sw1.120", ParentIndex: parent.Attrs().Index}, VlanId: 120}
		address, err := netlink.ParseAddr("10.77.0.1/24")
		return errors.Join(err, netlink.LinkAdd(tagged), netlink.AddrAdd(tagged, address), netlink.LinkSetUp(tagged))
	})
	ownDHCP(s, "sw1.120")
	v := newServer(t, "10.77.0.1", Config{Network: cmdline.Network{MAC: bootMAC, VLAN: 120}})
	v.mustUp()
	v.wantAddress(s.boot+".120", "10.77.0.50/24")
	v.wantReachable(s)
}

package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
)

const (
	// maxRequestWait is the longest wait between two requests for a lease.
	maxRequestWait = 16 * time.Second
	// routeRetry is when a lease is asked for again whose routes do not lead to the boot service.
	routeRetry = 30 * time.Second
)

// keepLease4 asks for a lease until there is one, and renews it at half of its time, as RFC 2131 section 4.4.5 says. It ends when another interface
// is used.
func (u *up) keepLease4(link netlink.Link) {
	who := "DHCP on " + link.Attrs().Name
	var used netip.Prefix
	for wait := time.Second; ; {
		ack, err := requestLease4(u.background, link)
		pause := wait
		if err == nil {
			var isUsed bool
			if isUsed, err = u.useLease4(link, ack, &used); err == nil && !isUsed {
				return
			}
		}
		if err != nil {
			u.noteAnswer(who, err.Error())
			u.Log.Warn("no DHCP lease", "interface", link.Attrs().Name, "error", err)
			wait = min(2*wait, maxRequestWait)
		} else {
			wait, pause = time.Second, max(ack.IPAddressLeaseTime(time.Hour)/2, 10*time.Second)
			if !u.hasRoute() {
				pause = min(pause, routeRetry)
			}
		}
		if u.Clock.Sleep(u.background, pause) != nil {
			return
		}
	}
}

// requestLease4 asks once, for some seconds.
func requestLease4(ctx context.Context, link netlink.Link) (ack *dhcpv4.DHCPv4, err error) {
	client, err := nclient4.New(link.Attrs().Name, nclient4.WithTimeout(4*time.Second), nclient4.WithRetry(2))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	lease, err := client.Request(ctx, dhcpv4.WithOption(dhcpv4.OptClassIdentifier("ingot-agent")),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionClasslessStaticRoute, dhcpv4.OptionInterfaceMTU))
	if err != nil {
		return nil, err
	}
	return lease.ACK, nil
}

// lease4 is what a DHCP server gives.
type lease4 struct {
	address netip.Prefix
	routes  dhcpv4.Routes
	gateway netip.Addr
	dns     []netip.Addr
	domain  string
	mtu     int
}

// minMTU is the least that an IPv4 host must accept, RFC 791 section 3.1, and less than any network of servers has.
const minMTU = 576

// parseLease4 returns what the answer says. A server may be any machine on the segment.
func parseLease4(ack *dhcpv4.DHCPv4) (lease4, error) {
	address, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	mask := ack.SubnetMask()
	bits, size := mask.Size()
	if !ok || !address.IsGlobalUnicast() || size != 32 || bits == 0 {
		return lease4{}, fmt.Errorf("the DHCP server %s gave the address %s with the mask %s: expected both", ack.ServerIdentifier(), ack.YourIPAddr, net.IP(mask))
	}
	l := lease4{address: netip.PrefixFrom(address, bits), routes: ack.ClasslessStaticRoute(), dns: toAddresses(ack.DNS()), domain: ack.DomainName()}
	if gateways := toAddresses(ack.Router()); len(gateways) > 0 && len(l.routes) == 0 {
		l.gateway = gateways[0] // RFC 3442: with the static routes the router option is not used
	}
	if mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, ack.Options); err == nil && mtu >= minMTU {
		l.mtu = int(mtu)
	}
	return l, nil
}

// useLease4 sets the address, the routes and the name servers of the lease, and removes the address of the lease before if it was another. isUsed
// is false when another interface is used.
func (u *up) useLease4(link netlink.Link, ack *dhcpv4.DHCPv4, used *netip.Prefix) (isUsed bool, err error) {
	l, err := parseLease4(ack)
	if err != nil {
		return false, err
	}
	if u.isOtherChosen(link) {
		return false, nil
	}
	if used.IsValid() && *used != l.address {
		u.Log.Warn("the DHCP server gave another address", "interface", link.Attrs().Name, "before", used.String(), "now", l.address.String())
		if err := netlink.AddrDel(link, &netlink.Addr{IPNet: toIPNet(*used)}); err != nil {
			u.Log.Warn("the address before is not removed", "error", err)
		}
	}
	if err := u.setLease4(link, l); err != nil {
		return false, err
	}
	*used = l.address
	u.setResolver("DHCP on "+link.Attrs().Name, l.dns, l.domain)
	u.noteAnswer("DHCP on "+link.Attrs().Name, fmt.Sprintf("%s gave %s, router %s", ack.ServerIdentifier(), l.address, describeRouter(l)))
	return true, nil
}

// setLease4 sets the address, the MTU and the routes of the lease. Without an MTU or a route of many, the boot service may still be reached.
func (u *up) setLease4(link netlink.Link, l lease4) error {
	if err := addAddress(link, l.address); err != nil {
		return err
	}
	if l.mtu > 0 && l.mtu != link.Attrs().MTU {
		if err := netlink.LinkSetMTU(link, l.mtu); err != nil {
			u.Log.Warn("the MTU that DHCP names is not set", "mtu", l.mtu, "error", err)
		}
	}
	for _, route := range l.routes {
		gateway, _ := netip.AddrFromSlice(route.Router.To4())
		if err := addRoute(link, route.Dest, gateway); err != nil {
			u.Log.Warn("a route that DHCP names is not set", "error", err)
		}
	}
	if l.gateway.IsValid() {
		return addGateway(link, l.gateway)
	}
	return nil
}

func describeRouter(l lease4) string {
	switch {
	case len(l.routes) > 0:
		return fmt.Sprintf("by %d static routes", len(l.routes))
	case l.gateway.IsValid():
		return l.gateway.String()
	}
	return "none"
}

// isOtherChosen reports whether another interface's lease is used. The first interface that asks is the one that is used from then on.
func (u *up) isOtherChosen(link netlink.Link) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.chosen == 0 {
		u.chosen = link.Attrs().Index
	}
	return u.chosen != link.Attrs().Index
}

func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func toAddresses(ips []net.IP) []netip.Addr {
	var out []netip.Addr
	for _, ip := range ips {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

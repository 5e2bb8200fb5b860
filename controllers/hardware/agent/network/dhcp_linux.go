package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
)

// askForAddress asks on all interfaces until one has an address that leaves the link: of a DHCP server, or made from a router advertisement, which
// the kernel does by itself.
func (u *up) askForAddress(ctx context.Context, links []netlink.Link) error {
	askCtx, stop := context.WithCancel(ctx)
	leases := make(chan lease)
	for _, link := range links {
		if !u.Target.Is6() {
			go u.askDHCP(askCtx, link, leases)
		}
	}
	defer stop()
	end := u.Clock.Now().Add(addressTimeout)
	for u.Clock.Now().Before(end) {
		select {
		case l := <-leases:
			if err := u.useLease(l); err != nil {
				return err
			}
			go u.renew(ctx, l)
			return nil
		default:
		}
		for _, link := range links {
			if address := globalIPv6(link); address.IsValid() && !u.Target.Is4() {
				u.Log.Info("the network is up", "interface", link.Attrs().Name, "address", address)
				return u.setResolver(nil, "")
			}
		}
		if err := u.Clock.Sleep(ctx, poll); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(links))
	for _, link := range links {
		names = append(names, link.Attrs().Name+" "+link.Attrs().HardwareAddr.String())
	}
	return fmt.Errorf("no DHCP server and no router has given an address to %s after %s: look at the DHCP server's leases and at the VLAN of the switch port", strings.Join(names, ", "), addressTimeout)
}

// lease is a lease of an interface.
type lease struct {
	link netlink.Link
	*nclient4.Lease
}

// askDHCP asks for a lease until there is one or ctx ends.
func (u *up) askDHCP(ctx context.Context, link netlink.Link, leases chan<- lease) {
	for wait := time.Second; ; wait = min(2*wait, 16*time.Second) {
		l, err := requestLease(ctx, link)
		if err == nil {
			select {
			case leases <- lease{link, l}:
			case <-ctx.Done():
			}
			return
		}
		u.Log.Warn("no DHCP lease yet", "interface", link.Attrs().Name, "error", err)
		if u.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// requestLease asks once, for some seconds.
func requestLease(ctx context.Context, link netlink.Link) (l *nclient4.Lease, err error) {
	client, err := nclient4.New(link.Attrs().Name, nclient4.WithTimeout(4*time.Second), nclient4.WithRetry(2))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Request(ctx, dhcpv4.WithOption(dhcpv4.OptClassIdentifier("ingot-agent")))
}

// useLease sets the address, the routes and the name servers of the lease.
func (u *up) useLease(l lease) error {
	ack := l.ACK
	address, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	mask := ack.SubnetMask()
	if !ok || mask == nil {
		return fmt.Errorf("the DHCP server %s gave the address %s with the mask %s: expected both", ack.ServerIdentifier(), ack.YourIPAddr, mask)
	}
	bits, _ := mask.Size()
	if err := addAddress(l.link, netip.PrefixFrom(address, bits)); err != nil {
		return err
	}
	if gateways := toAddresses(ack.Router()); len(gateways) > 0 {
		if err := addGateway(l.link, gateways[0]); err != nil {
			return err
		}
	}
	u.Log.Info("the network is up", "interface", l.link.Attrs().Name, "address", address, "server", ack.ServerIdentifier(), "lease", leaseTime(ack))
	return u.setResolver(toAddresses(ack.DNS()), ack.DomainName())
}

// leaseTime is how long the address may be used.
func leaseTime(ack *dhcpv4.DHCPv4) time.Duration { return ack.IPAddressLeaseTime(time.Hour) }

// renew renews the lease at half of its time, as RFC 2131 section 4.4.5 says, until ctx ends.
func (u *up) renew(ctx context.Context, l lease) {
	for u.Clock.Sleep(ctx, max(leaseTime(l.ACK)/2, 10*time.Second)) == nil {
		renewed, err := requestLease(ctx, l.link)
		if err == nil && !renewed.ACK.YourIPAddr.Equal(l.ACK.YourIPAddr) {
			err = fmt.Errorf("the DHCP server gave another address, %s instead of %s", renewed.ACK.YourIPAddr, l.ACK.YourIPAddr)
		}
		if err != nil {
			u.Log.Warn("the DHCP lease is not renewed", "interface", l.link.Attrs().Name, "error", err)
			continue
		}
		l.Lease = renewed
	}
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

// globalIPv6 returns an IPv6 address of the interface that is ready and reaches beyond the link.
func globalIPv6(link netlink.Link) netip.Addr {
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range addrs {
		address, ok := netip.AddrFromSlice(a.IP)
		if ok && a.Flags&flagTentative == 0 && address.IsGlobalUnicast() && !address.IsLinkLocalUnicast() {
			return address
		}
	}
	return netip.Addr{}
}

// flagTentative is IFA_F_TENTATIVE of if_addr.h: the address is not known to be unique yet.
const flagTentative = 0x40

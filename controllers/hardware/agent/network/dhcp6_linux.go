package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv6"
)

// routerInterval is how often routers are asked while the server has no address, RFC 4861 section 10 (RTR_SOLICITATION_INTERVAL).
const routerInterval = 4 * time.Second

// followRouters asks the routers of the link and does what they say: an address by DHCPv6 where they say that addresses are managed, else the rest by
// DHCPv6 where they say so, and name servers. Addresses and routes from the advertisement itself are made by the kernel.
func (u *up) followRouters(link netlink.Link) {
	for u.background.Err() == nil {
		advertisement, from, err := askRouters(u.background, link)
		if err != nil {
			u.Log.Debug("no router advertisement", "interface", link.Attrs().Name, "error", err)
			if u.Clock.Sleep(u.background, time.Second) != nil {
				return
			}
			continue
		}
		if advertisement.RouterLifetime == 0 && !advertisement.ManagedConfiguration && !advertisement.OtherConfiguration && len(advertisement.Options) == 0 {
			// The boot service answers so, to end iPXE's wait. It says nothing of the network.
			if u.Clock.Sleep(u.background, routerInterval) != nil {
				return
			}
			continue
		}
		u.noteAnswer("router "+from.WithZone("").String()+" on "+link.Attrs().Name, describeAdvertisement(advertisement))
		u.setResolver("router on "+link.Attrs().Name, nameServersOf(advertisement), "")
		switch {
		case advertisement.ManagedConfiguration:
			u.keepLease6(link)
		case advertisement.OtherConfiguration:
			u.askInformation6(link)
		}
		return
	}
}

// askRouters sends a router solicitation and returns the first advertisement.
func askRouters(ctx context.Context, link netlink.Link) (*ndp.RouterAdvertisement, netip.Addr, error) {
	ifi, err := net.InterfaceByIndex(link.Attrs().Index)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	conn, _, err := ndp.Listen(ifi, ndp.LinkLocal)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	// Nothing is lost when closing fails.
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	solicitation := &ndp.RouterSolicitation{Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: ifi.HardwareAddr}}}
	// Routers answer to all nodes. The socket has the address of the interface, and gets what is sent to a group only after it has joined that.
	err = errors.Join(conn.SetICMPFilter(&filter), conn.JoinGroup(netip.MustParseAddr("ff02::1")), conn.SetReadDeadline(time.Now().Add(routerInterval)), conn.WriteTo(solicitation, nil, netip.MustParseAddr("ff02::2")))
	for err == nil {
		message, control, from, readErr := conn.ReadFrom()
		// RFC 4861 section 6.1.2: a hop limit of 255 cannot come from another network.
		if advertisement, ok := message.(*ndp.RouterAdvertisement); ok && readErr == nil && from.IsLinkLocalUnicast() && (control == nil || control.HopLimit == 255) {
			return advertisement, from, nil
		}
		var timeout net.Error
		if errors.As(readErr, &timeout) {
			err = readErr
		}
	}
	return nil, netip.Addr{}, err
}

// nameServersOf returns the name servers of the advertisement, RFC 8106.
func nameServersOf(advertisement *ndp.RouterAdvertisement) []netip.Addr {
	var out []netip.Addr
	for _, option := range advertisement.Options {
		if servers, ok := option.(*ndp.RecursiveDNSServer); ok && servers.Lifetime > 0 {
			out = append(out, servers.Servers...)
		}
	}
	return out
}

func describeAdvertisement(advertisement *ndp.RouterAdvertisement) string {
	parts := []string{"router lifetime " + advertisement.RouterLifetime.String()}
	if advertisement.ManagedConfiguration {
		parts = append(parts, "addresses by DHCPv6")
	}
	for _, option := range advertisement.Options {
		if prefix, ok := option.(*ndp.PrefixInformation); ok {
			parts = append(parts, fmt.Sprintf("prefix %s/%d", prefix.Prefix, prefix.PrefixLength))
		}
	}
	return strings.Join(parts, ", ")
}

// keepLease6 asks for an address by DHCPv6 until there is one, and asks again at half of its preferred time.
func (u *up) keepLease6(link netlink.Link) {
	who := "DHCPv6 on " + link.Attrs().Name
	for wait := time.Second; ; {
		lease, err := requestLease6(u.background, link)
		pause := wait
		if err == nil {
			err = addAddress(link, netip.PrefixFrom(lease.address, 128))
		}
		if err != nil {
			u.noteAnswer(who, err.Error())
			u.Log.Warn("no DHCPv6 lease", "interface", link.Attrs().Name, "error", err)
			wait = min(2*wait, maxRequestWait)
		} else {
			u.noteAnswer(who, "gave "+lease.address.String())
			u.setResolver(who, lease.dns, "")
			wait, pause = time.Second, max(lease.preferred/2, 10*time.Second)
		}
		if u.Clock.Sleep(u.background, pause) != nil {
			return
		}
	}
}

// lease6 is what a DHCPv6 server gives.
type lease6 struct {
	address   netip.Addr
	preferred time.Duration
	dns       []netip.Addr
}

// duidOf returns the identity of the server at DHCPv6 servers: it is made of the MAC address, so that each boot has the same.
func duidOf(mac net.HardwareAddr) dhcpv6.DUID {
	return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: mac}
}

// requestLease6 asks once, for some seconds.
func requestLease6(ctx context.Context, link netlink.Link) (l lease6, err error) {
	client, err := nclient6.New(link.Attrs().Name, nclient6.WithTimeout(4*time.Second), nclient6.WithRetry(2))
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	advertise, err := client.Solicit(ctx, dhcpv6.WithClientID(duidOf(link.Attrs().HardwareAddr)), dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer))
	if err != nil {
		return l, err
	}
	reply, err := client.Request(ctx, advertise)
	if err != nil {
		return l, err
	}
	return parseLease6(reply)
}

// parseLease6 returns what the answer says. A server may be any machine on the segment.
func parseLease6(reply *dhcpv6.Message) (lease6, error) {
	association := reply.Options.OneIANA()
	if association == nil {
		return lease6{}, errors.New("the DHCPv6 server gave no address")
	}
	if status := association.Options.Status(); status != nil && status.StatusCode != iana.StatusSuccess {
		return lease6{}, fmt.Errorf("the DHCPv6 server gave no address: %s", status.StatusCode)
	}
	given := association.Options.OneAddress()
	if given == nil {
		return lease6{}, errors.New("the DHCPv6 server gave no address")
	}
	address, ok := netip.AddrFromSlice(given.IPv6Addr)
	if !ok || !address.Is6() || address.Is4In6() || !address.IsGlobalUnicast() {
		return lease6{}, fmt.Errorf("the DHCPv6 server gave %s: expected an address that reaches beyond the link", given.IPv6Addr)
	}
	return lease6{address: address, preferred: given.PreferredLifetime, dns: toAddresses(reply.Options.DNS())}, nil
}

// askInformation6 asks for the name servers by stateless DHCPv6 until there is an answer.
func (u *up) askInformation6(link netlink.Link) {
	for wait := time.Second; ; wait = min(2*wait, maxRequestWait) {
		servers, err := requestInformation6(u.background, link)
		if err == nil {
			u.setResolver("DHCPv6 on "+link.Attrs().Name, servers, "")
			return
		}
		u.Log.Warn("no answer from DHCPv6", "interface", link.Attrs().Name, "error", err)
		if u.Clock.Sleep(u.background, wait) != nil {
			return
		}
	}
}

func requestInformation6(ctx context.Context, link netlink.Link) (servers []netip.Addr, err error) {
	client, err := nclient6.New(link.Attrs().Name, nclient6.WithTimeout(4*time.Second), nclient6.WithRetry(2))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	request, err := dhcpv6.NewMessage(dhcpv6.WithClientID(duidOf(link.Attrs().HardwareAddr)), dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer))
	if err != nil {
		return nil, err
	}
	request.MessageType = dhcpv6.MessageTypeInformationRequest
	reply, err := client.SendAndRead(ctx, client.RemoteAddr(), request, nclient6.IsMessageType(dhcpv6.MessageTypeReply))
	if err != nil {
		return nil, err
	}
	return toAddresses(reply.Options.DNS()), nil
}

package network

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// useStatic sets the static addresses and waits until they can be used.
func (u *up) useStatic(ctx context.Context, link netlink.Link) error {
	for _, address := range u.Network.Addresses {
		if err := addAddress(link, address); err != nil {
			return u.fail("setting the address", err)
		}
	}
	for _, gateway := range u.Network.Gateways {
		if err := addGateway(link, gateway); err != nil {
			return u.fail("setting the gateway", err)
		}
	}
	u.setResolver("", nil, "")
	return u.waitForRoute(ctx, []netlink.Link{link})
}

// askForAddress asks DHCP servers and routers on the interfaces until one has an address from which the boot service can be reached.
func (u *up) askForAddress(ctx context.Context, links []netlink.Link) error {
	for _, link := range links {
		if !u.Target.Is6() {
			go u.keepLease4(link)
		}
		if !u.Target.Is4() {
			go u.followRouters(link)
		}
	}
	return u.waitForRoute(ctx, links)
}

// waitForRoute waits until an interface has an address of the boot service's family, and the kernel a route to it.
func (u *up) waitForRoute(ctx context.Context, links []netlink.Link) error {
	var address netip.Addr
	err := u.wait(ctx, func() bool {
		address = u.usableAddress(links)
		return address.IsValid() && u.hasRoute()
	}, func() *Failure { return u.missingAddress(links) })
	if err == nil {
		u.Log.Info("the network is up", "address", address, "interfaces", describe(ListNICs()), "answers", u.describeAnswers())
	}
	return err
}

// missingAddress is what is said while there is no way to the boot service.
func (u *up) missingAddress(links []netlink.Link) *Failure {
	nics, answers := ListNICs(), u.describeAnswers()
	if address := u.usableAddress(links); address.IsValid() {
		return &Failure{
			Reason: RouteMissing, NICs: nics, Message: fmt.Sprintf("expected a route to the boot service at %s, seen: the address %s without one; %s", u.Target, address, answers),
			Look: "at the router that the DHCP server or the NodeProvider's spec.redfish.netboot.network names",
		}
	}
	return &Failure{
		Reason: AddressMissing, NICs: nics, Message: fmt.Sprintf("expected an address at %s, seen: %s; %s", names(links), answers, describe(nics)),
		Look: "at the DHCP server's log for this MAC address, at the VLAN of the switch port and, for a bond, at LACP on the switch",
	}
}

// usableAddress returns an address of the interfaces by which the boot service may be reached.
func (u *up) usableAddress(links []netlink.Link) netip.Addr {
	for _, link := range links {
		for _, p := range addressesOf(link) {
			if !u.Target.IsValid() || p.Addr().Is4() == u.Target.Is4() {
				return p.Addr()
			}
		}
	}
	return netip.Addr{}
}

// hasRoute reports whether the kernel has a route to the boot service, or its address is not known.
func (u *up) hasRoute() bool {
	if !u.Target.IsValid() {
		return true
	}
	routes, err := netlink.RouteGet(u.Target.AsSlice())
	return err == nil && len(routes) > 0
}

// noteAnswer keeps what a server or router has answered, for a person.
func (u *up) noteAnswer(who, answer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers[who] = answer
}

func (u *up) describeAnswers() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.answers) == 0 {
		return "no server or router has answered"
	}
	texts := make([]string, 0, len(u.answers))
	for _, who := range slices.Sorted(maps.Keys(u.answers)) {
		texts = append(texts, who+": "+u.answers[who])
	}
	return strings.Join(texts, "; ")
}

func addAddress(link netlink.Link, address netip.Prefix) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("address %s on %s: %w", address, link.Attrs().Name, err)
	}
	return nil
}

// addGateway adds the default route. The gateway may be outside the networks of the interface's addresses, as where each host has a /32.
func addGateway(link netlink.Link, gateway netip.Addr) error {
	return addRoute(link, nil, gateway)
}

func addRoute(link netlink.Link, to *net.IPNet, gateway netip.Addr) error {
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: to}
	if gateway.IsValid() && !gateway.IsUnspecified() {
		route.Gw = gateway.AsSlice()
		route.SetFlag(netlink.FLAG_ONLINK)
	} else {
		route.Scope = netlink.SCOPE_LINK
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route by %s on %s: %w", gateway, link.Attrs().Name, err)
	}
	return nil
}

// setResolver writes the name servers: those of the command line, or else all that were named. who names them.
func (u *up) setResolver(who string, servers []netip.Addr, domain string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(servers) > 0 {
		u.resolvers[who] = servers
	}
	if domain != "" {
		u.domain = domain
	}
	content := resolverContent(u.Network.DNS, u.resolvers, u.domain)
	if content == "" {
		return
	}
	if err := u.WriteResolver(content); err != nil {
		u.Log.Warn("the name servers are not written", "error", err)
	}
}

package network

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Boot describes the NIC that a host boots from, and the network that it is in.
type Boot struct {
	// MAC of the NIC; empty: the host does not say it.
	MAC string
	// Address of the NIC, with or without prefix length; empty: the NIC gets its address by DHCP.
	Address string
	// Gateway in the host's annotation; empty: the gateway is the address of CIDR.
	Gateway string
	// CIDR is the gateway's address with the prefix length of the network; empty: the NodeProvider has none.
	CIDR string
	// Ranges that the address must be in: IP1-IP2,IP3-IP4; empty: every address is accepted.
	Ranges string
	// Resolvers of the node.
	Resolvers []string
}

// addressField is the field that errors about the host's address name.
const addressField = "the host's annotation " + v1alpha1.AnnotationIPAddress

// Data returns network data that configures the NIC with the host's address, or by DHCP when the host has none. The operating
// system finds the NIC by its MAC. ok is false when the MAC is not known, because then no NIC can be configured. The error is an
// *Invalid.
func (b Boot) Data() (d Data, ok bool, err error) {
	if b.MAC == "" {
		if b.Address != "" {
			return Data{}, false, invalid("the host's bootMACAddress", "it is empty, and the host's address %s cannot be given to a NIC that is not known", b.Address)
		}
		return Data{}, false, nil
	}
	n := Network{ID: "network0", Link: "boot0", Type: dhcpType(b.CIDR)}
	switch {
	case b.Address != "":
		if n, err = b.staticNetwork(); err != nil {
			return Data{}, false, err
		}
	case b.Ranges != "":
		return Data{}, false, invalid(addressField, "it is missing, and the network has the ranges %s instead of DHCP: set it to a free address in them", b.Ranges)
	}
	d = Data{Links: []Link{{ID: "boot0", Type: LinkPhysical, MAC: strings.ToLower(b.MAC)}}, Networks: []Network{n}, Services: []Service{}}
	for _, s := range b.Resolvers {
		d.Services = append(d.Services, Service{Type: "dns", Address: s})
	}
	return d, true, d.Validate("the network")
}

// dhcpType returns the type of a network that gives addresses by DHCP, for the IP version of the NodeProvider's network.
func dhcpType(cidr string) string {
	if gateway, err := netip.ParsePrefix(cidr); err == nil && gateway.Addr().Is6() {
		return "ipv6_dhcp"
	}
	return "ipv4_dhcp"
}

// AddressAndGateway returns the NIC's address with its prefix length, and the gateway. The gateway is the zero value when there is
// none. The error is an *Invalid.
func (b Boot) AddressAndGateway() (own netip.Prefix, gateway netip.Addr, err error) {
	of, err := b.gatewayPrefix()
	if err != nil {
		return netip.Prefix{}, netip.Addr{}, err
	}
	own, err = addressPrefix(b.Address, of)
	if err != nil {
		return netip.Prefix{}, netip.Addr{}, invalid(addressField, "%s", err)
	}
	if of.IsValid() {
		if err := checkGateway(own, of); err != nil {
			return netip.Prefix{}, netip.Addr{}, invalid(addressField, "%s", err)
		}
		gateway = of.Addr()
	}
	if b.Ranges == "" {
		return own, gateway, nil
	}
	ranges, err := ParseRanges(b.Ranges)
	if err != nil {
		return netip.Prefix{}, netip.Addr{}, err
	}
	if !ranges.HasAddress(own.Addr()) {
		return netip.Prefix{}, netip.Addr{}, invalid(addressField, "%s is in none of the ranges %s", own.Addr(), b.Ranges)
	}
	return own, gateway, nil
}

// gatewayPrefix returns the gateway with the prefix length of its network, or the zero value when there is no gateway.
func (b Boot) gatewayPrefix() (netip.Prefix, error) {
	var of netip.Prefix
	if b.CIDR != "" {
		p, err := netip.ParsePrefix(b.CIDR)
		if err != nil {
			return of, invalid("network.cidr", "%q must be the gateway's address with a prefix length, such as 10.20.4.1/22", b.CIDR)
		}
		of = p
	}
	if b.Gateway == "" {
		return of, nil
	}
	g, err := netip.ParseAddr(b.Gateway)
	if err != nil {
		return of, invalid("the host's annotation "+AnnotationGateway, "%q must be an address", b.Gateway)
	}
	bits := of.Bits()
	if own, err := netip.ParsePrefix(b.Address); err == nil {
		bits = own.Bits()
	} else if !of.IsValid() {
		return of, invalid(addressField, "%s has no prefix length, and the NodeProvider has no network.cidr to take it from", b.Address)
	}
	return netip.PrefixFrom(g, bits), nil
}

// AnnotationGateway on a BareMetalHost is the gateway of that host. vMetal defines it.
const AnnotationGateway = "metal3.vcluster.com/gateway"

// staticNetwork returns the network of a NIC with a static address.
func (b Boot) staticNetwork() (Network, error) {
	own, gateway, err := b.AddressAndGateway()
	if err != nil {
		return Network{}, err
	}
	out := Network{ID: "network0", Link: "boot0", Type: "ipv4", Address: own.Addr().String(), Netmask: netmask(own)}
	defaultRoute := Route{Network: "0.0.0.0", Netmask: "0.0.0.0"}
	if own.Addr().Is6() {
		out.Type = "ipv6"
		defaultRoute = Route{Network: "::", Netmask: "::"}
	}
	if gateway.IsValid() {
		defaultRoute.Gateway = gateway.String()
		out.Routes = []Route{defaultRoute}
	}
	return out, nil
}

// addressPrefix returns the address with its own prefix length, or with that of the gateway's network.
func addressPrefix(address string, of netip.Prefix) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(address); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q must be an address such as 10.20.4.17/22", address)
	}
	if !of.IsValid() {
		return netip.Prefix{}, fmt.Errorf("%s has no prefix length, and the NodeProvider has no network.cidr to take it from", address)
	}
	if of.Bits() > a.BitLen() {
		return netip.Prefix{}, fmt.Errorf("%s and the gateway %s are of different IP versions", a, of.Addr())
	}
	return netip.PrefixFrom(a, of.Bits()), nil
}

// checkGateway returns an error when a NIC with this address could not use the gateway.
func checkGateway(own, gateway netip.Prefix) error {
	switch {
	case own.Addr().Is4() != gateway.Addr().Is4():
		return fmt.Errorf("%s and the gateway %s are of different IP versions", own, gateway.Addr())
	case !own.Masked().Contains(gateway.Addr()):
		return fmt.Errorf("the gateway %s of network.cidr is not in the network of %s, so the node could not reach it", gateway.Addr(), own)
	case own.Addr() == gateway.Addr():
		return fmt.Errorf("%s is the gateway's own address", own.Addr())
	case own.Addr().Is4() && own.Bits() < 31 && (own.Addr() == own.Masked().Addr() || own.Addr() == lastAddress(own)):
		return fmt.Errorf("%s is the network's or the broadcast address of %s", own.Addr(), own.Masked())
	}
	return nil
}

// lastAddress returns the last address of an IPv4 network.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

// netmask returns the prefix length as a netmask: 255.255.252.0.
func netmask(p netip.Prefix) string {
	b := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a.String()
}

package network

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Boot is what is known of the NIC that a host boots from.
type Boot struct {
	// MAC of the NIC; empty: not known.
	MAC string
	// Address of the NIC, with or without prefix length; empty: DHCP.
	Address string
	// Gateway that the host itself names; empty: the address of CIDR.
	Gateway string
	// CIDR is the gateway's address with the prefix length of the network; empty: none.
	CIDR string
	// Ranges that addresses are taken from, IP1-IP2,IP3-IP4; empty: any.
	Ranges string
	// Resolvers of the node.
	Resolvers []string
}

// addressField is what an operator must mend when the host's address is wrong.
const addressField = "the host's annotation " + v1alpha1.AnnotationIPAddress

// Data configures the NIC, found by its MAC: with the host's address, else by DHCP. Without a MAC there is nothing to
// configure, and ok is false. The error is an *Invalid.
func (b Boot) Data() (d Data, ok bool, err error) {
	if b.MAC == "" {
		if b.Address != "" {
			return Data{}, false, invalid("the host's bootMACAddress", "it is empty, and the host's address %s cannot be given to a NIC that is not known", b.Address)
		}
		return Data{}, false, nil
	}
	n := Network{ID: "network0", Link: "boot0", Type: dhcp(b.CIDR)}
	switch {
	case b.Address != "":
		if n, err = b.static(); err != nil {
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

// dhcp is the kind of DHCP of the provider's network.
func dhcp(cidr string) string {
	if gateway, err := netip.ParsePrefix(cidr); err == nil && gateway.Addr().Is6() {
		return "ipv6_dhcp"
	}
	return "ipv4_dhcp"
}

// Own is the NIC's address with its prefix length, and its gateway, which is invalid where there is none. The error is
// an *Invalid.
func (b Boot) Own() (own netip.Prefix, gateway netip.Addr, err error) {
	of, err := b.network()
	if err != nil {
		return netip.Prefix{}, netip.Addr{}, err
	}
	own, err = ownPrefix(b.Address, of)
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
	if !ranges.Contains(own.Addr()) {
		return netip.Prefix{}, netip.Addr{}, invalid(addressField, "%s is in none of the ranges %s", own.Addr(), b.Ranges)
	}
	return own, gateway, nil
}

// network is the gateway with its prefix length; not valid where there is none.
func (b Boot) network() (netip.Prefix, error) {
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

// AnnotationGateway is vMetal's, on a BareMetalHost: the gateway of that host.
const AnnotationGateway = "metal3.vcluster.com/gateway"

func (b Boot) static() (Network, error) {
	own, gateway, err := b.Own()
	if err != nil {
		return Network{}, err
	}
	out := Network{ID: "network0", Link: "boot0", Type: "ipv4", Address: own.Addr().String(), Netmask: netmask(own)}
	everywhere := Route{Network: "0.0.0.0", Netmask: "0.0.0.0"}
	if own.Addr().Is6() {
		out.Type = "ipv6"
		everywhere = Route{Network: "::", Netmask: "::"}
	}
	if gateway.IsValid() {
		everywhere.Gateway = gateway.String()
		out.Routes = []Route{everywhere}
	}
	return out, nil
}

func ownPrefix(address string, of netip.Prefix) (netip.Prefix, error) {
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

// lastAddress is the last address of an IPv4 network.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

func netmask(p netip.Prefix) string {
	b := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a.String()
}

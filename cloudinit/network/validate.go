package network

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var (
	macPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)
	idPattern  = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.:-]{0,63}$`)
)

// bondModes are the modes of bonds in the spelling of the kernel.
var bondModes = []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}

// dynamicTypes are the types of networks that assign the address.
var dynamicTypes = []string{"ipv4_dhcp", "ipv6_dhcp", "ipv6_slaac", "ipv6_dhcpv6-stateful", "ipv6_dhcpv6-stateless"}

// Validate returns an *Invalid when cloud-init would fail with the network data, or would ignore a part of it without an error. field
// begins the names of fields in errors.
func (d Data) Validate(field string) error {
	if len(d.Links) == 0 {
		return invalid(field, "links is empty: the node would have no network")
	}
	links := map[string]Link{}
	for i, l := range d.Links {
		at := fmt.Sprintf("%s: links[%d]", field, i)
		if !idPattern.MatchString(l.ID) {
			return invalid(at+".id", "it must be a word of letters, digits and -_.: of at most 64")
		}
		if _, twice := links[l.ID]; twice {
			return invalid(at+".id", "%s is there twice", l.ID)
		}
		links[l.ID] = l
	}
	for i, l := range d.Links {
		if err := l.validate(fmt.Sprintf("%s: links[%d]", field, i), links); err != nil {
			return err
		}
	}
	for i, n := range d.Networks {
		if err := n.validate(fmt.Sprintf("%s: networks[%d]", field, i), links); err != nil {
			return err
		}
	}
	for i, s := range d.Services {
		at := fmt.Sprintf("%s: services[%d]", field, i)
		if s.Type != "dns" {
			return invalid(at+".type", "it must be dns: cloud-init reads no other")
		}
		if _, err := netip.ParseAddr(s.Address); err != nil {
			return invalid(at+".address", "it must be an IP address")
		}
	}
	return nil
}

func (l Link) validate(at string, links map[string]Link) error {
	if l.MTU != 0 && (l.MTU < 576 || l.MTU > 65535) {
		return invalid(at+".mtu", "it must be 576 to 65535")
	}
	if l.MAC != "" && !macPattern.MatchString(l.MAC) {
		return invalid(at+".ethernet_mac_address", "it must be a MAC address such as 52:54:00:aa:bb:01")
	}
	switch l.Type {
	case LinkPhysical:
		if l.MAC == "" {
			return invalid(at+".ethernet_mac_address", "a NIC is found by its MAC address: set it")
		}
		return nil
	case LinkBond:
		return l.validateBond(at, links)
	case LinkVLAN:
		return l.validateVLAN(at, links)
	}
	return invalid(at+".type", "it must be phy, bond or vlan")
}

func (l Link) validateBond(at string, links map[string]Link) error {
	if !slices.Contains(bondModes, l.BondMode) {
		return invalid(at+".bond_mode", "it must be one of %s", strings.Join(bondModes, ", "))
	}
	if len(l.BondLinks) == 0 {
		return invalid(at+".bond_links", "a bond needs at least one NIC")
	}
	if l.BondMIIMon < 0 {
		return invalid(at+".bond_miimon", "it must not be negative")
	}
	for i, id := range l.BondLinks {
		if links[id].Type != LinkPhysical {
			return invalid(fmt.Sprintf("%s.bond_links[%d]", at, i), "it must be the id of a link of type phy")
		}
		if slices.Contains(l.BondLinks[:i], id) {
			return invalid(fmt.Sprintf("%s.bond_links[%d]", at, i), "%s is there twice", id)
		}
		if bond := bondOf(id, links); bond != l.ID {
			return invalid(fmt.Sprintf("%s.bond_links[%d]", at, i), "%s is in another bond as well", id)
		}
	}
	return nil
}

func (l Link) validateVLAN(at string, links map[string]Link) error {
	if l.VLANID < 1 || l.VLANID > 4094 {
		return invalid(at+".vlan_id", "it must be 1 to 4094")
	}
	if !macPattern.MatchString(l.VLANMAC) {
		return invalid(at+".vlan_mac_address", "cloud-init demands the MAC address of a VLAN: set it, to that of the link below where in doubt")
	}
	below, ok := links[l.VLANLink]
	if !ok || l.VLANLink == l.ID {
		return invalid(at+".vlan_link", "it must be the id of another link")
	}
	if below.Type == LinkVLAN {
		return invalid(at+".vlan_link", "a VLAN on a VLAN is not supported: put it on the NIC or the bond")
	}
	if bond := bondOf(l.VLANLink, links); bond != "" {
		return invalid(at+".vlan_link", "the NIC is in the bond %s: put the VLAN on the bond", bond)
	}
	return nil
}

// bondOf returns the ID of the bond that the NIC is in, or an empty text. When the NIC is in several bonds, it returns the first in
// alphabetical order.
func bondOf(nic string, links map[string]Link) string {
	found := ""
	for id, l := range links {
		if l.Type == LinkBond && slices.Contains(l.BondLinks, nic) && (found == "" || id < found) {
			found = id
		}
	}
	return found
}

func (n Network) validate(at string, links map[string]Link) error {
	if _, ok := links[n.Link]; !ok {
		return invalid(at+".link", "it must be the id of a link")
	}
	if bond := bondOf(n.Link, links); bond != "" {
		return invalid(at+".link", "the NIC is in the bond %s: put the network on the bond", bond)
	}
	if slices.Contains(dynamicTypes, n.Type) {
		if n.Address != "" {
			return invalid(at+".ip_address", "a network of type %s gives the address itself: remove it", n.Type)
		}
	} else if err := n.validateStatic(at); err != nil {
		return err
	}
	for i, r := range n.Routes {
		if err := r.validate(fmt.Sprintf("%s.routes[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (n Network) validateStatic(at string) error {
	if n.Type != "ipv4" && n.Type != "ipv6" {
		return invalid(at+".type", "it must be ipv4, ipv6 or one of %s", strings.Join(dynamicTypes, ", "))
	}
	p, err := n.Prefix()
	if err != nil {
		return invalid(at+".ip_address", "with netmask, or with a prefix length of its own, it must be an address such as 10.20.4.17 and 255.255.252.0")
	}
	if p.Addr().Is4() != (n.Type == "ipv4") {
		return invalid(at+".ip_address", "%s is not of the type %s", p.Addr(), n.Type)
	}
	return nil
}

// Prefix returns the address with its prefix length.
func (n Network) Prefix() (netip.Prefix, error) {
	if n.Netmask == "" {
		p, err := netip.ParsePrefix(n.Address)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("network %s: %w", n.ID, err)
		}
		return p, nil
	}
	return parsePrefix(n.Address, n.Netmask)
}

func (r Route) validate(at string) error {
	p, err := parsePrefix(r.Network, r.Netmask)
	if err != nil {
		return invalid(at, "network and netmask must be addresses such as 0.0.0.0 and 0.0.0.0")
	}
	g, err := netip.ParseAddr(r.Gateway)
	if err != nil || g.Is4() != p.Addr().Is4() {
		return invalid(at+".gateway", "it must be an address of the network's IP version")
	}
	return nil
}

// parsePrefix returns the prefix of an address and a netmask.
func parsePrefix(address, mask string) (netip.Prefix, error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("address: %w", err)
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.BitLen() != a.BitLen() || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("netmask %s does not fit the address %s", mask, address)
	}
	bits := 0
	for _, b := range m.AsSlice() {
		for ; b&0x80 != 0; b <<= 1 {
			bits++
		}
	}
	p := netip.PrefixFrom(a, bits)
	if netmask(p) != m.String() {
		return netip.Prefix{}, fmt.Errorf("netmask %s has holes", mask)
	}
	return p, nil
}

// Invalid says why a node cannot have the network.
type Invalid struct {
	// Field that must be corrected: the host's address, network.cidr, links[1].vlan_id.
	Field string
	// Message says what is wrong with it.
	Message string
}

// Error returns the field and the message.
func (n *Invalid) Error() string { return n.Field + ": " + n.Message }

// invalid returns an *Invalid.
func invalid(field, format string, args ...any) error {
	return &Invalid{Field: field, Message: fmt.Sprintf(format, args...)}
}

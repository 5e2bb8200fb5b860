package cmdline

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Names of the kernel arguments of the network.
const (
	// argMAC is the MAC address of the interface: ingot.mac=0c:42:a1:00:00:01. Without it, every interface with a link is asked for an address.
	argMAC = "ingot.mac"
	// argBond bonds interfaces: ingot.bond=802.3ad bonds the ports of the card of ingot.mac, and
	// ingot.bond=802.3ad,0c:42:a1:00:00:01,0c:42:a1:00:00:02 those that it names.
	argBond = "ingot.bond"
	// argVLAN is the VLAN on the interface or bond: ingot.vlan=120.
	argVLAN = "ingot.vlan"
	// argAddress are addresses with the length of their prefix: ingot.address=10.20.0.5/24,2001:db8::5/64. With them, no server is asked.
	argAddress = "ingot.address"
	// argGateway are the default gateways, one of each family at most.
	argGateway = "ingot.gateway"
	// argDNS are the name servers, instead of those that DHCP names.
	argDNS = "ingot.dns"
)

// Network is how the agent brings up the network of a server.
type Network struct {
	// MAC is the MAC address of the interface that the server boots from, in lower case with colons.
	MAC string
	// Bond bonds several interfaces; nil: none.
	Bond *Bond
	// VLAN is the tag of the VLAN, 1 to 4094; 0: none.
	VLAN int
	// Addresses are static addresses; none: DHCP and router advertisements are asked.
	Addresses []netip.Prefix
	// Gateways are the default gateways of the static addresses.
	Gateways []netip.Addr
	// DNS are the name servers; none: those that DHCP names.
	DNS []netip.Addr
}

// Bond is a bond of interfaces.
type Bond struct {
	// Mode is the kernel's name of the mode: active-backup or 802.3ad.
	Mode string
	// MACs are the MAC addresses of the interfaces; none: the ports of the card that the server boots from.
	MACs []string
}

const (
	// maxValues is how many values one argument may have: a command line has 2048 characters.
	maxValues = 16
	// maxVLAN is the highest tag, IEEE 802.1Q section 9.6.
	maxVLAN = 4094
)

// bondModes are the modes that a bond may have: with the others a switch that does not know of the bond drops packets.
var bondModes = []string{"active-backup", "802.3ad"}

// words returns the network as kernel arguments.
func (n Network) words() []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	add(argMAC, n.MAC)
	if n.Bond != nil {
		add(argBond, strings.Join(append([]string{n.Bond.Mode}, n.Bond.MACs...), ","))
	}
	if n.VLAN != 0 {
		add(argVLAN, strconv.Itoa(n.VLAN))
	}
	add(argAddress, joinTexts(n.Addresses))
	add(argGateway, joinTexts(n.Gateways))
	add(argDNS, joinTexts(n.DNS))
	return out
}

func joinTexts[T fmt.Stringer](values []T) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, ",")
}

// set sets what one argument says; other arguments change nothing.
func (n *Network) set(name, value string) (err error) {
	switch name {
	case argMAC:
		n.MAC, err = ParseMAC(value)
	case argBond:
		n.Bond, err = parseBond(value)
	case argVLAN:
		n.VLAN, err = parseVLAN(value)
	case argAddress:
		n.Addresses, err = parseEach(value, netip.ParsePrefix)
	case argGateway:
		n.Gateways, err = parseEach(value, parseAddress)
	case argDNS:
		n.DNS, err = parseEach(value, parseAddress)
	}
	return err
}

// Validate returns an error for a network that cannot work.
func (n Network) Validate() error {
	switch {
	case n.VLAN < 0 || n.VLAN > maxVLAN:
		return fmt.Errorf("VLAN %d: expected 1 to %d", n.VLAN, maxVLAN)
	case n.Bond != nil && !slices.Contains(bondModes, n.Bond.Mode):
		return fmt.Errorf("bond mode %q: expected one of %s", n.Bond.Mode, strings.Join(bondModes, ", "))
	case n.Bond != nil && len(n.Bond.MACs) == 0 && n.MAC == "":
		return fmt.Errorf("the bond has no interfaces: expected their MAC addresses, or that of the boot NIC")
	}
	families := map[bool]bool{}
	for _, gateway := range n.Gateways {
		if families[gateway.Is4()] {
			return fmt.Errorf("gateway %s is the second of its family", gateway)
		}
		families[gateway.Is4()] = true
		if !gateway.IsLinkLocalUnicast() && !slices.ContainsFunc(n.Addresses, func(p netip.Prefix) bool { return p.Contains(gateway) }) {
			return fmt.Errorf("gateway %s is on the network of none of the addresses %q", gateway, joinTexts(n.Addresses))
		}
	}
	return nil
}

func parseVLAN(value string) (int, error) {
	vlan, err := strconv.Atoi(value)
	if err != nil || vlan < 1 || vlan > maxVLAN {
		return 0, fmt.Errorf("%q: expected 1 to %d", value, maxVLAN)
	}
	return vlan, nil
}

func parseBond(value string) (*Bond, error) {
	mode, rest, _ := strings.Cut(value, ",")
	macs, err := parseEach(rest, ParseMAC)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(bondModes, mode) {
		return nil, fmt.Errorf("mode %q: expected one of %s", mode, strings.Join(bondModes, ", "))
	}
	return &Bond{Mode: mode, MACs: macs}, nil
}

// ParseMAC parses a MAC address of six octets. InfiniBand's have twenty, and no firmware boots from them.
func ParseMAC(text string) (string, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return "", fmt.Errorf("%q: expected six octets like 0c:42:a1:00:00:01", text)
	}
	return mac.String(), nil
}

// parseAddress refuses a zone, which names an interface of the machine that the text was written on.
func parseAddress(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err == nil && address.Zone() != "" {
		err = fmt.Errorf("%q: expected an address without a zone", text)
	}
	return address, err
}

func parseEach[T any](list string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		v, err := parse(text)
		if err != nil {
			return nil, err
		}
		if out = append(out, v); len(out) > maxValues {
			return nil, fmt.Errorf("more than %d values", maxValues)
		}
	}
	return out, nil
}

package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Names of the kernel arguments.
const (
	// argMAC is the MAC address of the interface: ingot.mac=0c:42:a1:00:00:01. Without it, every interface with a link is asked for an address.
	argMAC = "ingot.mac"
	// argBond bonds interfaces: ingot.bond=802.3ad,0c:42:a1:00:00:01,0c:42:a1:00:00:02.
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

// Settings are the network of a server while it is installed.
type Settings struct {
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
	// MACs are the MAC addresses of the interfaces.
	MACs []string
}

// Modes that a bond may have: with the others a switch that does not know of the bond drops packets.
var bondModes = []string{"active-backup", "802.3ad"}

// Arguments returns the settings as kernel arguments, for Parse.
func (s Settings) Arguments() []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	add(argMAC, s.MAC)
	if s.Bond != nil {
		add(argBond, strings.Join(append([]string{s.Bond.Mode}, s.Bond.MACs...), ","))
	}
	if s.VLAN != 0 {
		add(argVLAN, strconv.Itoa(s.VLAN))
	}
	add(argAddress, joinTexts(s.Addresses))
	add(argGateway, joinTexts(s.Gateways))
	add(argDNS, joinTexts(s.DNS))
	return out
}

func joinTexts[T fmt.Stringer](values []T) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, ",")
}

// Parse returns the settings of a kernel command line. The error names the argument.
func Parse(commandLine string) (Settings, error) {
	var s Settings
	for word := range strings.FieldsSeq(commandLine) {
		name, value, _ := strings.Cut(word, "=")
		if err := s.set(name, value); err != nil {
			return Settings{}, fmt.Errorf("%s: %w", word, err)
		}
	}
	return s, s.Validate()
}

// set sets what one argument says; other arguments change nothing.
func (s *Settings) set(name, value string) (err error) {
	switch name {
	case argMAC:
		s.MAC, err = parseMAC(value)
	case argBond:
		s.Bond, err = parseBond(value)
	case argVLAN:
		s.VLAN, err = strconv.Atoi(value)
	case argAddress:
		s.Addresses, err = parseEach(value, netip.ParsePrefix)
	case argGateway:
		s.Gateways, err = parseEach(value, netip.ParseAddr)
	case argDNS:
		s.DNS, err = parseEach(value, netip.ParseAddr)
	}
	return err
}

// Validate returns an error for settings that cannot work.
func (s Settings) Validate() error {
	switch {
	case s.VLAN < 0 || s.VLAN > 4094:
		return fmt.Errorf("VLAN %d: expected 1 to 4094", s.VLAN)
	case s.Bond != nil && !slices.Contains(bondModes, s.Bond.Mode):
		return fmt.Errorf("bond mode %q: expected one of %s", s.Bond.Mode, strings.Join(bondModes, ", "))
	case s.Bond != nil && len(s.Bond.MACs) == 0:
		return fmt.Errorf("the bond has no interfaces: expected their MAC addresses")
	}
	for _, gateway := range s.Gateways {
		if !slices.ContainsFunc(s.Addresses, func(p netip.Prefix) bool { return p.Contains(gateway) || gateway.IsLinkLocalUnicast() }) {
			return fmt.Errorf("gateway %s is on the network of none of the addresses %s", gateway, joinTexts(s.Addresses))
		}
	}
	return nil
}

func parseBond(value string) (*Bond, error) {
	mode, rest, _ := strings.Cut(value, ",")
	macs, err := parseEach(rest, parseMAC)
	return &Bond{Mode: mode, MACs: macs}, err
}

func parseMAC(text string) (string, error) {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return "", err
	}
	return mac.String(), nil
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
		out = append(out, v)
	}
	return out, nil
}

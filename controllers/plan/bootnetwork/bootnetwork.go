package bootnetwork

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// Of returns the network of a host with the annotations, without the MAC address of its boot NIC. network is that of its NodeProvider; nil: it has
// none. The error names what is to be corrected.
func Of(network *v1alpha1.NetbootNetworkSpec, annotations map[string]string) (cmdline.Network, error) {
	var out cmdline.Network
	var err error
	if network == nil {
		if address := annotations[v1alpha1.AnnotationBootIPAddress]; address != "" {
			return out, fmt.Errorf("the host's annotation %s is %q, and its NodeProvider has no spec.redfish.netboot.network.cidr: set that, or remove the annotation",
				v1alpha1.AnnotationBootIPAddress, address)
		}
		return out, nil
	}
	out.VLAN = int(network.VLAN)
	if network.Bond != nil {
		if out.Bond, err = bondOf(*network.Bond, annotations); err != nil {
			return out, err
		}
	}
	for _, text := range network.DNSServers {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return out, fmt.Errorf("the NodeProvider's spec.redfish.netboot.network.dnsServers: %q: expected an IP address", text)
		}
		out.DNS = append(out.DNS, address)
	}
	own, gateway, err := addressOf(network.CIDR, annotations)
	if err != nil {
		return out, err
	}
	if own.IsValid() {
		out.Addresses, out.Gateways = []netip.Prefix{own}, []netip.Addr{gateway}
	}
	return out, nil
}

// bondOf returns the bond with the members that the host's annotation names. Without it they are the ports of the card that the server boots from.
func bondOf(bond v1alpha1.NetbootBondSpec, annotations map[string]string) (*cmdline.Bond, error) {
	out := &cmdline.Bond{Mode: string(bond.Mode)}
	for text := range strings.SplitSeq(annotations[v1alpha1.AnnotationBondMACs], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		mac, err := cmdline.ParseMAC(text)
		if err != nil {
			return nil, fmt.Errorf("the host's annotation %s: %w", v1alpha1.AnnotationBondMACs, err)
		}
		if out.MACs = append(out.MACs, mac); len(out.MACs) > maxMembers {
			return nil, fmt.Errorf("the host's annotation %s: more than %d MAC addresses", v1alpha1.AnnotationBondMACs, maxMembers)
		}
	}
	return out, nil
}

// maxMembers is how many members a bond may have: two cards with four ports each.
const maxMembers = 8

// addressOf returns the static address of the host on the network whose gateway is cidr; the zero value: it asks DHCP.
//
// The address under the operating system is used where it is on this network, because there most sites have one network for both. One that is on
// another network says nothing about this one.
func addressOf(cidr string, annotations map[string]string) (own netip.Prefix, gateway netip.Addr, err error) {
	const field = "the host's annotation " + v1alpha1.AnnotationBootIPAddress
	text := annotations[v1alpha1.AnnotationBootIPAddress]
	if cidr == "" {
		if text != "" {
			return own, gateway, fmt.Errorf("%s is %q, and its NodeProvider has no spec.redfish.netboot.network.cidr: set that, or remove the annotation", field, text)
		}
		return own, gateway, nil
	}
	of, err := netip.ParsePrefix(cidr)
	if err != nil {
		return own, gateway, fmt.Errorf("the NodeProvider's spec.redfish.netboot.network.cidr: %q: expected the gateway's address with a prefix length, such as 10.20.4.1/22", cidr)
	}
	if text == "" {
		if address, err := parseAddress(annotations[v1alpha1.AnnotationIPAddress], of); err == nil && isUsable(address, of) {
			return netip.PrefixFrom(address, of.Bits()), of.Addr(), nil
		}
		return own, gateway, nil
	}
	address, err := parseAddress(text, of)
	if err != nil {
		return own, gateway, fmt.Errorf("%s: %w", field, err)
	}
	if !isUsable(address, of) {
		return own, gateway, fmt.Errorf("%s: %s is not an address of %s that a host can have, beside the gateway %s", field, address, of.Masked(), of.Addr())
	}
	return netip.PrefixFrom(address, of.Bits()), of.Addr(), nil
}

// parseAddress returns the address, with or without the prefix length of the network.
func parseAddress(text string, of netip.Prefix) (netip.Addr, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		if p.Bits() != of.Bits() {
			return netip.Addr{}, fmt.Errorf("%s has another prefix length than the network %s", p, of.Masked())
		}
		return p.Addr(), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q: expected an IP address", text)
	}
	return address, nil
}

// isUsable reports whether a host may have the address on the network of the gateway.
func isUsable(address netip.Addr, of netip.Prefix) bool {
	if !of.Masked().Contains(address) || address == of.Addr() || !address.IsGlobalUnicast() {
		return false
	}
	isEdge := address == of.Masked().Addr() || !of.Masked().Contains(address.Next())
	return !address.Is4() || of.Bits() >= 31 || !isEdge
}

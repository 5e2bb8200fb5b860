package discover

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxAddresses is the size of an IPv4 network with 16 bits. More is almost certainly a slip, and would take hours.
const maxAddresses = 1 << 16

// defaultPort is where Redfish services listen.
const defaultPort = 443

// parseAddresses returns the addresses that the ranges name, each once and in order.
func parseAddresses(ranges []string) ([]netip.Addr, error) {
	named := map[netip.Addr]bool{}
	for _, text := range ranges {
		first, last, err := parseRange(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--address %s: %w", text, err)
		}
		for a := first; ; a = a.Next() {
			named[a] = true
			if len(named) > maxAddresses {
				return nil, fmt.Errorf("--address %s: these are more than %d addresses, as many as a /16 has: name a smaller range, such as the network of one rack's BMCs", text, maxAddresses)
			}
			if a == last {
				break
			}
		}
	}
	return slices.SortedFunc(maps.Keys(named), netip.Addr.Compare), nil
}

// parseRange returns the first and the last address of a range.
func parseRange(text string) (first, last netip.Addr, err error) {
	const expected = "expected an address, a network or two addresses, such as 10.0.0.7, 10.0.0.0/24 or 10.0.0.7-10.0.0.40"
	switch from, to, isPair := strings.Cut(text, "-"); {
	case isPair:
		first, err = netip.ParseAddr(strings.TrimSpace(from))
		if err == nil {
			last, err = netip.ParseAddr(strings.TrimSpace(to))
		}
	case strings.Contains(text, "/"):
		var network netip.Prefix
		if network, err = netip.ParsePrefix(text); err == nil {
			first, last = network.Masked().Addr(), lastAddress(network)
		}
	default:
		first, err = netip.ParseAddr(text)
		last = first
	}
	if err != nil {
		return first, last, fmt.Errorf("%s", expected)
	}
	return first.Unmap(), last.Unmap(), rangeProblem(first.Unmap(), last.Unmap())
}

// rangeProblem says what is wrong with a range.
func rangeProblem(first, last netip.Addr) error {
	switch {
	case first.Zone() != "" || last.Zone() != "" || first.IsLinkLocalUnicast() && first.Is6():
		return fmt.Errorf("these addresses are valid on one link only, and a host's BMC address must lead to it from every node of the manager: name routed addresses")
	case first.BitLen() != last.BitLen():
		return fmt.Errorf("the first address is of IPv%d and the last one is not", map[int]int{32: 4, 128: 6}[first.BitLen()])
	case last.Less(first):
		return fmt.Errorf("the last address is before the first")
	case first.IsMulticast() || first.IsUnspecified() || last.IsMulticast():
		return fmt.Errorf("there are addresses of no single server in it")
	}
	return nil
}

// lastAddress returns the last address of a network.
func lastAddress(network netip.Prefix) netip.Addr {
	raw := network.Addr().AsSlice()
	for bit := network.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// parsePorts returns the ports, each once and in order.
func parsePorts(texts []string) ([]uint16, error) {
	var ports []uint16
	for _, text := range texts {
		port, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("--port %s: expected a number from 1 to 65535", text)
		}
		ports = append(ports, uint16(port))
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// endpoints returns every address with every port.
func endpoints(addresses []netip.Addr, ports []uint16) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range addresses {
		for _, port := range ports {
			all = append(all, netip.AddrPortFrom(a, port))
		}
	}
	return all
}

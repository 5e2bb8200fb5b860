// Package leases decides which address of a range each known host has. An address stays with its host as long as the host is known, so that a lease
// needs no expiry, and several boot services that share what is assigned give the same answers.
package leases

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
)

// Range is a range of IPv4 addresses, both ends included.
type Range struct{ First, Last netip.Addr }

// Validate returns an error for a range that cannot be leased from on the network.
func (r Range) Validate(network netip.Prefix) error {
	switch {
	case !r.First.Is4() || !r.Last.Is4():
		return fmt.Errorf("range %s: expected two IPv4 addresses", r)
	case r.Last.Less(r.First):
		return fmt.Errorf("range %s: the last address is before the first", r)
	case !network.Contains(r.First) || !network.Contains(r.Last):
		return fmt.Errorf("range %s: expected addresses of the network %s", r, network)
	case network.Bits() < 31 && (r.First == network.Masked().Addr() || r.HasAddress(broadcast(network))):
		return fmt.Errorf("range %s: expected addresses of servers, without the first and the last one of the network %s", r, network)
	}
	return nil
}

// String returns FIRST-LAST.
func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// size is the number of addresses.
func (r Range) size() uint64 { return uint64(toNumber(r.Last)) - uint64(toNumber(r.First)) + 1 }

// at returns the address at an index.
func (r Range) at(i uint64) netip.Addr {
	var octets [4]byte
	binary.BigEndian.PutUint32(octets[:], toNumber(r.First)+uint32(i))
	return netip.AddrFrom4(octets)
}

func toNumber(a netip.Addr) uint32 {
	octets := a.As4()
	return binary.BigEndian.Uint32(octets[:])
}

// ErrFull means that every address of the range is assigned to a host that is known.
var ErrFull = errors.New("every address of the range is assigned")

// Assign returns the assignments by MAC address with one for mac: the address that it has, if it is in the range, or else a free one. The choice
// depends on the MAC address, so that a host keeps its address also when what was assigned is lost. Where none is free, it takes the addresses of MAC
// addresses that are nobody's any more. assigned is not changed.
func Assign(assigned map[string]netip.Addr, r Range, mac string, isKnown func(mac string) bool) (map[string]netip.Addr, error) {
	out := maps.Clone(assigned)
	if out == nil {
		out = map[string]netip.Addr{}
	}
	if address, found := out[mac]; found && r.HasAddress(address) {
		return out, nil
	}
	delete(out, mac)
	if address, found := r.findFree(out, mac); found {
		out[mac] = address
		return out, nil
	}
	maps.DeleteFunc(out, func(other string, _ netip.Addr) bool { return !isKnown(other) })
	address, found := r.findFree(out, mac)
	if !found {
		return nil, fmt.Errorf("%w: %s has %d addresses", ErrFull, r, r.size())
	}
	out[mac] = address
	return out, nil
}

// broadcast returns the last address of the network.
func broadcast(network netip.Prefix) netip.Addr {
	octets := network.Masked().Addr().As4()
	number := binary.BigEndian.Uint32(octets[:]) | uint32(1<<(32-network.Bits())-1)
	binary.BigEndian.PutUint32(octets[:], number)
	return netip.AddrFrom4(octets)
}

// HasAddress reports whether the address is in the range.
func (r Range) HasAddress(a netip.Addr) bool { return !a.Less(r.First) && !r.Last.Less(a) }

// findFree returns the first free address at or behind the place of the MAC address.
func (r Range) findFree(assigned map[string]netip.Addr, mac string) (netip.Addr, bool) {
	taken := slices.Collect(maps.Values(assigned))
	isTaken := make(map[netip.Addr]bool, len(taken))
	for _, a := range taken {
		isTaken[a] = true
	}
	hash := fnv.New64a()
	hash.Write([]byte(mac)) // It never fails.
	size := r.size()
	start := hash.Sum64() % size
	for i := range size {
		if a := r.at((start + i) % size); !isTaken[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

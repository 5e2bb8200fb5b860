package network

import (
	"net/netip"
	"strings"
)

// maxRanges is the limit of ranges of one network.
const maxRanges = 64

// Range is a range of addresses that includes both ends.
type Range struct {
	// First address.
	First netip.Addr
	// Last address.
	Last netip.Addr
}

// Ranges are address ranges that do not overlap, in the order in which the user wrote them.
type Ranges []Range

// ParseRanges reads ranges of the form IP1-IP2,IP3-IP4. A single address is a range with one address. The error is an *Invalid.
func ParseRanges(text string) (Ranges, error) {
	const field = "the address ranges"
	parts := strings.Split(text, ",")
	if len(parts) > maxRanges {
		return nil, invalid(field, "there are %d, the limit is %d", len(parts), maxRanges)
	}
	var out Ranges
	for _, part := range parts {
		one, err := parseRange(field, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.First.BitLen() == one.First.BitLen() && !one.Last.Less(o.First) && !o.Last.Less(one.First) {
				return nil, invalid(field, "%q overlaps %s-%s", part, o.First, o.Last)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func parseRange(field, text string) (Range, error) {
	begin, end, two := strings.Cut(text, "-")
	if !two {
		end = begin
	}
	first, err1 := netip.ParseAddr(strings.TrimSpace(begin))
	last, err2 := netip.ParseAddr(strings.TrimSpace(end))
	if err1 != nil || err2 != nil || first.Zone() != "" || last.Zone() != "" {
		return Range{}, invalid(field, "%q must be two addresses such as 10.20.4.17-10.20.4.99", text)
	}
	if first.BitLen() != last.BitLen() || last.Less(first) {
		return Range{}, invalid(field, "%q must go from a lower address to a higher one of the same IP version", text)
	}
	return Range{First: first, Last: last}, nil
}

// HasAddress returns true when the address is in one of the ranges.
func (r Ranges) HasAddress(a netip.Addr) bool {
	for _, one := range r {
		if a.BitLen() == one.First.BitLen() && !a.Less(one.First) && !one.Last.Less(a) {
			return true
		}
	}
	return false
}

// CheckWithin returns an *Invalid when a range is not in the network of the gateway, or when the ranges include the gateway.
func (r Ranges) CheckWithin(gateway netip.Prefix) error {
	for _, one := range r {
		if !gateway.Masked().Contains(one.First) || !gateway.Masked().Contains(one.Last) {
			return invalid("the address ranges", "%s-%s is not in the network %s", one.First, one.Last, gateway.Masked())
		}
	}
	if r.HasAddress(gateway.Addr()) {
		return invalid("the address ranges", "they hold the gateway %s", gateway.Addr())
	}
	return nil
}

package servingcert

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Address is an address of a host, and where Ingot knows it from.
type Address struct {
	netip.Addr
	// Source is for people: the annotation ingot.dev/ip-address.
	Source string
}

// isAddr reports whether it is the same address; an IPv4 address in an IPv6 one is that address.
func (a Address) isAddr(other netip.Addr) bool { return a.Unmap() == other.Unmap() }

// Records is what Ingot knows of the addresses of a host. Nothing of it is written by the node or by a tenant.
type Records struct {
	// Named is the annotation ingot.dev/node-addresses of the BareMetalHost.
	Named string
	// Boot is the address of the boot NIC under the operating system, with or without prefix length: the annotation ingot.dev/ip-address, or vMetal's.
	Boot string
	// Static are the static addresses of the network data that the node was installed with.
	Static []netip.Addr
	// Agent is the address that the agent registered from which installed the node; empty: it is not known.
	Agent string
	// Inspected are the addresses in the BareMetalHost's status that an inspection found.
	Inspected []string
}

// Addresses returns the addresses that the node may have. A host with a static address has no other one but those that are named: what an agent or an
// inspection saw is for hosts that get their address by DHCP. Without it: the agent's address was leased to another server since, and this one gets a
// certificate for it.
func (r Records) Addresses() []Address {
	var out []Address
	add := func(source string, texts ...string) {
		for _, text := range texts {
			if a, ok := parseAddress(text); ok && !slices.ContainsFunc(out, func(known Address) bool { return known.isAddr(a) }) {
				out = append(out, Address{a, source})
			}
		}
	}
	add("the annotation "+v1alpha1.AnnotationIPAddress, r.Boot)
	for _, a := range r.Static {
		add("the network data", a.String())
	}
	if len(out) == 0 {
		add("the agent that installed the node", r.Agent)
		add("the inspection", r.Inspected...)
	}
	add("the annotation "+v1alpha1.AnnotationNodeAddresses, strings.Split(r.Named, ",")...)
	return out
}

// parseAddress reads an address with or without prefix length. One that leads to the node itself from everywhere is none.
func parseAddress(text string) (a netip.Addr, ok bool) {
	text = strings.TrimSpace(text)
	if p, err := netip.ParsePrefix(text); err == nil {
		a = p.Addr()
	} else if a, err = netip.ParseAddr(text); err != nil {
		return netip.Addr{}, false
	}
	a = a.Unmap()
	return a, a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback()
}

// Package netdata reads OpenStack's network_data.json as cloud-init's reader of config drives does: links by their MAC
// addresses, bonds and VLANs of other links, and the networks on them. It returns an error where cloud-init would fail.
package netdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ErrNetworkData is the error of network data that cloud-init would not accept.
var ErrNetworkData = errors.New("network_data.json")

// Network is the network configuration of a system.
type Network struct {
	Links    []Link    `json:"links"`
	Networks []Address `json:"networks"`
}

// Link is an interface.
type Link struct {
	ID    string   `json:"id"`
	Type  string   `json:"type"`
	MAC   string   `json:"ethernet_mac_address"`
	MTU   int      `json:"mtu"`
	Bonds []string `json:"bond_links"`
	// VLANLink is the link that carries the VLAN.
	VLANLink string `json:"vlan_link"`
	VLAN     int    `json:"vlan_id"`
}

// Address is a network on a link.
type Address struct {
	Link    string `json:"link"`
	Type    string `json:"type"`
	Address string `json:"ip_address"`
	Netmask string `json:"netmask"`
}

// physicalTypes are the types of links that cloud-init finds by their MAC address.
var physicalTypes = []string{"", "bridge", "ethernet", "hw_veb", "hyperv", "ovs", "phy", "tap", "vhostuser", "vif"}

// Parse reads network data. Empty data is no configuration. macs are the addresses of the machine's interfaces; without
// any, every address is accepted.
func Parse(data []byte, macs []string) (Network, error) {
	var out Network
	if len(data) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return Network{}, fmt.Errorf("%w: no JSON, or of another shape", ErrNetworkData)
	}
	ids := map[string]bool{}
	for _, link := range out.Links {
		ids[link.ID] = true
	}
	for _, link := range out.Links {
		if err := link.validate(ids, macs); err != nil {
			return Network{}, err
		}
	}
	for i, network := range out.Networks {
		if !ids[network.Link] {
			return Network{}, fmt.Errorf("%w: networks[%d] is on the link %q, which is not there", ErrNetworkData, i, network.Link)
		}
		if network.isFixed() {
			if _, err := netip.ParseAddr(network.withoutPrefix()); err != nil {
				return Network{}, fmt.Errorf("%w: networks[%d]: ip_address is none", ErrNetworkData, i)
			}
		}
	}
	return out, nil
}

func (l Link) validate(ids map[string]bool, macs []string) error {
	others := l.Bonds
	switch {
	case l.Type == "bond":
	case l.Type == "vlan":
		others = []string{l.VLANLink}
	case !slices.Contains(physicalTypes, l.Type):
		return fmt.Errorf("%w: the link %s is of the unknown type %q", ErrNetworkData, l.ID, l.Type)
	case len(macs) > 0 && !slices.ContainsFunc(macs, func(mac string) bool { return strings.EqualFold(mac, l.MAC) }):
		return fmt.Errorf("%w: the machine has no interface %s, which is the link %s", ErrNetworkData, l.MAC, l.ID)
	}
	for _, other := range others {
		if !ids[other] {
			return fmt.Errorf("%w: the link %s is made of %q, which is not there", ErrNetworkData, l.ID, other)
		}
	}
	return nil
}

func (a Address) isFixed() bool { return a.Type == "ipv4" || a.Type == "ipv6" }

func (a Address) withoutPrefix() string {
	address, _, _ := strings.Cut(a.Address, "/")
	return address
}

// Addresses returns the static addresses without the lengths of their prefixes.
func (n Network) Addresses() []string {
	var out []string
	for _, network := range n.Networks {
		if network.isFixed() {
			out = append(out, network.withoutPrefix())
		}
	}
	return out
}

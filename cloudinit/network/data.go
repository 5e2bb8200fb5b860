package network

import (
	"encoding/json"
	"fmt"
)

// Kinds of links.
const (
	LinkPhysical = "phy"
	LinkBond     = "bond"
	LinkVLAN     = "vlan"
)

// Data is OpenStack's network_data.json.
type Data struct {
	// Links are NICs, bonds and VLANs.
	Links []Link `json:"links" yaml:"links"`
	// Networks are the addresses on them.
	Networks []Network `json:"networks" yaml:"networks"`
	// Services are the resolvers of the node.
	Services []Service `json:"services" yaml:"services"`
}

// Link is a NIC, a bond or a VLAN.
type Link struct {
	// ID that others refer to.
	ID string `json:"id" yaml:"id"`
	// Name that the tools of OpenStack gave to it; ignored.
	Name string `json:"name,omitempty" yaml:"name"`
	// Type is phy, bond or vlan.
	Type string `json:"type" yaml:"type"`
	// MAC of a NIC, by which it is found, or of a bond.
	MAC string `json:"ethernet_mac_address,omitempty" yaml:"ethernet_mac_address"`
	// MTU in bytes; 0: the driver's.
	MTU int `json:"mtu,omitempty" yaml:"mtu"`
	// VIF is a name of OpenStack's; ignored.
	VIF string `json:"vif_id,omitempty" yaml:"vif_id"`
	// BondLinks are the ids of a bond's NICs.
	BondLinks []string `json:"bond_links,omitempty" yaml:"bond_links"`
	// BondMode as the kernel names it: 802.3ad.
	BondMode string `json:"bond_mode,omitempty" yaml:"bond_mode"`
	// BondMIIMon is the interval of the link check in milliseconds.
	BondMIIMon int `json:"bond_miimon,omitempty" yaml:"bond_miimon"`
	// BondHash is the policy by which packets are spread: layer3+4.
	BondHash string `json:"bond_xmit_hash_policy,omitempty" yaml:"bond_xmit_hash_policy"`
	// VLANLink is the id of the link below a VLAN.
	VLANLink string `json:"vlan_link,omitempty" yaml:"vlan_link"`
	// VLANID is 1 to 4094.
	VLANID int `json:"vlan_id,omitempty" yaml:"vlan_id"`
	// VLANMAC of a VLAN; cloud-init's converter demands it.
	VLANMAC string `json:"vlan_mac_address,omitempty" yaml:"vlan_mac_address"`
}

// Network is an address, or a way to get one, on a link.
type Network struct {
	// ID of the network.
	ID string `json:"id" yaml:"id"`
	// Link that it is on.
	Link string `json:"link" yaml:"link"`
	// Type is ipv4, ipv6, ipv4_dhcp, ipv6_dhcp, ipv6_slaac, ipv6_dhcpv6-stateful or ipv6_dhcpv6-stateless.
	Type string `json:"type" yaml:"type"`
	// Address of a network without DHCP.
	Address string `json:"ip_address,omitempty" yaml:"ip_address"`
	// Netmask as an address.
	Netmask string `json:"netmask,omitempty" yaml:"netmask"`
	// Routes through the link.
	Routes []Route `json:"routes,omitempty" yaml:"routes"`
	// NetworkID is a name of OpenStack's; ignored.
	NetworkID string `json:"network_id,omitempty" yaml:"network_id"`
}

// Route is a way to another network.
type Route struct {
	// Network that is reached: 0.0.0.0.
	Network string `json:"network" yaml:"network"`
	// Netmask as an address: 0.0.0.0.
	Netmask string `json:"netmask" yaml:"netmask"`
	// Gateway is the next hop.
	Gateway string `json:"gateway" yaml:"gateway"`
}

// Service is a resolver.
type Service struct {
	// Type is dns.
	Type string `json:"type" yaml:"type"`
	// Address of the resolver.
	Address string `json:"address" yaml:"address"`
}

// JSON is the document as a config drive carries it.
func (d Data) JSON() ([]byte, error) {
	// Its readers loop over all three: they must be there.
	if d.Links == nil {
		d.Links = []Link{}
	}
	if d.Networks == nil {
		d.Networks = []Network{}
	}
	if d.Services == nil {
		d.Services = []Service{}
	}
	out, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render network data: %w", err)
	}
	return append(out, '\n'), nil
}

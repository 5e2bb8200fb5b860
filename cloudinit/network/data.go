package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
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

// maxSize of a document that somebody wrote, in bytes.
const maxSize = 64 << 10

// netplan are keys that tell a document of another format.
var netplan = []string{"network", "version", "ethernets", "bonds", "vlans", "config"}

// Parse reads a network_data document in JSON or YAML and checks it. The error is an *Invalid, and quotes no value but
// names, addresses and types.
func Parse(field, text string) (Data, error) {
	if len(text) > maxSize {
		return Data{}, invalid(field, "it has %d bytes, the limit is %d", len(text), maxSize)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var d Data
	err := decode(decoder, &d)
	if err != nil || len(d.Links) == 0 {
		if other := foreignFormat(field, text); other != nil {
			return Data{}, other
		}
	}
	if err != nil {
		return Data{}, invalid(field, "it is not OpenStack's network_data (links, networks, services): %s", reason(err))
	}
	if err := decode(decoder, &yaml.Node{}); !errors.Is(err, io.EOF) {
		return Data{}, invalid(field, "it holds more than one document")
	}
	if err := d.Validate(field); err != nil {
		return Data{}, err
	}
	return d, nil
}

// foreignFormat recognises a network configuration of cloud-init or netplan. As network data of a config drive it would give
// the node no network at all, without an error.
func foreignFormat(field, text string) error {
	var top yaml.Node
	if err := decode(yaml.NewDecoder(strings.NewReader(text)), &top); err != nil {
		return invalid(field, "it is neither JSON nor YAML: %s", reason(err))
	}
	if len(top.Content) == 0 || top.Content[0].Kind != yaml.MappingNode {
		return invalid(field, "it must be a mapping with links, networks and services")
	}
	for i := 0; i < len(top.Content[0].Content); i += 2 {
		for _, key := range netplan {
			if top.Content[0].Content[i].Value == key {
				return invalid(field, "%s is a key of cloud-init's network-config or of netplan, of which a config drive's reader makes an empty network: write OpenStack's links, networks and services", key)
			}
		}
	}
	return nil
}

// decode reads one document. The parser has panicked on malformed text before; such text is an error like any other.
func decode(d *yaml.Decoder, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("yaml: the parser gave up")
		}
	}()
	return d.Decode(into)
}

// reason is what the parser says, without the values that it quotes.
func reason(err error) string {
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		first := typed.Errors[0]
		if strings.Contains(first, " not found in type ") {
			before, _, _ := strings.Cut(first, " in type ")
			return before
		}
		if line, _, ok := strings.Cut(first, ":"); ok {
			return line + " has a value of the wrong kind"
		}
	}
	if _, after, ok := strings.Cut(err.Error(), "yaml: line "); ok {
		line, _, _ := strings.Cut(after, ":")
		return fmt.Sprintf("see line %s", line)
	}
	return "it cannot be read"
}

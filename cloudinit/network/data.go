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

// Data is the network of a node in the form of OpenStack's network_data.json.
type Data struct {
	// Links are NICs, bonds and VLANs.
	Links []Link `json:"links" yaml:"links"`
	// Networks are the addresses of the links.
	Networks []Network `json:"networks" yaml:"networks"`
	// Services are the resolvers of the node.
	Services []Service `json:"services" yaml:"services"`
}

// Link is a NIC, a bond or a VLAN.
type Link struct {
	// ID by which other links and networks refer to the link.
	ID string `json:"id" yaml:"id"`
	// Name that OpenStack's tools write; ignored.
	Name string `json:"name,omitempty" yaml:"name"`
	// Type is phy, bond or vlan.
	Type string `json:"type" yaml:"type"`
	// MAC of a NIC, by which the operating system finds it, or of a bond.
	MAC string `json:"ethernet_mac_address,omitempty" yaml:"ethernet_mac_address"`
	// MTU in bytes; 0: the default of the driver.
	MTU int `json:"mtu,omitempty" yaml:"mtu"`
	// VIF is the ID of the interface in OpenStack; ignored.
	VIF string `json:"vif_id,omitempty" yaml:"vif_id"`
	// BondLinks are the ids of a bond's NICs.
	BondLinks []string `json:"bond_links,omitempty" yaml:"bond_links"`
	// BondMode in the spelling of the kernel: 802.3ad.
	BondMode string `json:"bond_mode,omitempty" yaml:"bond_mode"`
	// BondMIIMon is the interval of the link check in milliseconds.
	BondMIIMon int `json:"bond_miimon,omitempty" yaml:"bond_miimon"`
	// BondHash is the policy that distributes packets over the NICs: layer3+4.
	BondHash string `json:"bond_xmit_hash_policy,omitempty" yaml:"bond_xmit_hash_policy"`
	// VLANLink is the id of the link below a VLAN.
	VLANLink string `json:"vlan_link,omitempty" yaml:"vlan_link"`
	// VLANID is 1 to 4094.
	VLANID int `json:"vlan_id,omitempty" yaml:"vlan_id"`
	// VLANMAC is the MAC of a VLAN. cloud-init's converter requires it.
	VLANMAC string `json:"vlan_mac_address,omitempty" yaml:"vlan_mac_address"`
}

// Network gives a link an address, static or dynamic.
type Network struct {
	// ID of the network.
	ID string `json:"id" yaml:"id"`
	// Link is the ID of the link.
	Link string `json:"link" yaml:"link"`
	// Type is ipv4, ipv6, ipv4_dhcp, ipv6_dhcp, ipv6_slaac, ipv6_dhcpv6-stateful or ipv6_dhcpv6-stateless.
	Type string `json:"type" yaml:"type"`
	// Address of a network with a static address.
	Address string `json:"ip_address,omitempty" yaml:"ip_address"`
	// Netmask in the form of an address; empty: the prefix length is in Address.
	Netmask string `json:"netmask,omitempty" yaml:"netmask"`
	// Routes through the link.
	Routes []Route `json:"routes,omitempty" yaml:"routes"`
	// NetworkID is the ID of the network in OpenStack; ignored.
	NetworkID string `json:"network_id,omitempty" yaml:"network_id"`
}

// Route is a route to another network.
type Route struct {
	// Network is the destination: 0.0.0.0.
	Network string `json:"network" yaml:"network"`
	// Netmask of the destination in the form of an address: 0.0.0.0.
	Netmask string `json:"netmask" yaml:"netmask"`
	// Gateway is the next hop.
	Gateway string `json:"gateway" yaml:"gateway"`
}

// Service is a DNS resolver.
type Service struct {
	// Type is always dns.
	Type string `json:"type" yaml:"type"`
	// Address of the resolver.
	Address string `json:"address" yaml:"address"`
}

// JSON returns the document that a config drive has as network_data.json.
func (d Data) JSON() ([]byte, error) {
	// Its readers loop over all three members, so none of them may be missing.
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

// maxSize is the limit of a document that a user wrote, in bytes.
const maxSize = 64 << 10

// netplanKeys are top-level keys of cloud-init's network-config and of netplan.
var netplanKeys = []string{"network", "version", "ethernets", "bonds", "vlans", "config"}

// Parse reads a network_data document in JSON or YAML and validates it. field begins the names of fields in errors. The error is an
// *Invalid, and of the values it quotes only names, addresses and types.
func Parse(field, text string) (Data, error) {
	if len(text) > maxSize {
		return Data{}, invalid(field, "it has %d bytes, the limit is %d", len(text), maxSize)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var d Data
	err := decode(decoder, &d)
	if err != nil || len(d.Links) == 0 {
		if other := foreignFormatError(field, text); other != nil {
			return Data{}, other
		}
	}
	if err != nil {
		return Data{}, invalid(field, "it is not OpenStack's network_data (links, networks, services): %s", parserMessage(err))
	}
	if err := decode(decoder, &yaml.Node{}); !errors.Is(err, io.EOF) {
		return Data{}, invalid(field, "it holds more than one document")
	}
	if err := d.Validate(field); err != nil {
		return Data{}, err
	}
	return d, nil
}

// foreignFormatError returns an error when the document is a network configuration of cloud-init or netplan, or no mapping at all,
// and nil otherwise. The reader of a config drive would ignore such a document without an error, and the node would have no network.
func foreignFormatError(field, text string) error {
	var top yaml.Node
	if err := decode(yaml.NewDecoder(strings.NewReader(text)), &top); err != nil {
		return invalid(field, "it is neither JSON nor YAML: %s", parserMessage(err))
	}
	if len(top.Content) == 0 || top.Content[0].Kind != yaml.MappingNode {
		return invalid(field, "it must be a mapping with links, networks and services")
	}
	for i := 0; i < len(top.Content[0].Content); i += 2 {
		for _, key := range netplanKeys {
			if top.Content[0].Content[i].Value == key {
				return invalid(field, "%s is a key of cloud-init's network-config or of netplan, of which a config drive's reader makes an empty network: write OpenStack's links, networks and services", key)
			}
		}
	}
	return nil
}

// decode reads one document. A panic of the parser, which malformed text has caused before, becomes an error.
func decode(d *yaml.Decoder, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("yaml: the parser gave up")
		}
	}()
	return d.Decode(into)
}

// parserMessage returns the parser's message without the values that it quotes.
func parserMessage(err error) string {
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

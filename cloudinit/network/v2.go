package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// config is cloud-init's network-config version 2, which has the format of netplan.
type config struct {
	Version   int                         `yaml:"version"`
	Ethernets map[string]*interfaceConfig `yaml:"ethernets,omitempty"`
	Bonds     map[string]*interfaceConfig `yaml:"bonds,omitempty"`
	VLANs     map[string]*interfaceConfig `yaml:"vlans,omitempty"`
}

type interfaceConfig struct {
	Match      *match        `yaml:"match,omitempty"`
	SetName    string        `yaml:"set-name,omitempty"`
	Interfaces []string      `yaml:"interfaces,omitempty"`
	Parameters *bond         `yaml:"parameters,omitempty"`
	ID         int           `yaml:"id,omitempty"`
	Link       string        `yaml:"link,omitempty"`
	MAC        string        `yaml:"macaddress,omitempty"`
	MTU        int           `yaml:"mtu,omitempty"`
	DHCP4      bool          `yaml:"dhcp4,omitempty"`
	DHCP6      bool          `yaml:"dhcp6,omitempty"`
	AcceptRA   *bool         `yaml:"accept-ra,omitempty"`
	Addresses  []string      `yaml:"addresses,omitempty"`
	Gateway6   string        `yaml:"gateway6,omitempty"`
	Routes     []routeConfig `yaml:"routes,omitempty"`
	Resolvers  *nameservers  `yaml:"nameservers,omitempty"`
}

type match struct {
	MAC string `yaml:"macaddress"`
}

type bond struct {
	Mode   string `yaml:"mode"`
	MIIMon int    `yaml:"mii-monitor-interval,omitempty"`
	Hash   string `yaml:"transmit-hash-policy,omitempty"`
}

type routeConfig struct {
	To  string `yaml:"to"`
	Via string `yaml:"via"`
}

type nameservers struct {
	Addresses []string `yaml:"addresses"`
}

// NetworkConfig returns cloud-init's network-config version 2, for a NoCloud seed. It renames each NIC to its name of
// InterfaceNames, because the renderers of some distributions find a NIC only by its name.
func (d Data) NetworkConfig() ([]byte, error) {
	names := d.InterfaceNames()
	c := config{Version: 2, Ethernets: map[string]*interfaceConfig{}, Bonds: map[string]*interfaceConfig{}, VLANs: map[string]*interfaceConfig{}}
	byID := map[string]*interfaceConfig{}
	for _, l := range d.Links {
		n := &interfaceConfig{MTU: l.MTU}
		name := names[l.ID]
		switch l.Type {
		case LinkBond:
			n.MAC, n.Parameters = l.MAC, &bond{Mode: l.BondMode, MIIMon: l.BondMIIMon, Hash: l.BondHash}
			for _, id := range l.BondLinks {
				n.Interfaces = append(n.Interfaces, names[id])
			}
			c.Bonds[name] = n
		case LinkVLAN:
			n.ID, n.Link, n.MAC = l.VLANID, names[l.VLANLink], l.VLANMAC
			c.VLANs[name] = n
		default:
			n.Match, n.SetName = &match{MAC: strings.ToLower(l.MAC)}, name
			c.Ethernets[name] = n
		}
		byID[l.ID] = n
	}
	for _, n := range d.Networks {
		if err := byID[n.Link].add(n, d.Services); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("render network-config: %w", err)
	}
	return out.Bytes(), nil
}

// defaultIPv6 is the destination of a default route of IPv6.
var defaultIPv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)

// add adds the addresses, routes and resolvers of a network.
func (n *interfaceConfig) add(of Network, services []Service) error {
	yes := true
	switch of.Type {
	case "ipv4_dhcp":
		n.DHCP4 = true
	case "ipv6_dhcp", "ipv6_dhcpv6-stateful", "ipv6_dhcpv6-stateless":
		n.DHCP6, n.AcceptRA = true, &yes
	case "ipv6_slaac":
		n.AcceptRA = &yes
	default:
		p, err := of.Prefix()
		if err != nil {
			return err
		}
		n.Addresses = append(n.Addresses, p.String())
	}
	for _, r := range of.Routes {
		to, err := parsePrefix(r.Network, r.Netmask)
		if err != nil {
			return err
		}
		if to == defaultIPv6 && n.Gateway6 == "" {
			// Where it does not pass the text to netplan, cloud-init 22.4 makes a route to ::/64 of a route to ::/0.
			n.Gateway6 = r.Gateway
			continue
		}
		n.Routes = append(n.Routes, routeConfig{To: to.String(), Via: r.Gateway})
	}
	if len(services) > 0 && n.Resolvers == nil {
		n.Resolvers = &nameservers{}
		for _, s := range services {
			n.Resolvers.Addresses = append(n.Resolvers.Addresses, s.Address)
		}
	}
	return nil
}

// namePattern matches names that the kernel accepts for an interface and that need no quotes.
var namePattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,14}$`)

// InterfaceNames returns an interface name for each link, by the ID of the link. The name is the ID when the kernel accepts that as
// a name, and otherwise the kind of the link with a number: bond0.
func (d Data) InterfaceNames() map[string]string {
	out, taken := map[string]string{}, map[string]bool{}
	for _, l := range d.Links {
		if namePattern.MatchString(l.ID) {
			out[l.ID], taken[l.ID] = l.ID, true
		}
	}
	for _, l := range d.Links {
		if out[l.ID] != "" {
			continue
		}
		prefix := map[string]string{LinkBond: "bond", LinkVLAN: "vlan"}[l.Type]
		if prefix == "" {
			prefix = "nic"
		}
		for i := 0; out[l.ID] == ""; i++ {
			if name := prefix + strconv.Itoa(i); !taken[name] {
				out[l.ID], taken[name] = name, true
			}
		}
	}
	return out
}

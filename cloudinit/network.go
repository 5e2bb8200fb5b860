package cloudinit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// network_data.json as OpenStack specifies it.
type networkData struct {
	Links    []link    `json:"links"`
	Networks []network `json:"networks"`
	Services []service `json:"services"`
}

type link struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	MAC  string `json:"ethernet_mac_address"`
}

type network struct {
	ID      string  `json:"id"`
	Link    string  `json:"link"`
	Type    string  `json:"type"`
	Address string  `json:"ip_address,omitempty"`
	Netmask string  `json:"netmask,omitempty"`
	Routes  []route `json:"routes,omitempty"`
}

type route struct {
	Network string `json:"network"`
	Netmask string `json:"netmask"`
	Gateway string `json:"gateway"`
}

type service struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// renderNetworkData configures the NIC that the host boots from, found by its MAC: with the host's address, else by DHCP.
func renderNetworkData(host HostInput, spec *v1alpha1.NetworkSpec) ([]byte, error) {
	if host.BootMAC == "" {
		if host.IPAddress != "" {
			return nil, &NetworkInvalid{Field: "the host's bootMACAddress", Message: "it is empty, and the host's address " + host.IPAddress + " cannot be given to a NIC that is not known"}
		}
		return nil, nil
	}
	if spec == nil {
		spec = &v1alpha1.NetworkSpec{}
	}
	n := network{ID: "network0", Link: "boot0", Type: dhcp(spec.CIDR)}
	if host.IPAddress != "" {
		static, err := staticNetwork(host.IPAddress, spec.CIDR)
		if err != nil {
			return nil, err
		}
		n = static
	}
	data := networkData{
		Links:    []link{{ID: "boot0", Type: "phy", MAC: strings.ToLower(host.BootMAC)}},
		Networks: []network{n}, Services: []service{},
	}
	for _, s := range spec.DNSServers {
		data.Services = append(data.Services, service{Type: "dns", Address: s})
	}
	out, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render network data: %w", err)
	}
	return append(out, '\n'), nil
}

// dhcp is the kind of DHCP of the provider's network.
func dhcp(cidr string) string {
	if gateway, err := netip.ParsePrefix(cidr); err == nil && gateway.Addr().Is6() {
		return "ipv6_dhcp"
	}
	return "ipv4_dhcp"
}

// staticNetwork gives the NIC an address; cidr is the gateway with the prefix length.
func staticNetwork(address, cidr string) (network, error) {
	field := "the host's annotation " + v1alpha1.AnnotationIPAddress
	var gateway netip.Prefix
	if cidr != "" {
		g, err := netip.ParsePrefix(cidr)
		if err != nil {
			return network{}, &NetworkInvalid{Field: "network.cidr", Message: fmt.Sprintf("%q must be the gateway's address with a prefix length, such as 10.20.4.1/22", cidr)}
		}
		gateway = g
	}
	own, err := ownPrefix(address, gateway)
	if err != nil {
		return network{}, &NetworkInvalid{Field: field, Message: err.Error()}
	}
	out := network{ID: "network0", Link: "boot0", Type: "ipv4", Address: own.Addr().String(), Netmask: netmask(own)}
	everywhere := route{Network: "0.0.0.0", Netmask: "0.0.0.0"}
	if own.Addr().Is6() {
		out.Type = "ipv6"
		everywhere = route{Network: "::", Netmask: "::"}
	}
	if gateway.IsValid() {
		if err := fits(own, gateway); err != nil {
			return network{}, &NetworkInvalid{Field: field, Message: err.Error()}
		}
		everywhere.Gateway = gateway.Addr().String()
		out.Routes = []route{everywhere}
	}
	return out, nil
}

func ownPrefix(address string, gateway netip.Prefix) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(address); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q must be an address such as 10.20.4.17/22", address)
	}
	if !gateway.IsValid() {
		return netip.Prefix{}, fmt.Errorf("%s has no prefix length, and the NodeProvider has no network.cidr to take it from", address)
	}
	return netip.PrefixFrom(a, gateway.Bits()), nil
}

func fits(own, gateway netip.Prefix) error {
	switch {
	case own.Addr().Is4() != gateway.Addr().Is4():
		return fmt.Errorf("%s and the gateway %s are of different IP versions", own, gateway.Addr())
	case !own.Masked().Contains(gateway.Addr()):
		return fmt.Errorf("the gateway %s of network.cidr is not in the network of %s, so the node could not reach it", gateway.Addr(), own)
	case own.Addr() == gateway.Addr():
		return fmt.Errorf("%s is the gateway's own address", own.Addr())
	case own.Addr().Is4() && own.Bits() < 31 && (own.Addr() == own.Masked().Addr() || own.Addr() == last(own)):
		return fmt.Errorf("%s is the network's or the broadcast address of %s", own.Addr(), own.Masked())
	}
	return nil
}

// last is the last address of an IPv4 network.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

func netmask(p netip.Prefix) string {
	b := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a.String()
}

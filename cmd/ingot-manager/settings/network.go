package settings

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/leases"
)

// Network answers servers on the provisioning network: DHCP, TFTP and router advertisements. Only known hosts are answered.
type Network struct {
	// Interface is the network interface of the provisioning network on the machine that the boot service runs on. Without one none of the following is
	// served, and a DHCP server of the site sends servers to iPXE and iPXE to the boot document.
	Interface string `json:"interface"`
	// Address is the boot service's own IPv4 address on the interface; empty: the first that the interface has.
	Address string `json:"address"`
	// SharedAddress is an address with the length of its network, 10.20.0.2/23, to which boot.url leads: the boot service adds it to
	// Interface on one node, and to another one when that fails. Empty: something else has boot.url lead to a replica.
	SharedAddress string `json:"sharedAddress"`
	// DHCP is Serve, where the boot service leases addresses; Proxy, where another DHCP server leases them and the boot service says what is booted; or
	// Off.
	DHCP DHCPMode `json:"dhcp"`
	// Subnets are those whose addresses are leased. A request that comes by a relay agent belongs to the subnet of the relay's address, any other to
	// that of Address.
	Subnets []Subnet `json:"subnets"`
	// Relays are the addresses of the relay agents whose requests are answered, as the relay names itself (giaddr). Those by other relays are not answered.
	Relays []string `json:"relays"`
	// LeaseTime is how long a lease is valid.
	LeaseTime metav1.Duration `json:"leaseTime"`
	// TFTP serves the boot programs to firmware that cannot load them by HTTP.
	TFTP bool `json:"tftp"`
	// RouterAdvertisements answer iPXE, which otherwise waits 16 seconds for an IPv6 router where there is none. They offer no route and no address.
	RouterAdvertisements bool `json:"routerAdvertisements"`
	// Programs is the directory with iPXE's programs, as distributions' packages have it.
	Programs string `json:"programs"`
}

// DHCPMode is what is answered to DHCP requests.
type DHCPMode string

// Values of DHCPMode.
const (
	DHCPServe DHCPMode = "Serve"
	DHCPProxy DHCPMode = "Proxy"
	DHCPOff   DHCPMode = "Off"
)

// Subnet is a network whose addresses are leased.
type Subnet struct {
	// Prefix is the network: 10.20.0.0/23.
	Prefix string `json:"prefix"`
	// First and Last are the range of addresses that are leased. A host keeps its address as long as it is registered.
	First string `json:"first"`
	Last  string `json:"last"`
	// Router is the default gateway; empty: none.
	Router string `json:"router"`
	// DNS are the name servers.
	DNS []string `json:"dns"`
}

// ParsedSubnet is a Subnet whose texts are parsed.
type ParsedSubnet struct {
	Prefix netip.Prefix
	Range  leases.Range
	// Router is invalid where there is none.
	Router netip.Addr
	DNS    []netip.Addr
}

func defaultNetwork() Network {
	return Network{
		DHCP: DHCPOff, Subnets: []Subnet{}, Relays: []string{}, LeaseTime: metav1.Duration{Duration: time.Hour}, TFTP: true, RouterAdvertisements: true, Programs: "/usr/lib/ipxe",
	}
}

// minLeaseTime is longer than any boot's way from the firmware to the agent, which renews its lease.
const minLeaseTime = 5 * time.Minute

// validate returns what makes no sense.
func (n Network) validate() []error {
	var errs []error
	refuse := func(field, got, want string) {
		errs = append(errs, fmt.Errorf("boot.network.%s: got %q; expected %s", field, got, want))
	}
	switch n.DHCP {
	case DHCPServe, DHCPProxy, DHCPOff:
	default:
		refuse("dhcp", string(n.DHCP), "Serve, Proxy or Off")
	}
	if n.DHCP != DHCPOff && n.Interface == "" {
		refuse("interface", "", "the interface of the provisioning network, because boot.network.dhcp is "+string(n.DHCP))
	}
	if (n.DHCP == DHCPServe) != (len(n.Subnets) > 0) {
		refuse("subnets", fmt.Sprint(len(n.Subnets)), "one or more where boot.network.dhcp is Serve, and none elsewhere")
	}
	if n.LeaseTime.Duration < minLeaseTime {
		refuse("leaseTime", n.LeaseTime.Duration.String(), "at least "+minLeaseTime.String())
	}
	if address, err := netip.ParseAddr(n.Address); n.Address != "" && (err != nil || !address.Is4()) {
		refuse("address", n.Address, "an IPv4 address of boot.network.interface, or nothing")
	}
	if _, err := n.ParseRelays(); err != nil {
		errs = append(errs, err)
	}
	return append(errs, n.validateSubnets()...)
}

// ParseRelays returns the addresses of the relay agents.
func (n Network) ParseRelays() ([]netip.Addr, error) {
	var out []netip.Addr
	for i, text := range n.Relays {
		address, err := netip.ParseAddr(text)
		if err != nil || !address.Is4() {
			return nil, fmt.Errorf("boot.network.relays[%d]: got %q; expected an IPv4 address", i, text)
		}
		out = append(out, address)
	}
	return out, nil
}

func (n Network) validateSubnets() []error {
	var errs []error
	var parsed []ParsedSubnet
	for i, subnet := range n.Subnets {
		p, err := subnet.Parse()
		if err != nil {
			errs = append(errs, fmt.Errorf("boot.network.subnets[%d]: %w", i, err))
			continue
		}
		for _, other := range parsed {
			if other.Prefix.Overlaps(p.Prefix) {
				errs = append(errs, fmt.Errorf("boot.network.subnets[%d].prefix: got %q; expected one that does not overlap %s", i, subnet.Prefix, other.Prefix))
			}
		}
		parsed = append(parsed, p)
		if field, address := n.takenAddressIn(subnet, p.Range); field != "" {
			errs = append(errs, fmt.Errorf("boot.network.subnets[%d]: got the range %s, which has %s, the address of %s; expected one without it", i, p.Range, address, field))
		}
	}
	return errs
}

// takenAddressIn returns the router's or the boot service's own address in the range, and its field; "" when there is none. Without the check a server
// is leased the address that it is to boot from.
func (n Network) takenAddressIn(subnet Subnet, r leases.Range) (string, netip.Addr) {
	shared, _, _ := strings.Cut(n.SharedAddress, "/")
	for _, taken := range []struct{ field, text string }{{"its router", subnet.Router}, {"boot.network.address", n.Address}, {"boot.network.sharedAddress", shared}} {
		if address, err := netip.ParseAddr(taken.text); err == nil && r.HasAddress(address) {
			return taken.field, address
		}
	}
	return "", netip.Addr{}
}

// Parse returns the subnet with its texts parsed. The error names the field.
func (s Subnet) Parse() (ParsedSubnet, error) {
	var out ParsedSubnet
	var err error
	if out.Prefix, err = netip.ParsePrefix(s.Prefix); err != nil || !out.Prefix.Addr().Is4() || out.Prefix != out.Prefix.Masked() {
		return out, fmt.Errorf("prefix: got %q; expected an IPv4 network such as 10.20.0.0/23", s.Prefix)
	}
	for _, a := range []struct {
		field, text string
		into        *netip.Addr
	}{{"first", s.First, &out.Range.First}, {"last", s.Last, &out.Range.Last}, {"router", s.Router, &out.Router}} {
		if a.text == "" && a.field == "router" {
			continue
		}
		if *a.into, err = netip.ParseAddr(a.text); err != nil || !out.Prefix.Contains(*a.into) {
			return out, fmt.Errorf("%s: got %q; expected an address of %s", a.field, a.text, out.Prefix)
		}
	}
	for _, text := range s.DNS {
		address, err := netip.ParseAddr(text)
		if err != nil || !address.Is4() {
			return out, fmt.Errorf("dns: got %q; expected IPv4 addresses", text)
		}
		out.DNS = append(out.DNS, address)
	}
	return out, out.Range.Validate(out.Prefix)
}

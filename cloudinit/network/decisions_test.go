package network

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// compareFile compares the text with a file in testdata.
func compareFile(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite it with -update:\n%s", path, diff)
	}
}

// plain is a node with a VLAN on a NIC and a network of every dynamic type.
const plain = `
links:
- {id: eno1, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01", mtu: 9000}
- {id: eno2, type: phy, ethernet_mac_address: "52:54:00:aa:bb:02"}
- {id: eno3, type: phy, ethernet_mac_address: "52:54:00:aa:bb:03"}
- {id: eno4, type: phy, ethernet_mac_address: "52:54:00:aa:bb:04"}
- {id: eno5, type: phy, ethernet_mac_address: "52:54:00:aa:bb:05"}
- {id: bond0, type: bond, bond_links: [eno5], bond_mode: active-backup, bond_miimon: 1}
- {id: v100, type: vlan, vlan_link: eno1, vlan_id: 100, vlan_mac_address: "52:54:00:aa:bb:11"}
- {id: v200, type: vlan, vlan_link: bond0, vlan_id: 200, vlan_mac_address: "52:54:00:aa:bb:12"}
networks:
- {id: n0, link: eno1, type: ipv4_dhcp}
- {id: n1, link: eno1, type: ipv6_dhcp}
- {id: n2, link: eno2, type: ipv6_slaac}
- {id: n3, link: eno3, type: ipv6_dhcpv6-stateful}
- {id: n4, link: v100, type: ipv4, ip_address: 10.1.0.2/24, routes: [{network: 10.2.0.0, netmask: 255.255.0.0, gateway: 10.1.0.1}, {network: 10.3.0.0, netmask: 255.255.0.0, gateway: 10.1.0.1}]}
- {id: n5, link: v100, type: ipv4, ip_address: 10.1.0.3/24}
- {id: n6, link: v100, type: ipv6, ip_address: "fd00::2", netmask: "ffff:ffff:ffff:ffff::", routes: [{network: "::", netmask: "::", gateway: "fd00::1"}, {network: "fd01::", netmask: "ffff::", gateway: "fd00::3"}]}
- {id: n7, link: eno4, type: ipv6_dhcpv6-stateless}
services:
- {type: dns, address: 10.20.0.1}
- {type: dns, address: "fd00::53"}
- {type: dns, address: 10.20.0.2}
`

func TestTheFilesOfEveryProgramConfigureTheSameNetwork(t *testing.T) {
	for name, text := range map[string]string{"bonded": bonded, "plain": plain} {
		d, err := Parse("the network", text)
		if err != nil {
			t.Fatal(err)
		}
		config, err := d.NetworkConfig()
		if err != nil {
			t.Fatal(err)
		}
		compareFile(t, name+".network-config.yaml", string(config))
		for program, files := range map[string]func() ([]v1alpha1.NodeFile, error){"networkd": d.Networkd, "networkmanager": d.NetworkManager} {
			list, err := files()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, f := range list {
				fmt.Fprintf(&out, "# %s %s\n%s\n", f.Path, f.Mode, f.Content)
			}
			compareFile(t, name+"."+program+".txt", out.String())
		}
	}
}

func TestEveryRefusalOfADocumentSaysWhatIsWrong(t *testing.T) {
	const nic = `{id: a, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01"}`
	const bondOfA = `{id: c, type: bond, bond_mode: active-backup, bond_links: [a]}`
	withLinks := func(links ...string) string {
		return "links: [" + strings.Join(append([]string{nic}, links...), ", ") + "]"
	}
	withNetwork := func(network string) string { return withLinks() + "\nnetworks: [{id: n, " + network + "}]" }
	withMTU := func(mtu int) string {
		return fmt.Sprintf(`links: [{id: a, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01", mtu: %d}]`, mtu)
	}
	vlan := func(settings string) string { return withLinks(`{id: v, type: vlan, ` + settings + `}`) }
	const vlanMAC = `vlan_mac_address: "52:54:00:aa:bb:01"`
	var out strings.Builder
	for _, c := range []struct{ name, text string }{
		{"empty", ""}, {"no YAML", "a: ["}, {"a list", "[]"}, {"a list of mappings", "[{links: []}]"}, {"a word", "word"},
		{"netplan", "network: {version: 2}"}, {"netplan after another key", "renderer: x\nethernets: {}"}, {"a netplan key as a value", "renderer: ethernets"},
		{"network-config", "version: 2\nethernets: {}"}, {"netplan beside links", withLinks() + "\nbonds: {}"}, {"a key of netplan that is in a link", `links: [{id: a, vlans: 1}]`},
		{"no links", "links: []\nnetworks: []"}, {"two documents", withLinks() + "\n---\n{}"}, {"an unknown key", withLinks() + "\nnetwroks: []"},
		{"a text for a number", `links: [{id: a, type: phy, mtu: secret}]`}, {"a document of the greatest size", withLinks() + "\n#" + strings.Repeat("x", maxSize-len(withLinks())-2)},
		{"a document that is too large", withLinks() + "\n#" + strings.Repeat("x", maxSize-len(withLinks())-1)},
		{"an id with a space", `links: [{id: "a b", type: phy}]`}, {"an id twice", withLinks(nic)},
		{"a NIC without a MAC", `links: [{id: a, type: phy}]`}, {"a short MAC", `links: [{id: a, type: phy, ethernet_mac_address: "52:54"}]`},
		{"an unknown type of link", `links: [{id: a, type: tap}]`},
		{"MTU 1", withMTU(1)}, {"MTU 575", withMTU(575)}, {"MTU 576", withMTU(576)}, {"MTU 65535", withMTU(65535)}, {"MTU 65536", withMTU(65536)}, {"MTU -1", withMTU(-1)},
		{"a bond without a mode", withLinks(`{id: c, type: bond, bond_links: [a]}`)}, {"a bond without NICs", withLinks(`{id: c, type: bond, bond_mode: active-backup}`)},
		{"a bond with a negative interval", withLinks(`{id: c, type: bond, bond_mode: active-backup, bond_links: [a], bond_miimon: -1}`)},
		{"a bond of itself", withLinks(`{id: c, type: bond, bond_mode: active-backup, bond_links: [c]}`)},
		{"a NIC twice in a bond", withLinks(`{id: c, type: bond, bond_mode: active-backup, bond_links: [a, a]}`)},
		{"a NIC in two bonds", withLinks(bondOfA, strings.Replace(bondOfA, "id: c", "id: d", 1))},
		{"VLAN 0", vlan(`vlan_id: 0, vlan_link: a, ` + vlanMAC)}, {"VLAN 1", vlan(`vlan_id: 1, vlan_link: a, ` + vlanMAC)},
		{"VLAN 4094", vlan(`vlan_id: 4094, vlan_link: a, ` + vlanMAC)}, {"VLAN 4095", vlan(`vlan_id: 4095, vlan_link: a, ` + vlanMAC)},
		{"a VLAN without a MAC", vlan(`vlan_id: 4, vlan_link: a`)}, {"a VLAN on an unknown link", vlan(`vlan_id: 4, vlan_link: x, ` + vlanMAC)},
		{"a VLAN on itself", vlan(`vlan_id: 4, vlan_link: v, ` + vlanMAC)},
		{"a VLAN on a VLAN", withLinks(`{id: v, type: vlan, vlan_id: 4, vlan_link: a, `+vlanMAC+`}`, `{id: w, type: vlan, vlan_id: 5, vlan_link: v, `+vlanMAC+`}`)},
		{"a VLAN on a NIC of a bond", withLinks(bondOfA, `{id: v, type: vlan, vlan_id: 4, vlan_link: a, `+vlanMAC+`}`)},
		{"a network on an unknown link", withNetwork("link: x, type: ipv4_dhcp")}, {"a network on a NIC of a bond", withLinks(bondOfA) + "\nnetworks: [{id: n, link: a, type: ipv4_dhcp}]"},
		{"an unknown type of network", withNetwork("link: a, type: dhcp")}, {"DHCP with an address", withNetwork("link: a, type: ipv4_dhcp, ip_address: 10.0.0.1")},
		{"an address without a prefix length", withNetwork("link: a, type: ipv4, ip_address: 10.0.0.1")}, {"no address", withNetwork("link: a, type: ipv4, netmask: 255.0.0.0")},
		{"an address of the other IP version", withNetwork(`link: a, type: ipv4, ip_address: "fd00::1/64"`)}, {"a netmask with a hole", withNetwork("link: a, type: ipv4, ip_address: 10.0.0.1, netmask: 255.0.255.0")},
		{"a netmask of the other IP version", withNetwork(`link: a, type: ipv4, ip_address: 10.0.0.1, netmask: "ffff::"`)}, {"a netmask that is no address", withNetwork("link: a, type: ipv4, ip_address: 10.0.0.1, netmask: x")},
		{"an address with a zone", withNetwork(`link: a, type: ipv6, ip_address: "fe80::1%eth0", netmask: "ffff::"`)},
		{"a route without a netmask", withNetwork("link: a, type: ipv4_dhcp, routes: [{network: 10.0.0.0, gateway: 10.0.0.1}]")},
		{"a route without a gateway", withNetwork("link: a, type: ipv4_dhcp, routes: [{network: 10.0.0.0, netmask: 255.0.0.0}]")},
		{"a gateway of the other IP version", withNetwork(`link: a, type: ipv4_dhcp, routes: [{network: 10.0.0.0, netmask: 255.0.0.0, gateway: "fd00::1"}]`)},
		{"a service that is not DNS", withLinks() + "\nservices: [{type: ntp, address: 10.0.0.1}]"}, {"a resolver without an address", withLinks() + "\nservices: [{type: dns, address: x}]"},
	} {
		_, err := Parse("the network", c.text)
		fmt.Fprintf(&out, "%s\n    %v\n", c.name, err)
	}
	compareFile(t, "refusals.txt", out.String())
}

func TestTheNetworkOfTheNICThatAHostBootsFrom(t *testing.T) {
	const mac = "52:54:00:AA:BB:01"
	var out strings.Builder
	for _, b := range []Boot{
		{}, {Address: "10.0.0.2/24"}, {MAC: mac}, {MAC: mac, CIDR: "10.0.0.1/24"}, {MAC: mac, CIDR: "fd00::1/64", Resolvers: []string{"fd00::53", "10.0.0.53"}}, {MAC: mac, CIDR: "x"},
		{MAC: mac, Resolvers: []string{"x"}},
		{MAC: mac, Address: "10.0.0.2/24"}, {MAC: mac, Address: "10.0.0.2"}, {MAC: mac, Address: "x", CIDR: "10.0.0.1/24"}, {MAC: mac, Address: "fe80::1%eth0", CIDR: "fd00::1/64"},
		{MAC: mac, Address: "10.0.0.2", CIDR: "x"}, {MAC: mac, Address: "10.0.0.2", CIDR: "10.0.0.1/24"}, {MAC: mac, Address: "10.0.0.2/25", CIDR: "10.0.0.1/24"},
		{MAC: mac, Address: "10.0.0.2", CIDR: "fd00::1/64"}, {MAC: mac, Address: "10.0.0.2", CIDR: "fd00::1/32"}, {MAC: mac, Address: "10.0.0.2/24", CIDR: "fd00::1/64"}, {MAC: mac, Address: "fd00::2", CIDR: "10.0.0.1/24"},
		{MAC: mac, Address: "fd00::2", CIDR: "fd00::1/64"}, {MAC: mac, Address: "fd00::", CIDR: "fd00::1/64"},
		{MAC: mac, Address: "10.0.1.2/24", CIDR: "10.0.0.1/24"}, {MAC: mac, Address: "10.0.0.1", CIDR: "10.0.0.1/24"}, {MAC: mac, Address: "10.0.0.0", CIDR: "10.0.0.1/24"}, {MAC: mac, Address: "10.0.0.255", CIDR: "10.0.0.1/24"},
		{MAC: mac, Address: "10.0.0.0", CIDR: "10.0.0.1/31"}, {MAC: mac, Address: "10.0.0.0", CIDR: "10.0.0.1/30"}, {MAC: mac, Address: "10.0.0.3", CIDR: "10.0.0.1/30"},
		{MAC: mac, Address: "10.0.0.2/24", Gateway: "10.0.0.3"}, {MAC: mac, Address: "10.0.0.2", Gateway: "10.0.0.3"}, {MAC: mac, Address: "10.0.0.2", Gateway: "10.0.0.3", CIDR: "10.0.0.1/24"},
		{MAC: mac, Address: "10.0.0.2/24", Gateway: "x"}, {MAC: mac, Address: "10.0.0.2/16", Gateway: "10.0.9.3", CIDR: "10.0.0.1/24"},
		{MAC: mac, Ranges: "10.0.0.2-10.0.0.9"}, {MAC: mac, Address: "10.0.0.2/24", Ranges: "10.0.0.2-10.0.0.9"}, {MAC: mac, Address: "10.0.0.1/24", Ranges: "10.0.0.2-10.0.0.9"}, {MAC: mac, Address: "10.0.0.1/24", Ranges: "x"},
	} {
		d, ok, err := b.Data()
		fmt.Fprintf(&out, "MAC %q, address %q, gateway %q, CIDR %q, ranges %q, resolvers %q\n    %t %+v %v\n", b.MAC, b.Address, b.Gateway, b.CIDR, b.Ranges, b.Resolvers, ok, d, err)
		var bad *Invalid
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("%+v: the error is a %T, want *Invalid", b, err)
		}
	}
	compareFile(t, "boot.txt", out.String())
}

func TestNetworkDataHasAllItsMembers(t *testing.T) {
	got, err := Data{}.JSON()
	if want := "{\n  \"links\": [],\n  \"networks\": [],\n  \"services\": []\n}\n"; string(got) != want || err != nil {
		t.Errorf("got %s, error %v", got, err)
	}
}

func TestAddressRangesAreRefusedWithTheReason(t *testing.T) {
	many := strings.Repeat("10.0.0.1,", maxRanges)
	distinct := make([]string, maxRanges)
	for i := range distinct {
		distinct[i] = fmt.Sprintf("10.0.%d.1", i)
	}
	if r, err := ParseRanges(strings.Join(distinct, ",")); err != nil || len(r) != maxRanges {
		t.Errorf("%d ranges: %v", maxRanges, err)
	}
	for _, text := range []string{"10.0.0.5-10.0.0.9,10.0.0.1-10.0.0.4", "fd00::1-fd00::9,10.0.0.1", "10.0.0.1,fd00::1", "10.0.0.1-10.0.0.4,10.0.0.5-10.0.0.9"} {
		if _, err := ParseRanges(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	mustBeTwo := func(text string) string {
		return fmt.Sprintf("the address ranges: %q must be two addresses such as 10.20.4.17-10.20.4.99", text)
	}
	for text, want := range map[string]string{
		many + "10.0.0.1":                     "the address ranges: there are 65, the limit is 64",
		"x-10.0.0.1":                          mustBeTwo("x-10.0.0.1"),
		"10.0.0.1-x":                          mustBeTwo("10.0.0.1-x"),
		"fe80::1%eth0-fe80::2":                mustBeTwo("fe80::1%eth0-fe80::2"),
		"fe80::1-fe80::2%eth0":                mustBeTwo("fe80::1-fe80::2%eth0"),
		"10.0.0.1-10.0.0.5,10.0.0.5":          `the address ranges: "10.0.0.5" overlaps 10.0.0.1-10.0.0.5`,
		"10.0.0.5-10.0.0.9,10.0.0.1-10.0.0.5": `the address ranges: "10.0.0.1-10.0.0.5" overlaps 10.0.0.5-10.0.0.9`,
		"10.0.0.1-fd00::1":                    `the address ranges: "10.0.0.1-fd00::1" must go from a lower address to a higher one of the same IP version`,
	} {
		if _, err := ParseRanges(text); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	below, err := ParseRanges("10.20.3.250-10.20.4.9")
	if err != nil {
		t.Fatal(err)
	}
	if err := below.CheckWithin(netip.MustParsePrefix("10.20.4.1/22")); err == nil || !strings.Contains(err.Error(), "is not in the network 10.20.4.0/22") {
		t.Errorf("a range that begins before the network: %v", err)
	}
}

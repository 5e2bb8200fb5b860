package network

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bonded is a node with two NICs in a bond, a VLAN on it, and a NIC of its own for storage.
const bonded = `
links:
- {id: eno1, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01", mtu: 9000}
- {id: eno2, type: phy, ethernet_mac_address: "52:54:00:aa:bb:02", mtu: 9000}
- {id: storage, type: phy, ethernet_mac_address: "52:54:00:AA:BB:03"}
- {id: bond0, type: bond, bond_links: [eno1, eno2], bond_mode: 802.3ad, bond_miimon: 100, bond_xmit_hash_policy: layer3+4, ethernet_mac_address: "52:54:00:aa:bb:01"}
- {id: tenants, type: vlan, vlan_link: bond0, vlan_id: 120, vlan_mac_address: "52:54:00:aa:bb:01", mtu: 1500}
networks:
- {id: n0, link: bond0, type: ipv4, ip_address: 10.20.5.17, netmask: 255.255.252.0, routes: [{network: 0.0.0.0, netmask: 0.0.0.0, gateway: 10.20.4.1}]}
- {id: n1, link: tenants, type: ipv6, ip_address: "fd00:20::17/64", routes: [{network: "fd00:30::", netmask: "ffff:ffff::", gateway: "fd00:20::1"}]}
- {id: n2, link: storage, type: ipv4_dhcp}
services:
- {type: dns, address: 10.20.0.1}
`

const oneNIC = `{"links":[{"id":"a","type":"phy","ethernet_mac_address":"52:54:00:aa:bb:01"}],`

func TestADocumentIsTheSameInJSONAndYAML(t *testing.T) {
	fromYAML, err := Parse("the network", bonded)
	if err != nil {
		t.Fatal(err)
	}
	text, err := fromYAML.JSON()
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := Parse("the network", string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromYAML, fromJSON); diff != "" {
		t.Error(diff)
	}
	var plain Data
	if err := json.Unmarshal(text, &plain); err != nil || !cmp.Equal(plain, fromYAML) {
		t.Errorf("a reader of JSON sees something else: %v", err)
	}
}

func TestNetworkConfigSaysTheSame(t *testing.T) {
	d, err := Parse("the network", bonded)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.NetworkConfig()
	if err != nil {
		t.Fatal(err)
	}
	const want = `version: 2
ethernets:
  eno1:
    match:
      macaddress: 52:54:00:aa:bb:01
    set-name: eno1
    mtu: 9000
  eno2:
    match:
      macaddress: 52:54:00:aa:bb:02
    set-name: eno2
    mtu: 9000
  storage:
    match:
      macaddress: 52:54:00:aa:bb:03
    set-name: storage
    dhcp4: true
    nameservers:
      addresses:
        - 10.20.0.1
bonds:
  bond0:
    interfaces:
      - eno1
      - eno2
    parameters:
      mode: 802.3ad
      mii-monitor-interval: 100
      transmit-hash-policy: layer3+4
    macaddress: 52:54:00:aa:bb:01
    addresses:
      - 10.20.5.17/22
    routes:
      - to: 0.0.0.0/0
        via: 10.20.4.1
    nameservers:
      addresses:
        - 10.20.0.1
vlans:
  tenants:
    id: 120
    link: bond0
    macaddress: 52:54:00:aa:bb:01
    mtu: 1500
    addresses:
      - fd00:20::17/64
    routes:
      - to: fd00:30::/32
        via: fd00:20::1
    nameservers:
      addresses:
        - 10.20.0.1
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDocumentsThatWouldLeaveANodeWithoutNetworkAreRefused(t *testing.T) {
	const links = `links: [{id: a, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01"}, {id: b, type: phy, ethernet_mac_address: "52:54:00:aa:bb:02"}, `
	for sentence, text := range map[string]string{
		"nothing":                       "",
		"no YAML":                       "a: [",
		"a list":                        "[]",
		"netplan":                       "network: {version: 2}",
		"network-config":                "version: 2\nethernets: {}",
		"no link":                       "links: []\nnetworks: []",
		"two documents":                 oneNIC + "}\n---\n{}",
		"a key that is not known":       oneNIC + `"netwroks":[]}`,
		"a NIC without MAC":             `links: [{id: a, type: phy}]`,
		"a MAC that is none":            `links: [{id: a, type: phy, ethernet_mac_address: "52:54"}]`,
		"a kind of link that is none":   `links: [{id: a, type: tap}]`,
		"an id that is none":            `links: [{id: "a b", type: phy}]`,
		"an id twice":                   links + `{id: a, type: phy}]`,
		"an MTU that is none":           `links: [{id: a, type: phy, ethernet_mac_address: "52:54:00:aa:bb:01", mtu: 1}]`,
		"a bond of nothing":             links + `{id: c, type: bond, bond_mode: active-backup}]`,
		"a bond of no mode":             links + `{id: c, type: bond, bond_links: [a]}]`,
		"a bond of itself":              links + `{id: c, type: bond, bond_mode: active-backup, bond_links: [c]}]`,
		"a bond of one NIC twice":       links + `{id: c, type: bond, bond_mode: active-backup, bond_links: [a, a]}]`,
		"two bonds of one NIC":          links + `{id: c, type: bond, bond_mode: active-backup, bond_links: [a]}, {id: d, type: bond, bond_mode: active-backup, bond_links: [a, b]}]`,
		"a VLAN on nothing":             links + `{id: c, type: vlan, vlan_id: 4, vlan_link: x, vlan_mac_address: "52:54:00:aa:bb:01"}]`,
		"a VLAN on itself":              links + `{id: c, type: vlan, vlan_id: 4, vlan_link: c, vlan_mac_address: "52:54:00:aa:bb:01"}]`,
		"a VLAN on a VLAN":              links + `{id: c, type: vlan, vlan_id: 4, vlan_link: a, vlan_mac_address: "52:54:00:aa:bb:01"}, {id: d, type: vlan, vlan_id: 4, vlan_link: c, vlan_mac_address: "52:54:00:aa:bb:01"}]`,
		"a VLAN on a bond's NIC":        links + `{id: c, type: bond, bond_mode: active-backup, bond_links: [a]}, {id: d, type: vlan, vlan_id: 4, vlan_link: a, vlan_mac_address: "52:54:00:aa:bb:01"}]`,
		"a VLAN without MAC":            links + `{id: c, type: vlan, vlan_id: 4, vlan_link: a}]`,
		"a VLAN's id that is none":      links + `{id: c, type: vlan, vlan_id: 4095, vlan_link: a, vlan_mac_address: "52:54:00:aa:bb:01"}]`,
		"a network on nothing":          oneNIC + `"networks":[{"id":"n","link":"x","type":"ipv4_dhcp"}]}`,
		"a network on a bond's NIC":     links + `{id: c, type: bond, bond_mode: active-backup, bond_links: [a]}]` + "\nnetworks: [{id: n, link: a, type: ipv4_dhcp}]",
		"a kind of network that's none": oneNIC + `"networks":[{"id":"n","link":"a","type":"dhcp"}]}`,
		"an address of another version": oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4","ip_address":"fd00::1","netmask":"ffff::"}]}`,
		"an address without a netmask":  oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4","ip_address":"10.0.0.1"}]}`,
		"a netmask with holes":          oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4","ip_address":"10.0.0.1","netmask":"255.0.255.0"}]}`,
		"DHCP with an address":          oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4_dhcp","ip_address":"10.0.0.1"}]}`,
		"a route to nowhere":            oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4_dhcp","routes":[{"network":"10.0.0.0"}]}]}`,
		"a gateway of another version":  oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4_dhcp","routes":[{"network":"10.0.0.0","netmask":"255.0.0.0","gateway":"fd00::1"}]}]}`,
		"a service that is none":        oneNIC + `"services":[{"type":"ntp","address":"10.0.0.1"}]}`,
		"a resolver that is none":       oneNIC + `"services":[{"type":"dns","address":"x"}]}`,
	} {
		_, err := Parse("the network", text)
		var bad *Invalid
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Field, "the network") || bad.Message == "" {
			t.Errorf("%s: error %v, want *Invalid", sentence, err)
		}
	}
}

func TestTheKernelTakesTheNamesOfLinks(t *testing.T) {
	d := Data{Links: []Link{{ID: "tap-of-a-very-long-name", Type: LinkPhysical}, {ID: "nic0", Type: LinkPhysical}, {ID: "the:bond", Type: LinkBond}, {ID: "a:vlan", Type: LinkVLAN}}}
	want := map[string]string{"tap-of-a-very-long-name": "nic1", "nic0": "nic0", "the:bond": "bond0", "a:vlan": "vlan0"}
	if diff := cmp.Diff(want, d.InterfaceNames()); diff != "" {
		t.Error(diff)
	}
}

func TestRangesHoldWhatIsBetweenTheirEnds(t *testing.T) {
	r, err := ParseRanges("10.20.4.17-10.20.4.99, 10.20.5.7 ,fd00::10-fd00::ff")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"10.20.4.16": false, "10.20.4.17": true, "10.20.4.99": true, "10.20.4.100": false, "10.20.5.7": true, "fd00::20": true, "fd00::1:0": false} {
		if got := r.HasAddress(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is in them: %v, want %v", address, got, want)
		}
	}
	for _, text := range []string{"", "10.0.0.1-", "10.0.0.9-10.0.0.1", "10.0.0.1-fd00::1", "10.0.0.1-10.0.0.5,10.0.0.5-10.0.0.9", "a-b", "fe80::1%eth0", "10.0.0.1-10.0.0.2-10.0.0.3"} {
		if _, err := ParseRanges(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestRangesLieInTheNetworkAndLeaveItsGatewayOut(t *testing.T) {
	gateway := netip.MustParsePrefix("10.20.4.1/22")
	for text, ok := range map[string]bool{"10.20.4.2-10.20.7.254": true, "10.20.4.1-10.20.4.9": false, "10.20.7.254-10.20.8.1": false} {
		r, err := ParseRanges(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CheckWithin(gateway); (err == nil) != ok {
			t.Errorf("%s: %v, want ok %v", text, err, ok)
		}
	}
}

func TestAnAddressIsOfTheRangesAndOfTheHostsGateway(t *testing.T) {
	b := Boot{MAC: "52:54:00:aa:bb:01", Address: "10.20.4.17", CIDR: "10.20.4.1/22", Ranges: "10.20.4.17-10.20.4.20"}
	if _, ok, err := b.Data(); err != nil || !ok {
		t.Fatal(err)
	}
	for sentence, change := range map[string]func(*Boot){
		"an address outside of the ranges": func(b *Boot) { b.Address = "10.20.4.21" },
		"ranges and no address":            func(b *Boot) { b.Address = "" },
		"ranges that are none":             func(b *Boot) { b.Ranges = "x" },
		"a gateway that is none":           func(b *Boot) { b.Gateway = "x" },
		"a gateway elsewhere":              func(b *Boot) { b.Gateway = "10.30.0.1" },
		"a gateway and no prefix length":   func(b *Boot) { b.CIDR, b.Gateway = "", "10.20.4.1" },
	} {
		changed := b
		change(&changed)
		var bad *Invalid
		if _, _, err := changed.Data(); !errors.As(err, &bad) {
			t.Errorf("%s: error %v, want *Invalid", sentence, err)
		}
	}
	b.Gateway = "10.20.4.2"
	d, _, err := b.Data()
	if err != nil || d.Networks[0].Routes[0].Gateway != "10.20.4.2" {
		t.Errorf("the host's own gateway does not win: %+v, %v", d, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(bonded)
	f.Add(oneNIC + `"networks":[{"id":"n","link":"a","type":"ipv4_dhcp"}],"services":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("n", text)
		if err != nil {
			return
		}
		out, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("n", string(out))
		if err != nil {
			t.Fatalf("%q was written as %q, which is refused: %v", text, out, err)
		}
		second, err := again.JSON()
		if err != nil || string(second) != string(out) {
			t.Fatalf("%q and %q", out, second)
		}
		if _, err := d.NetworkConfig(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzBoot(f *testing.F) {
	f.Add("10.20.4.17/22", "10.20.4.1/22", "", "10.20.4.2-10.20.4.99")
	f.Add("fd00::2", "fd00::1/64", "fd00::3", "")
	f.Fuzz(func(t *testing.T, address, cidr, gateway, ranges string) {
		d, ok, err := Boot{MAC: "52:54:00:aa:bb:01", Address: address, CIDR: cidr, Gateway: gateway, Ranges: ranges}.Data()
		if err != nil || !ok {
			return
		}
		if _, err := d.JSON(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NetworkConfig(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRanges(f *testing.F) {
	f.Add("10.20.4.17-10.20.4.99,10.20.5.7,fd00::10-fd00::ff")
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := ParseRanges(text)
		if err != nil {
			return
		}
		for _, r := range ranges {
			if !ranges.HasAddress(r.First) || !ranges.HasAddress(r.Last) {
				t.Fatalf("%q: its own ends are not in it", text)
			}
		}
	})
}

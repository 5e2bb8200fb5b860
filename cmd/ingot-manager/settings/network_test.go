package settings

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

// withNetwork is a file with the members of boot.network.
func withNetwork(members string) string {
	return head + "boot: {url: \"http://10.0.0.2:8090\", network: {" + members + "}}\n"
}

const subnet = "{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.250, router: 10.20.0.1, dns: [10.20.0.1]}"

func TestTheProvisioningNetworkIsRead(t *testing.T) {
	s, err := Read(strings.NewReader(withNetwork("interface: eth1, dhcp: Serve, subnets: [" + subnet + "]")))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := s.Boot.Network.Subnets[0].Parse()
	if err != nil || parsed.Router != netip.MustParseAddr("10.20.0.1") || parsed.Range.Last != netip.MustParseAddr("10.20.1.250") || len(parsed.DNS) != 1 {
		t.Errorf("%+v, %v", parsed, err)
	}
	if _, err := Read(strings.NewReader(withNetwork("interface: eth1, dhcp: Proxy"))); err != nil {
		t.Errorf("a proxy needs no subnets: %v", err)
	}
	shared, err := Read(strings.NewReader(withNetwork("interface: eth1, sharedAddress: 10.0.0.2/24")))
	if err != nil {
		t.Fatal(err)
	}
	if prefix, err := shared.Boot.Network.ParseSharedAddress(); err != nil || prefix != netip.MustParsePrefix("10.0.0.2/24") {
		t.Errorf("%s, %v", prefix, err)
	}
}

func TestANetworkThatMakesNoSenseIsRefusedByItsField(t *testing.T) {
	serve := "interface: eth1, dhcp: Serve, "
	for _, c := range []struct{ members, want string }{
		{"dhcp: Serve, subnets: [" + subnet + "]", "boot.network.interface"},
		{"interface: eth1, dhcp: Maybe", `boot.network.dhcp: got "Maybe"`},
		{"interface: eth1, dhcp: Serve", "boot.network.subnets"},
		{"interface: eth1, dhcp: Proxy, subnets: [" + subnet + "]", "boot.network.subnets"},
		{"interface: eth1, address: fe80::1", "boot.network.address"},
		{serve + "leaseTime: 10s, subnets: [" + subnet + "]", "boot.network.leaseTime"},
		{serve + "subnets: [{prefix: 10.20.0.1/23, first: 10.20.1.10, last: 10.20.1.250}]", "boot.network.subnets[0]: prefix"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.21.1.10, last: 10.20.1.250}]", "boot.network.subnets[0]: first"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.20, last: 10.20.1.10}]", "the last address is before the first"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.20, router: gw}]", "router"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.20, dns: [\"::1\"]}]", "dns"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.20, router: 10.20.1.20}]", "10.20.1.20, the address of its router"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.0.0, last: 10.20.1.20}]", "without the first and the last one"},
		{serve + "subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.255}]", "without the first and the last one"},
		{serve + "address: 10.20.1.11, subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.20}]", "10.20.1.11, the address of boot.network.address"},
		{serve + "sharedAddress: 10.20.1.12/23, subnets: [{prefix: 10.20.0.0/23, first: 10.20.1.10, last: 10.20.1.20}]", "10.20.1.12, the address of boot.network.sharedAddress"},
		{serve + "subnets: [" + subnet + ", {prefix: 10.20.1.0/24, first: 10.20.1.10, last: 10.20.1.20}]", "does not overlap 10.20.0.0/23"},
		{"interface: eth1, sharedAddress: 10.0.0.2", `boot.network.sharedAddress: got "10.0.0.2"`},
		{"interface: eth1, sharedAddress: 10.0.0.0/24", `boot.network.sharedAddress: got "10.0.0.0/24"`},
		{"sharedAddress: 10.0.0.2/24", "boot.network.interface: got nothing"},
		{"interface: eth1, address: 10.0.0.2, sharedAddress: 10.0.0.2/24", "which is boot.network.address"},
		{"interface: eth1, sharedAddress: 10.0.0.3/24", `boot.url: got "http://10.0.0.2:8090"; expected the address of boot.network.sharedAddress, 10.0.0.3`},
		{"interfaces: eth1", `unknown field "interfaces"`},
	} {
		if _, err := Read(strings.NewReader(withNetwork(c.members))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected an error with %q", c.members, err, c.want)
		}
	}
}

func TestTheSettingsOfTheFirstRackAreRead(t *testing.T) {
	text, err := os.ReadFile("../../../config/first-rack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	members, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the document has no settings")
	}
	if _, err := Read(strings.NewReader(head + "boot:\n" + members)); err != nil {
		t.Error(err)
	}
}

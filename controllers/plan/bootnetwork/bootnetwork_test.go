package bootnetwork

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// network is the provisioning network of a rack.
func network(change func(*v1alpha1.NetbootNetworkSpec)) *v1alpha1.NetbootNetworkSpec {
	n := &v1alpha1.NetbootNetworkSpec{CIDR: "10.20.4.1/22", VLAN: 120, DNSServers: []string{"10.20.0.7"}}
	if change != nil {
		change(n)
	}
	return n
}

func TestWhatNodeProviderAndHostSayIsWhatTheAgentIsTold(t *testing.T) {
	bond := func(n *v1alpha1.NetbootNetworkSpec) { n.Bond = &v1alpha1.NetbootBondSpec{Mode: v1alpha1.BondLACP} }
	for name, c := range map[string]struct {
		network     *v1alpha1.NetbootNetworkSpec
		annotations map[string]string
		want        string
	}{
		"nothing":                         {nil, nil, ""},
		"DHCP":                            {network(nil), nil, "ingot.vlan=120 ingot.dns=10.20.0.7"},
		"address of the boot network":     {network(nil), map[string]string{v1alpha1.AnnotationBootIPAddress: "10.20.4.17"}, "ingot.vlan=120 ingot.address=10.20.4.17/22 ingot.gateway=10.20.4.1 ingot.dns=10.20.0.7"},
		"with the length of its prefix":   {network(nil), map[string]string{v1alpha1.AnnotationBootIPAddress: "10.20.4.17/22"}, "ingot.vlan=120 ingot.address=10.20.4.17/22 ingot.gateway=10.20.4.1 ingot.dns=10.20.0.7"},
		"one network for both":            {network(nil), map[string]string{v1alpha1.AnnotationIPAddress: "10.20.4.18/22"}, "ingot.vlan=120 ingot.address=10.20.4.18/22 ingot.gateway=10.20.4.1 ingot.dns=10.20.0.7"},
		"the node is on another network":  {network(nil), map[string]string{v1alpha1.AnnotationIPAddress: "10.99.0.18/16"}, "ingot.vlan=120 ingot.dns=10.20.0.7"},
		"the boot address wins":           {network(nil), map[string]string{v1alpha1.AnnotationIPAddress: "10.20.4.18", v1alpha1.AnnotationBootIPAddress: "10.20.4.17"}, "ingot.vlan=120 ingot.address=10.20.4.17/22 ingot.gateway=10.20.4.1 ingot.dns=10.20.0.7"},
		"IPv6":                            {&v1alpha1.NetbootNetworkSpec{CIDR: "2001:db8::1/64"}, map[string]string{v1alpha1.AnnotationBootIPAddress: "2001:db8::17"}, "ingot.address=2001:db8::17/64 ingot.gateway=2001:db8::1"},
		"a bond of the card's ports":      {network(bond), nil, "ingot.bond=802.3ad ingot.vlan=120 ingot.dns=10.20.0.7"},
		"a bond of the ports that it has": {network(bond), map[string]string{v1alpha1.AnnotationBondMACs: "0C:42:A1:00:00:01, 0c-42-a1-00-00-02"}, "ingot.bond=802.3ad,0c:42:a1:00:00:01,0c:42:a1:00:00:02 ingot.vlan=120 ingot.dns=10.20.0.7"},
	} {
		got, err := Of(c.network, c.annotations)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got.MAC = "0c:42:a1:00:00:01"
		words := cmdline.Arguments{URL: "u", Token: "t", Network: got}.Words()
		text := strings.TrimSpace(strings.TrimPrefix(strings.Join(words, " "), "ingot.url=u ingot.token=t ingot.mac=0c:42:a1:00:00:01"))
		if text != c.want {
			t.Errorf("%s: %q, expected %q", name, text, c.want)
		}
		if read, err := cmdline.Parse(strings.Join(words, " ")); err != nil || !reflect.DeepEqual(read.Network, got) {
			t.Errorf("%s: the agent reads %+v, %v", name, read.Network, err)
		}
	}
}

func TestAnAddressThatCannotWorkIsRefusedBeforeTheServerIsPoweredOn(t *testing.T) {
	for name, c := range map[string]struct {
		network *v1alpha1.NetbootNetworkSpec
		key     string
		value   string
		want    string
	}{
		"no network":           {nil, v1alpha1.AnnotationBootIPAddress, "10.20.4.17", "netboot.network.cidr"},
		"a network of DHCP":    {network(func(n *v1alpha1.NetbootNetworkSpec) { n.CIDR = "" }), v1alpha1.AnnotationBootIPAddress, "10.20.4.17", "netboot.network.cidr"},
		"another network":      {network(nil), v1alpha1.AnnotationBootIPAddress, "10.99.0.1", "10.20.4.0/22"},
		"the gateway's":        {network(nil), v1alpha1.AnnotationBootIPAddress, "10.20.4.1", "gateway 10.20.4.1"},
		"the network's":        {network(nil), v1alpha1.AnnotationBootIPAddress, "10.20.4.0", "10.20.4.0/22"},
		"the broadcast's":      {network(nil), v1alpha1.AnnotationBootIPAddress, "10.20.7.255", "10.20.4.0/22"},
		"another length":       {network(nil), v1alpha1.AnnotationBootIPAddress, "10.20.4.17/24", "prefix length"},
		"no address":           {network(nil), v1alpha1.AnnotationBootIPAddress, "server-17", "expected an IP address"},
		"members of no NICs":   {network(func(n *v1alpha1.NetbootNetworkSpec) { n.Bond = &v1alpha1.NetbootBondSpec{Mode: v1alpha1.BondLACP} }), v1alpha1.AnnotationBondMACs, "eth0,eth1", "ingot.dev/bond-mac-addresses"},
		"more than two cards'": {network(func(n *v1alpha1.NetbootNetworkSpec) { n.Bond = &v1alpha1.NetbootBondSpec{Mode: v1alpha1.BondLACP} }), v1alpha1.AnnotationBondMACs, strings.Repeat("0c:42:a1:00:00:01,", 9), "more than 8"},
	} {
		if _, err := Of(c.network, map[string]string{c.key: c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("10.20.4.1/22", "10.20.4.17", "10.20.4.18/22", "0c:42:a1:00:00:01")
	f.Add("2001:db8::1/64", "2001:db8::17/64", "", "")
	f.Fuzz(func(t *testing.T, cidr, boot, system, macs string) {
		got, err := Of(&v1alpha1.NetbootNetworkSpec{CIDR: cidr, Bond: &v1alpha1.NetbootBondSpec{Mode: v1alpha1.BondActiveBackup}},
			map[string]string{v1alpha1.AnnotationBootIPAddress: boot, v1alpha1.AnnotationIPAddress: system, v1alpha1.AnnotationBondMACs: macs})
		if err != nil {
			return
		}
		got.MAC = "0c:42:a1:00:00:01"
		if read, err := cmdline.Parse(strings.Join(cmdline.Arguments{URL: "u", Token: "t", Network: got}.Words(), " ")); err != nil || !reflect.DeepEqual(read.Network, got) {
			t.Fatalf("%+v became %+v: %v", got, read.Network, err)
		}
	})
}

package join

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzFindDNS: whatever a tenant's cluster says, nodes get addresses and a domain, and no more of them than a node can use.
func FuzzFindDNS(f *testing.F) {
	f.Add("clusterDNS: [169.254.20.10, 10.96.0.10]\nclusterDomain: cluster.local.\n", "10.96.0.10")
	f.Add("clusterDNS: [\"fe80::1%eth0\", \"::ffff:10.0.0.1\", a, b, c]\nclusterDomain: \"a b\"\n", "None,,fd00::a")
	f.Add("a: &a [x]\nb: [*a, *a]\nclusterDNS: *a\n", "")
	f.Fuzz(func(t *testing.T, config, service string) {
		found := FindDNS(Sources{KubeletConfig: config, ServiceIPs: strings.Split(service, ",")})
		if len(found.Addresses) > maxAddresses || found.Domain != "" && len(validation.IsDNS1123Subdomain(found.Domain)) > 0 {
			t.Errorf("%+v", found)
		}
		for _, text := range found.Addresses {
			if ip, err := netip.ParseAddr(text); err != nil || ip.Zone() != "" || ip.String() != text {
				t.Errorf("the address %q: %v", text, err)
			}
		}
	})
}

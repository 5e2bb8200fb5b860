package convert

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// checkProperties renders an example Machine with a host that has an address, labels and annotations, and adds a finding for what the manager
// would refuse of every Machine.
func (c *converter) checkProperties(m offline.Manifest, field string, kept map[string]any, inherited properties.Level) {
	level := properties.Level{Name: field, Values: map[string]string{}}
	for key, value := range kept {
		level.Values[key], _ = value.(string)
	}
	if renderExample(level) == nil && renderExample(inherited) == nil {
		// Templates of the nearer level see the properties of the farther one, and its network.
		if err := renderExample(inherited, level); err != nil {
			c.AddFinding(m, field, conversion.RuleCheck, "%v", err)
		}
		return
	}
	if err := renderExample(level); err != nil {
		c.AddFinding(m, field, conversion.RuleCheck, "%v", err)
	}
}

// missingKey matches the error of a template that reads a key which the example does not have: each host and each Machine has its own.
var missingKey = regexp.MustCompile(`map has no entry for key "([^"]+)"`)

// maxExampleKeys is how many keys an example gets. Without it: a template with generated keys would be rendered without end.
const maxExampleKeys = 64

// renderExample renders the levels for an example Machine on an example host.
func renderExample(levels ...properties.Level) error {
	in := cloudinit.Input{Network: &v1alpha1.NetworkSpec{}, Properties: levels}
	ranges := ""
	for _, l := range levels {
		if cidr := l.Values[properties.NetworkCIDR]; cidr != "" {
			in.Network.CIDR = cidr
		}
		if r := l.Values[properties.NetworkIPRange]; r != "" {
			ranges = r
		}
	}
	if err := cloudinit.Check(in); err != nil {
		return err
	}
	in.Machine = cloudinit.MachineInput{Name: "machine-1", Namespace: "example", UID: "1", Revision: "revision-1", Attempt: 1}
	in.Host = cloudinit.HostInput{Name: "host-1", BootMAC: "02:00:00:00:00:01", IPAddress: exampleAddress(ranges, in.Network.CIDR), Labels: map[string]string{}, Annotations: map[string]string{}}
	example := properties.Level{Name: "example", Values: map[string]string{}}
	in.Properties = append([]properties.Level{example}, levels...)
	for range maxExampleKeys {
		_, err := cloudinit.Render(in)
		if err == nil {
			return nil
		}
		key := missingKey.FindStringSubmatch(err.Error())
		if key == nil && len(example.Values) > 0 {
			return nil // What the template makes of example values says nothing of real ones.
		}
		if key == nil {
			return err
		}
		if _, there := in.Host.Labels[key[1]]; there {
			return err
		}
		in.Host.Labels[key[1]], in.Host.Annotations[key[1]], example.Values[key[1]] = "example", "example", "example"
	}
	return nil
}

// exampleAddress returns the first address of the ranges, or else one beside the gateway; empty: the network uses DHCP.
func exampleAddress(ranges, cidr string) string {
	first, _, _ := strings.Cut(ranges, ",")
	first, _, _ = strings.Cut(first, "-")
	if a, err := netip.ParseAddr(strings.TrimSpace(first)); err == nil {
		return a.String()
	}
	gateway, err := netip.ParsePrefix(strings.TrimSpace(cidr))
	if err != nil {
		return ""
	}
	if next := gateway.Addr().Next(); gateway.Contains(next) {
		return next.String()
	}
	return gateway.Addr().Prev().String()
}

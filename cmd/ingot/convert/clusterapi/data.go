package clusterapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Values of templates in properties that stand for what a Metal3DataTemplate puts into meta-data.
const (
	machineName   = `{{ .Values.Machine.Name }}`
	hostName      = `{{ .Values.BareMetalHost.Name }}`
	hostAddress   = `{{ .Values.AllocatedIP }}`
	hostPrefix    = `{{ .Values.PrefixLength }}`
	gatewayOfHost = `{{ .Values.Gateway }}`
)

// newTranslation returns, for each key of the meta-data, its value or the expression of a template that gives the same. Keys that have neither are reported
// where the user data reads them.
func (d deployment) newTranslation() *translation {
	values, unknown := map[string]string{}, map[string]bool{}
	// What every host's meta-data has.
	out := map[string]string{"name": machineName, "local_hostname": machineName, "hostname": machineName, "metal3_name": hostName}
	meta := conversion.ValueAt[map[string]any](d.data.Object, "spec", "metaData")
	for kind, value := range map[string]string{"ipAddressesFromIPPool": hostAddress, "prefixesFromIPPool": hostPrefix, "gatewaysFromIPPool": gatewayOfHost} {
		for _, one := range items(meta, kind) {
			out[metadataName(one)] = value
		}
	}
	for _, one := range items(meta, "strings") {
		values[metadataName(one)] = text(one, "value")
	}
	for _, one := range items(meta, "objectNames") {
		switch text(one, "object") {
		case "machine", "metal3machine":
			out[metadataName(one)] = machineName
		case "baremetalhost":
			out[metadataName(one)] = hostName
		}
	}
	for kind, field := range map[string][2]string{"fromLabels": {"Labels", "label"}, "fromAnnotations": {"Annotations", "annotation"}} {
		for _, one := range items(meta, kind) {
			if text(one, "object") == "baremetalhost" {
				out[metadataName(one)] = fmt.Sprintf("{{ index .Values.BareMetalHost.%s %q }}", field[0], text(one, field[1]))
			}
		}
	}
	return &translation{values: values, expressions: out, unknown: unknown}
}

// metadataName returns the key of an entry as Jinja names it.
func metadataName(entry map[string]any) string {
	return strings.ReplaceAll(text(entry, "key"), "-", "_")
}

// items returns the entries of a list of mappings.
func items(object map[string]any, path ...string) []map[string]any {
	var out []map[string]any
	for _, item := range conversion.ValueAt[[]any](object, path...) {
		if one, is := item.(map[string]any); is {
			out = append(out, one)
		}
	}
	return out
}

func text(object map[string]any, path ...string) string {
	return conversion.ValueAt[string](object, path...)
}

// convertData reports the network of the deployment's hosts, and sets what the properties of a NodeType can say of it.
func (c *converter) convertData(d deployment, spec map[string]any) {
	if d.data.Object == nil {
		return
	}
	network := conversion.ValueAt[map[string]any](d.data.Object, "spec", "networkData")
	for _, kind := range []string{"bonds", "vlans"} {
		if len(items(network, "links", kind)) > 0 {
			c.AddFinding(d.data, "spec.networkData.links."+kind, conversion.RuleLost, "write OpenStack's network data with these links into the property %s of the NodeType; a host's own values are its labels and annotations there", properties.NetworkDataTemplate)
		}
	}
	for _, kind := range []string{"ipv6", "ipv6DHCP", "ipv6SLAAC"} {
		if len(items(network, "networks", kind)) > 0 {
			c.AddFinding(d.data, "spec.networkData.networks."+kind, conversion.RuleLost, "write it as OpenStack's network data into the property %s of the NodeType", properties.NetworkDataTemplate)
		}
	}
	static := items(network, "networks", "ipv4")
	if len(static) > 1 {
		c.AddFinding(d.data, "spec.networkData.networks.ipv4", conversion.RuleLost, "the first network is carried over: write the others as OpenStack's network data into the property %s of the NodeType", properties.NetworkDataTemplate)
	}
	said := map[string]any{}
	if len(static) > 0 {
		c.convertAddresses(d.data, static[0], said)
	}
	c.convertResolvers(network, said)
	conversion.CopyField(spec, "properties", said)
}

// convertAddresses sets the network of an IPPool.
func (c *converter) convertAddresses(m offline.Manifest, network, said map[string]any) {
	const field = "spec.networkData.networks.ipv4"
	name := cmp.Or(text(network, "ipAddressFromIPPool"), text(network, "fromPoolRef", "name"))
	if name == "" {
		return
	}
	pool, there := c.find(m, field, kindIPPool, map[string]any{"name": name})
	if !there {
		return
	}
	spec := conversion.ValueAt[map[string]any](pool.Object, "spec")
	gateway, prefix, ranges := text(spec, "gateway"), spec["prefix"], ""
	for _, part := range items(spec, "pools") {
		gateway = cmp.Or(gateway, text(part, "gateway"))
		if prefix == nil {
			prefix = part["prefix"]
		}
		switch {
		case text(part, "start") != "" && text(part, "end") != "":
			ranges = join(ranges, text(part, "start")+"-"+text(part, "end"))
		case text(part, "subnet") != "":
			c.AddFinding(pool, "spec.pools", conversion.RuleLost, "the range %s has no start and end: add them to %s of the NodeType", text(part, "subnet"), properties.NetworkIPRange)
		}
	}
	if gateway == "" || prefix == nil {
		c.AddFinding(pool, "spec", conversion.RuleAdd, "it has no gateway or no prefix: add spec.network.cidr of the NodeProvider, such as 10.20.4.1/22")
		return
	}
	said[properties.NetworkCIDR] = fmt.Sprintf("%s/%v", gateway, prefix)
	conversion.CopyField(said, properties.NetworkIPRange, ranges)
	c.AddFinding(pool, "", conversion.RuleAdd, "Ingot hands out no addresses: annotate each host with its own, ingot.dev/ip-address; a host without one uses DHCP")
}

// convertResolvers sets the DNS servers that the template names.
func (c *converter) convertResolvers(network, said map[string]any) {
	all := ""
	for _, server := range conversion.ValueAt[[]any](network, "services", "dns") {
		all = join(all, fmt.Sprint(server))
	}
	conversion.CopyField(said, properties.DNSServers, all)
}

func join(all, one string) string {
	if all == "" {
		return one
	}
	return all + "," + one
}

// reportMetadata adds a finding for each key of the meta-data that the user data reads and that no template has.
func (c *converter) reportMetadata(d deployment, unknown map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		c.AddFinding(orDeployment(d.config, d), "spec.template.spec", conversion.RuleLost, "user data reads %s of the meta-data, for which Ingot's templates have no value: annotate the hosts with it, and write {{ index .Values.BareMetalHost.Annotations \"KEY\" }}", name)
	}
}

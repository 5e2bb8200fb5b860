package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

func (c *converter) nodeProvider(m offline.Manifest) {
	metal := at[map[string]any](m.Object, "spec", "metal3")
	if metal == nil {
		c.add(m, "spec", RuleLost, "it is not of the kind metal3: only bare metal has a place here")
		return
	}
	spec := map[string]any{"metal3": map[string]any{}}
	carried(spec, "hostNamespace", at[string](metal, "clusterRef", "namespace"))
	c.add(m, "spec.metal3.clusterRef", RuleCheck, "the BareMetalHosts must be in this namespace of the cluster that Ingot runs in, and the baremetal-operator there stays yours to run")
	c.lost(m, at[map[string]any](m.Object, "spec"), "spec", map[string]string{"displayName": "a NodeProvider has none"})
	c.lost(m, metal, "spec.metal3", map[string]string{"deploy": "Ingot installs neither Multus nor DHCP nor Metal3: leave them installed, or use a NodeProvider of the kind redfish, which needs none"})
	properties := at[map[string]any](m.Object, "spec", "properties")
	c.network(m, spec, properties)
	c.people(m, "spec.properties", spec, properties)
	c.made("NodeProvider", map[string]any{"name": m.Name()}, spec)
	for i, item := range at[[]any](metal, "nodeTypes") {
		if one, ok := item.(map[string]any); ok {
			c.nodeType(m, fmt.Sprintf("spec.metal3.nodeTypes[%d]", i), one, properties)
		}
	}
}

func (c *converter) network(m offline.Manifest, spec, properties map[string]any) {
	network := map[string]any{}
	carried(network, "cidr", at[string](properties, domain+"network-cidr"))
	var resolvers []any
	for _, s := range strings.FieldsFunc(at[string](properties, domain+"dns-servers"), func(r rune) bool { return r == ',' || r == ' ' }) {
		resolvers = append(resolvers, s)
	}
	carried(network, "dnsServers", resolvers)
	carried(spec, "network", network)
}

// notHere are properties without a place, and what to do instead.
var notHere = map[string]string{
	domain + "network-ip-range":                 "Ingot gives out no addresses: annotate each BareMetalHost with " + v1alpha1.AnnotationIPAddress + ", or use DHCP",
	domain + "network-data":                     "the network follows from network.cidr and the host's annotation " + v1alpha1.AnnotationIPAddress,
	domain + "server-name":                      "set hostName of the Machine",
	"vcluster.com/network-data-template-config": "the network follows from network.cidr and the host's annotation " + v1alpha1.AnnotationIPAddress,
	"vcluster.com/network-environment":          "say what the network is with network of the NodeProvider",
}

// understood are the properties that have a place.
var understood = []string{
	domain + "network-cidr", domain + "dns-servers",
	"vcluster.com/os-image", "vcluster.com/ssh-keys", "vcluster.com/user-data", "vcluster.com/user-data-template-config",
}

// people's properties: SSH keys and user data. All others are told.
func (c *converter) people(m offline.Manifest, field string, spec, properties map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		switch why := notHere[key]; {
		case why != "":
			c.add(m, field, RuleLost, "%s: %s", key, why)
		case !slices.Contains(understood, key):
			c.add(m, field, RuleLost, "%s: properties for templates have no place here", key)
		}
	}
	if names := at[string](properties, "vcluster.com/ssh-keys"); names != "" {
		carried(spec, "sshKeys", c.sshKeys(m, field, names))
	}
	text, where := at[string](properties, "vcluster.com/user-data"), "vcluster.com/user-data"
	if name := at[string](properties, "vcluster.com/user-data-template-config"); text == "" && name != "" {
		text, where = c.template(m, field, name), "MachineConfigTemplate "+name
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	if strings.Contains(text, "{{") {
		c.add(m, field, RuleLost, "%s is a template: write spec.userData without its {{ }}; the host name, the join and the SSH keys are Ingot's to add", where)
		return
	}
	spec["userData"] = text
	// Whoever reads the result must know what the manager will refuse.
	if err := cloudinit.Validate([]cloudinit.Layer{{Name: where, Text: text}}, nil, presentation.Plan{}); err != nil {
		c.add(m, field, RuleCheck, "%v", err)
	}
}

// template is the text of a MachineConfigTemplate; empty: it could not be carried over.
func (c *converter) template(m offline.Manifest, field, name string) string {
	t, there := c.templates[name]
	if !there {
		c.add(m, field, RuleLost, "MachineConfigTemplate %s is not in the files: give its file too", name)
		return ""
	}
	c.used[t.String()] = true
	text := t.Word("spec", "cloudInitTemplate")
	if text == "" {
		c.add(m, field, RuleLost, "MachineConfigTemplate %s has no cloudInitTemplate", name)
	}
	return text
}

// sshKeys are public keys that are written out, or the names of SSHKeys.
func (c *converter) sshKeys(m offline.Manifest, field, text string) []any {
	var out []any
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		part = strings.TrimSpace(part)
		key, there := c.keys[part]
		switch {
		case part == "":
		case strings.Contains(part, " "):
			out = append(out, part)
		case there && key.Word("spec", "publicKey") != "":
			c.used[key.String()] = true
			out = append(out, strings.TrimSpace(key.Word("spec", "publicKey")))
		default:
			c.add(m, field, RuleLost, "SSHKey %s is not in the files, or has no spec.publicKey: add the public key to sshKeys", part)
		}
	}
	return out
}

func (c *converter) nodeType(m offline.Manifest, field string, one, inherited map[string]any) {
	properties, name := at[map[string]any](one, "properties"), at[string](one, "name")
	spec := map[string]any{"providerRef": map[string]any{"name": m.Name()}}
	carried(spec, "displayName", at[string](one, "displayName"))
	carried(spec, "zone", at[string](one, "zone"))
	carried(spec, "hostSelector", at[map[string]any](one, "bareMetalHosts", "selector"))
	if spec["hostSelector"] == nil {
		c.add(m, field+".bareMetalHosts", RuleAdd, "NodeType %s has no selector, and one that selects every host is refused here: add spec.hostSelector", name)
	}
	image := at[string](properties, "vcluster.com/os-image")
	if image == "" {
		image = at[string](inherited, "vcluster.com/os-image")
	}
	if image == "" {
		c.add(m, field+".properties", RuleAdd, "NodeType %s names no OSImage: add spec.osImageRef", name)
	} else {
		spec["osImageRef"] = map[string]any{"name": image}
	}
	c.resources(m, field, name, spec, one)
	for _, key := range []string{domain + "network-cidr", domain + "dns-servers"} {
		if properties[key] != nil {
			c.add(m, field+".properties", RuleLost, "%s of one node type: only a NodeProvider has a network; make one of its own for these hosts", key)
		}
	}
	c.people(m, field+".properties", spec, properties)
	c.lost(m, one, field, map[string]string{
		"overhead": "nothing is scheduled by it here", "kubeReserved": "say it in the kubelet's configuration in the image", "cost": "NodePools name their NodeType; none is chosen by cost",
		"maxCapacity": "say it in replicas of the NodePools",
	})
	metadata := map[string]any{"name": name}
	for _, key := range []string{"labels", "annotations"} {
		carried(metadata, key, at[map[string]any](one, "metadata", key))
	}
	c.made("NodeType", metadata, spec)
}

// resources are promises here. GPUs follow from spec.gpu, and vMetal does not say which they are.
func (c *converter) resources(m offline.Manifest, field, name string, spec, one map[string]any) {
	promised := maps.Clone(at[map[string]any](one, "resources"))
	for _, vendor := range []v1alpha1.GPUVendor{v1alpha1.VendorNVIDIA, v1alpha1.VendorAMD} {
		resource := string(vendor) + ".com/gpu"
		count, there := promised[resource]
		if !there {
			continue
		}
		delete(promised, resource)
		gpu := map[string]any{"vendor": string(vendor), "presentation": map[string]any{"mode": string(v1alpha1.ModePassthrough)}}
		if n, whole := number(count); whole {
			gpu["count"] = n
		}
		if model := modelOf(vendor, spec["hostSelector"]); model != "" {
			gpu["model"] = model
		} else {
			c.add(m, field+".resources", RuleAdd, "NodeType %s has %v of %s, of a model that vMetal does not say: add spec.gpu.model, and another presentation than whole GPUs where there is one", name, count, resource)
		}
		spec["gpu"] = gpu
	}
	carried(spec, "resources", promised)
	if len(promised) > 0 {
		c.add(m, field+".resources", RuleCheck, "NodeType %s promises its resources, and a node that differs is not admitted: cpu exactly, memory up to 5%% less", name)
	}
}

func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case string:
		var n int64
		_, err := fmt.Sscanf(v, "%d", &n)
		return n, err == nil && fmt.Sprint(n) == v
	default:
		return 0, false
	}
}

// modelOf is a model of the catalogue whose name a label of the selector has as its value; empty: none has.
func modelOf(vendor v1alpha1.GPUVendor, selector any) string {
	s, _ := selector.(map[string]any)
	for _, value := range at[map[string]any](s, "matchLabels") {
		for _, m := range catalogue.Models() {
			if text, _ := value.(string); m.Vendor == vendor && strings.EqualFold(text, m.Name) {
				return m.Name
			}
		}
	}
	return ""
}

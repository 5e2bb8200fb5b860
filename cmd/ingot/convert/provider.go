package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
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
	c.lost(m, at[map[string]any](m.Object, "spec"), "spec", map[string]string{"displayName": "a NodeProvider has none"}, "metal3", "properties")
	c.lost(m, metal, "spec.metal3", map[string]string{"deploy": "Ingot installs neither Multus nor DHCP nor Metal3: leave them installed, or use a NodeProvider of the kind redfish, which needs none"}, "clusterRef", "nodeTypes")
	said := at[map[string]any](m.Object, "spec", "properties")
	c.properties(m, "spec.properties", spec, said)
	c.made("NodeProvider", named(m), spec)
	for i, item := range at[[]any](metal, "nodeTypes") {
		if one, ok := item.(map[string]any); ok {
			c.nodeType(m, fmt.Sprintf("spec.metal3.nodeTypes[%d]", i), one, said)
		}
	}
}

// elsewhereSaid are properties that Ingot has a field for, or no use.
var elsewhereSaid = map[string]string{
	domain + "server-name":             "set hostName of the Machine",
	domain + "image-url":               "make an OSImage of it, and name it in osImageRef",
	domain + "image-checksum":          "make an OSImage of it, and name it in osImageRef",
	domain + "image-checksum-type":     "it is part of an OSImage's checksum",
	"vcluster.com/network-environment": "say what the network is with network of the NodeProvider",
}

// properties keep their keys, so that the nearest still wins; what they name is put in their place.
func (c *converter) properties(m offline.Manifest, field string, spec, all map[string]any) {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text := at[string](all, key)
		switch {
		case elsewhereSaid[key] != "":
			c.add(m, field, RuleLost, "%s: %s", key, elsewhereSaid[key])
		case key == "vcluster.com/os-image":
		case key == properties.SSHKeys:
			carried(kept, key, strings.Join(c.sshKeys(m, field, text), "\n"))
		case key == "vcluster.com/user-data-template-config":
			carried(kept, properties.UserDataTemplate, c.template(m, field, text, "cloudInitTemplate"))
		case key == "vcluster.com/network-data-template-config":
			carried(kept, properties.NetworkDataTemplate, c.networkData(m, field, key, c.template(m, field, text, "networkDataTemplate")))
		case key == properties.NetworkData:
			carried(kept, key, c.networkData(m, field, key, text))
		default:
			carried(kept, key, text)
		}
	}
	carried(spec, "properties", kept)
	c.check(m, field, kept)
}

// networkData is taken in OpenStack's form, which a config drive carries; vMetal's own examples are cloud-init's.
func (c *converter) networkData(m offline.Manifest, field, key, text string) string {
	if strings.Contains(text, "ethernets:") || strings.Contains(text, "version: 2") {
		c.add(m, field, RuleLost, "%s is a network-config of cloud-init's version 2, and a config drive has OpenStack's network_data.json: say network.cidr and annotate the hosts, or write it as links, networks and services", key)
		return ""
	}
	return text
}

// check tells whoever reads the result what the manager would refuse, for a machine that could be.
func (c *converter) check(m offline.Manifest, field string, kept map[string]any) {
	level := properties.Level{Name: field, Values: map[string]string{}}
	for key, value := range kept {
		level.Values[key], _ = value.(string)
	}
	in := cloudinit.Input{Properties: []properties.Level{level}, Network: &v1alpha1.NetworkSpec{CIDR: level.Values[properties.NetworkCIDR]}}
	err := cloudinit.Check(in)
	if err == nil {
		in.Machine, in.Host.BootMAC = cloudinit.MachineInput{Name: "machine-1", UID: "1", Revision: "revision-1", Attempt: 1}, "02:00:00:00:00:01"
		_, err = cloudinit.Render(in)
	}
	if err != nil {
		c.add(m, field, RuleCheck, "%v", err)
	}
}

// template is the text of a MachineConfigTemplate; empty: it could not be carried over.
func (c *converter) template(m offline.Manifest, field, name, of string) string {
	t, there := c.templates[name]
	if !there {
		c.add(m, field, RuleLost, "MachineConfigTemplate %s is not in the files: give its file too", name)
		return ""
	}
	c.used[t.String()] = true
	text := t.Word("spec", of)
	if text == "" {
		c.add(m, field, RuleLost, "MachineConfigTemplate %s has no %s", name, of)
	}
	return text
}

// sshKeys are public keys that are written out, or the names of SSHKeys.
func (c *converter) sshKeys(m offline.Manifest, field, text string) []string {
	var out []string
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
			c.add(m, field, RuleLost, "SSHKey %s is not in the files, or has no spec.publicKey: add the public key to the property", part)
		}
	}
	return out
}

func (c *converter) nodeType(m offline.Manifest, field string, one, inherited map[string]any) {
	said, name := at[map[string]any](one, "properties"), at[string](one, "name")
	spec := map[string]any{"providerRef": map[string]any{"name": m.Name()}}
	carried(spec, "displayName", at[string](one, "displayName"))
	carried(spec, "zone", at[string](one, "zone"))
	carried(spec, "hostSelector", at[map[string]any](one, "bareMetalHosts", "selector"))
	if spec["hostSelector"] == nil {
		c.add(m, field+".bareMetalHosts", RuleAdd, "NodeType %s has no selector, and one that selects every host is refused here: add spec.hostSelector", name)
	}
	image := at[string](said, "vcluster.com/os-image")
	if image == "" {
		image = at[string](inherited, "vcluster.com/os-image")
	}
	if image == "" {
		c.add(m, field+".properties", RuleAdd, "NodeType %s names no OSImage: add spec.osImageRef", name)
	} else {
		spec["osImageRef"] = map[string]any{"name": image}
	}
	c.resources(m, field, name, spec, one)
	c.properties(m, field+".properties", spec, said)
	c.lost(m, one, field, map[string]string{
		"overhead": "nothing is scheduled by it here", "kubeReserved": "say it in the kubelet's configuration in the image", "cost": "NodePools name their NodeType; none is chosen by cost",
		"maxCapacity": "say it in replicas of the NodePools",
	}, "name", "displayName", "zone", "bareMetalHosts", "resources", "properties", "metadata")
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

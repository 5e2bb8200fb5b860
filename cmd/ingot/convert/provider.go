package convert

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

func (c *converter) convertNodeProvider(m offline.Manifest) {
	metal := conversion.ValueAt[map[string]any](m.Object, "spec", "metal3")
	if metal == nil {
		c.AddFinding(m, "spec", conversion.RuleLost, "it is not of the kind metal3: only bare metal has a place here")
		return
	}
	said := conversion.ValueAt[map[string]any](m.Object, "spec", "properties")
	images := map[string]any{}
	conversion.CopyField(images, imageProperty, c.imageFromURL(m, "spec.properties", m.Name(), said))
	spec := map[string]any{"metal3": map[string]any{}}
	conversion.CopyField(spec, "hostNamespace", conversion.ValueAt[string](metal, "clusterRef", "namespace"))
	c.AddFinding(m, "spec.metal3.clusterRef", conversion.RuleCheck, "the BareMetalHosts must be in this namespace of the cluster that Ingot runs in, and the baremetal-operator there stays yours to run")
	c.ReportDroppedFields(m, conversion.ValueAt[map[string]any](m.Object, "spec"), "spec", map[string]string{"displayName": "a NodeProvider has none"}, "metal3", "properties")
	c.ReportDroppedFields(m, metal, "spec.metal3", map[string]string{"deploy": "Ingot installs neither Multus nor DHCP nor Metal3: leave them installed, or use a NodeProvider of the kind redfish, which needs none"}, "clusterRef", "nodeTypes")
	level := c.convertProperties(m, "spec.properties", spec, said, properties.Level{})
	c.reportJoin(m)
	c.AddConverted("NodeProvider", conversion.NewMetadata(m), spec)
	for i, item := range conversion.ValueAt[[]any](metal, "nodeTypes") {
		if one, ok := item.(map[string]any); ok {
			c.convertNodeType(m, fmt.Sprintf("spec.metal3.nodeTypes[%d]", i), one, inheritedProperties{all: said, level: level, image: images})
		}
	}
}

// replacedProperties are properties that Ingot has a field for, or does not need.
var replacedProperties = map[string]string{
	domain + "server-name":             "set hostName of the Machine",
	"vcluster.com/network-environment": "say what the network is with network of the NodeProvider",
}

// imageProperty is the property that names an OSImage.
const imageProperty = "vcluster.com/os-image"

// inheritedProperties are the properties of a NodeProvider, which its node types inherit.
type inheritedProperties struct {
	// all are the properties as vMetal has them.
	all map[string]any
	// level are those that the NodeProvider has in Ingot.
	level properties.Level
	// image has the OSImage that was made of the image's URL.
	image map[string]any
}

// convertProperties keeps the keys of properties, so that the nearest still wins. References are replaced by what they refer to. It returns
// what it kept.
func (c *converter) convertProperties(m offline.Manifest, field string, spec, all map[string]any, inherited properties.Level) properties.Level {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text := conversion.ValueAt[string](all, key)
		switch {
		case replacedProperties[key] != "":
			c.AddFinding(m, field, conversion.RuleLost, "%s: %s", key, replacedProperties[key])
		case key == imageProperty || slices.Contains(imageProperties, key):
		case key == properties.SSHKeys:
			conversion.CopyField(kept, key, strings.Join(c.convertSSHKeys(m, field, text), "\n"))
		case key == "vcluster.com/user-data-template-config":
			conversion.CopyField(kept, properties.UserDataTemplate, c.templateText(m, field, text, "cloudInitTemplate"))
		case key == "vcluster.com/network-data-template-config":
			conversion.CopyField(kept, properties.NetworkDataTemplate, c.convertNetworkData(m, field, key, c.templateText(m, field, text, "networkDataTemplate")))
		case key == properties.NetworkData:
			conversion.CopyField(kept, key, c.convertNetworkData(m, field, key, text))
		default:
			conversion.CopyField(kept, key, text)
		}
	}
	conversion.CopyField(spec, "properties", kept)
	c.checkProperties(m, field, kept, inherited)
	level := properties.Level{Name: field, Values: map[string]string{}}
	for key, value := range kept {
		level.Values[key], _ = value.(string)
	}
	return level
}

// convertNetworkData returns OpenStack's network data as it is, because a config drive carries that. It refuses cloud-init's format, which
// vMetal's own examples have.
func (c *converter) convertNetworkData(m offline.Manifest, field, key, text string) string {
	if strings.Contains(text, "ethernets:") || strings.Contains(text, "version: 2") {
		c.AddFinding(m, field, conversion.RuleLost, "%s is a network-config of cloud-init's version 2, and a config drive has OpenStack's network_data.json: say network.cidr and annotate the hosts, or write it as links, networks and services", key)
		return ""
	}
	return text
}

// templateText returns the text of a MachineConfigTemplate; empty: it could not be carried over.
func (c *converter) templateText(m offline.Manifest, field, name, of string) string {
	t, there := c.templates[name]
	if !there {
		c.AddFinding(m, field, conversion.RuleLost, "MachineConfigTemplate %s is not in the files: give its file too", name)
		return ""
	}
	c.used[t.String()] = true
	text := t.StringField("spec", of)
	if text == "" {
		c.AddFinding(m, field, conversion.RuleLost, "MachineConfigTemplate %s has no %s", name, of)
	}
	return text
}

// convertSSHKeys returns the public keys of a property that has keys or the names of SSHKeys.
func (c *converter) convertSSHKeys(m offline.Manifest, field, text string) []string {
	var out []string
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		part = strings.TrimSpace(part)
		key, there := c.keys[part]
		switch {
		case part == "":
		case strings.Contains(part, " "):
			out = append(out, part)
		case there && key.StringField("spec", "publicKey") != "":
			c.used[key.String()] = true
			out = append(out, strings.TrimSpace(key.StringField("spec", "publicKey")))
		default:
			c.AddFinding(m, field, conversion.RuleLost, "SSHKey %s is not in the files, or has no spec.publicKey: add the public key to the property", part)
		}
	}
	return out
}

func (c *converter) convertNodeType(m offline.Manifest, field string, one map[string]any, inherited inheritedProperties) {
	said, name := conversion.ValueAt[map[string]any](one, "properties"), conversion.ValueAt[string](one, "name")
	ownImage := c.imageFromURL(m, field+".properties", name, said)
	spec := map[string]any{"providerRef": map[string]any{"name": m.Name()}}
	conversion.CopyField(spec, "displayName", conversion.ValueAt[string](one, "displayName"))
	conversion.CopyField(spec, "zone", conversion.ValueAt[string](one, "zone"))
	conversion.CopyField(spec, "hostSelector", conversion.ValueAt[map[string]any](one, "bareMetalHosts", "selector"))
	if spec["hostSelector"] == nil {
		c.AddFinding(m, field+".bareMetalHosts", conversion.RuleAdd, "NodeType %s has no selector, and one that selects every host is refused here: add spec.hostSelector", name)
	}
	image := cmp.Or(conversion.ValueAt[string](said, imageProperty), ownImage, conversion.ValueAt[string](inherited.all, imageProperty), conversion.ValueAt[string](inherited.image, imageProperty))
	if image == "" {
		c.AddFinding(m, field+".properties", conversion.RuleAdd, "NodeType %s names no OSImage: add spec.osImageRef", name)
	} else {
		spec["osImageRef"] = map[string]any{"name": image}
	}
	c.convertResources(m, field, name, spec, one)
	c.convertKubelet(m, field, spec, one)
	c.nameFights(m, field+".properties", name, said, inherited.all, spec["gpu"] != nil)
	c.convertProperties(m, field+".properties", spec, said, inherited.level)
	c.ReportDroppedFields(m, one, field, map[string]string{
		"overhead": "nothing is scheduled by it here", "cost": "NodePools name their NodeType; none is chosen by cost",
		"maxCapacity": "say it in replicas of the NodePools",
	}, "name", "displayName", "zone", "bareMetalHosts", "resources", "properties", "metadata", "kubeReserved")
	metadata := map[string]any{"name": name}
	for _, key := range []string{"labels", "annotations"} {
		conversion.CopyField(metadata, key, conversion.ValueAt[map[string]any](one, "metadata", key))
	}
	c.AddConverted("NodeType", metadata, spec)
}

func toInt64(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	case string:
		var n int64
		_, err := fmt.Sscanf(v, "%d", &n)
		return n, err == nil && fmt.Sprint(n) == v
	default:
		return 0, false
	}
}

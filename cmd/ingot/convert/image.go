package convert

import (
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// domain begins vMetal's property keys and annotations.
const domain = "metal3.vcluster.com/"

func cutGroup(apiVersion string) (group, version string, found bool) {
	return strings.Cut(apiVersion, "/")
}

func (c *converter) convertOSImage(m offline.Manifest) {
	said := conversion.ValueAt[map[string]any](m.Object, "spec", "properties")
	spec := c.imageSpec(m, "spec.properties", said)
	conversion.CopyField(spec, "displayName", conversion.ValueAt[string](m.Object, "spec", "displayName"))
	c.AddFinding(m, "spec", conversion.RuleAdd, conversion.CompleteImage)
	c.ReportDroppedFields(m, conversion.ValueAt[map[string]any](m.Object, "spec"), "spec", map[string]string{
		"description": "say it in displayName", "owner": "who may use an image is up to RBAC", "access": "who may use an image is up to RBAC",
	}, "displayName", "properties")
	c.ReportDroppedFields(m, said, "spec.properties", nil, imageProperties...)
	c.AddConverted("OSImage", conversion.NewMetadata(m), spec)
}

// imageProperties are the properties of an image.
var imageProperties = []string{imageURLProperty, domain + "image-checksum", domain + "image-checksum-type"}

const imageURLProperty = domain + "image-url"

// imageSpec returns the spec of an OSImage, as far as the properties say it.
func (c *converter) imageSpec(m offline.Manifest, field string, said map[string]any) map[string]any {
	return c.ConvertImage(m, field, conversion.Image{
		URL: conversion.ValueAt[string](said, imageURLProperty), Checksum: conversion.ValueAt[string](said, domain+"image-checksum"), ChecksumType: conversion.ValueAt[string](said, domain+"image-checksum-type"),
	})
}

// imageFromURL makes an OSImage of the image whose URL the properties have, named after the object that has them, and returns its name. It
// returns nothing when they have none, or name an OSImage too, which wins.
func (c *converter) imageFromURL(m offline.Manifest, field, owner string, said map[string]any) string {
	switch {
	case conversion.ValueAt[string](said, imageURLProperty) == "":
		for _, key := range imageProperties {
			if conversion.ValueAt[string](said, key) != "" {
				c.AddFinding(m, field, conversion.RuleLost, "%s: there is no %s beside it", key, imageURLProperty)
			}
		}
		return ""
	case conversion.ValueAt[string](said, imageProperty) != "":
		c.AddFinding(m, field, conversion.RuleLost, "%s: the OSImage %s is named too, and is used", imageURLProperty, conversion.ValueAt[string](said, imageProperty))
		return ""
	}
	name := owner + "-image"
	spec := c.imageSpec(m, field, said)
	c.AddFinding(m, field, conversion.RuleAdd, "OSImage %s is made of the URL: "+conversion.CompleteImage, name)
	c.AddConverted("OSImage", map[string]any{"name": name}, spec)
	return name
}

// keepHost keeps a BareMetalHost as it is, because Ingot reads vMetal's annotations for address, gateway and resolvers too.
func (c *converter) keepHost(m offline.Manifest) {
	if m.StringField("metadata", "annotations", domain+"ntp-servers") != "" {
		c.AddFinding(m, "metadata.annotations", conversion.RuleLost, "%sntp-servers: say it in the user data, ntp.servers", domain)
	}
	if conversion.ValueAt[map[string]any](m.Object, "spec", "consumerRef") != nil {
		c.AddFinding(m, "spec.consumerRef", conversion.RuleCheck, "vMetal has claimed it: delete its Machine there, so that the host is available before a Machine of Ingot's claims it")
	}
}

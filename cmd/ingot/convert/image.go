package convert

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// domain begins vMetal's property keys and annotations.
const domain = "metal3.vcluster.com/"

func cutGroup(apiVersion string) (group, version string, found bool) {
	return strings.Cut(apiVersion, "/")
}

func (c *converter) convertOSImage(m offline.Manifest) {
	said := valueAt[map[string]any](m.Object, "spec", "properties")
	spec := c.imageSpec(m, "spec.properties", said)
	copyField(spec, "displayName", valueAt[string](m.Object, "spec", "displayName"))
	c.addFinding(m, "spec", RuleAdd, completeImage)
	c.reportDroppedFields(m, valueAt[map[string]any](m.Object, "spec"), "spec", map[string]string{
		"description": "say it in displayName", "owner": "who may use an image is up to RBAC", "access": "who may use an image is up to RBAC",
	}, "displayName", "properties")
	c.reportDroppedFields(m, said, "spec.properties", nil, imageProperties...)
	c.addConverted("OSImage", newMetadata(m), spec)
}

// imageProperties are the properties of an image.
var imageProperties = []string{imageURLProperty, domain + "image-checksum", domain + "image-checksum-type"}

const (
	imageURLProperty = domain + "image-url"

	completeImage = "add spec.os (id and version, as /etc/os-release of the image has them) and spec.software: the kubelet's version, and those of the GPU driver and the container toolkit where they are baked in"
)

// imageSpec returns the spec of an OSImage, as far as the properties say it.
func (c *converter) imageSpec(m offline.Manifest, field string, said map[string]any) map[string]any {
	spec := map[string]any{}
	url := valueAt[string](said, imageURLProperty)
	copyField(spec, "url", url)
	c.convertChecksum(m, field, said, spec)
	if format := formatFromURL(url); format != "" {
		spec["format"] = string(format)
	} else {
		c.addFinding(m, field, RuleAdd, "the URL does not tell the image's format: add spec.format, one of raw, raw.gz, raw.zst, qcow2")
	}
	return spec
}

// imageFromURL makes an OSImage of the image whose URL the properties have, named after the object that has them, and returns its name. It
// returns nothing when they have none, or name an OSImage too, which wins.
func (c *converter) imageFromURL(m offline.Manifest, field, owner string, said map[string]any) string {
	switch {
	case valueAt[string](said, imageURLProperty) == "":
		for _, key := range imageProperties {
			if valueAt[string](said, key) != "" {
				c.addFinding(m, field, RuleLost, "%s: there is no %s beside it", key, imageURLProperty)
			}
		}
		return ""
	case valueAt[string](said, imageProperty) != "":
		c.addFinding(m, field, RuleLost, "%s: the OSImage %s is named too, and is used", imageURLProperty, valueAt[string](said, imageProperty))
		return ""
	}
	name := owner + "-image"
	spec := c.imageSpec(m, field, said)
	c.addFinding(m, field, RuleAdd, "OSImage %s is made of the URL: "+completeImage, name)
	c.addConverted("OSImage", map[string]any{"name": name}, spec)
	return name
}

// digestAlgorithms are the algorithms of digests by their number of hex digits.
var digestAlgorithms = map[int]string{64: "sha256", 128: "sha512"}

func (c *converter) convertChecksum(m offline.Manifest, field string, said, spec map[string]any) {
	sum, kind := valueAt[string](said, domain+"image-checksum"), valueAt[string](said, domain+"image-checksum-type")
	bare := strings.ToLower(sum)
	if _, after, found := strings.Cut(bare, ":"); found && !offline.IsURL(sum) {
		bare = after
	}
	switch {
	case sum == "":
		c.addFinding(m, field, RuleAdd, "there is no checksum: add spec.checksum, sha256:HEX or sha512:HEX")
	case offline.IsURL(sum) && kind != "md5":
		spec["checksum"] = sum
		c.addFinding(m, field, RuleCheck, "the checksum is a file, which is read once and pinned: sha256:HEX in spec.checksum names the image for good")
	case kind == "md5" || len(bare) == 32:
		c.addFinding(m, field, RuleAdd, "an md5 checksum proves nothing: add spec.checksum with sha256:HEX or sha512:HEX of the same file")
	case digestAlgorithms[len(bare)] == "" || strings.Trim(bare, "0123456789abcdef") != "":
		c.addFinding(m, field, RuleAdd, "the checksum has neither 64 nor 128 hex digits: add spec.checksum, sha256:HEX or sha512:HEX")
	default:
		spec["checksum"] = digestAlgorithms[len(bare)] + ":" + bare
	}
}

// formatFromURL returns the format that the extension of a URL says; empty: it says none.
func formatFromURL(url string) v1alpha1.ImageFormat {
	url, _, _ = strings.Cut(url, "?")
	for _, f := range []v1alpha1.ImageFormat{v1alpha1.FormatRawGzip, v1alpha1.FormatRawZstd, v1alpha1.FormatRaw, v1alpha1.FormatQCOW2} {
		if strings.HasSuffix(url, "."+string(f)) {
			return f
		}
	}
	return ""
}

// keepHost keeps a BareMetalHost as it is, because Ingot reads vMetal's annotations for address, gateway and resolvers too.
func (c *converter) keepHost(m offline.Manifest) {
	if m.StringField("metadata", "annotations", domain+"ntp-servers") != "" {
		c.addFinding(m, "metadata.annotations", RuleLost, "%sntp-servers: say it in the user data, ntp.servers", domain)
	}
	if valueAt[map[string]any](m.Object, "spec", "consumerRef") != nil {
		c.addFinding(m, "spec.consumerRef", RuleCheck, "vMetal has claimed it: delete its Machine there, so that the host is available before a Machine of Ingot's claims it")
	}
}

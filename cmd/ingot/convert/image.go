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
	spec := map[string]any{}
	copyField(spec, "displayName", valueAt[string](m.Object, "spec", "displayName"))
	copyField(spec, "url", m.StringField("spec", "properties", domain+"image-url"))
	c.convertChecksum(m, spec)
	url, _ := spec["url"].(string)
	if format := formatFromURL(url); format != "" {
		spec["format"] = string(format)
	} else {
		c.addFinding(m, "spec.properties", RuleAdd, "the URL does not tell the image's format: add spec.format, one of raw, raw.gz, raw.zst, qcow2")
	}
	c.addFinding(m, "spec", RuleAdd, "add spec.os (id and version, as /etc/os-release of the image has them) and spec.software: the kubelet's version, and those of the GPU driver and the container toolkit where they are baked in")
	c.reportDroppedFields(m, valueAt[map[string]any](m.Object, "spec"), "spec", map[string]string{
		"description": "say it in displayName", "owner": "who may use an image is up to RBAC", "access": "who may use an image is up to RBAC",
	}, "displayName", "properties")
	c.reportDroppedFields(m, valueAt[map[string]any](m.Object, "spec", "properties"), "spec.properties", nil, domain+"image-url", domain+"image-checksum", domain+"image-checksum-type")
	c.addConverted("OSImage", newMetadata(m), spec)
}

// digestAlgorithms are the algorithms of digests by their number of hex digits.
var digestAlgorithms = map[int]string{64: "sha256", 128: "sha512"}

func (c *converter) convertChecksum(m offline.Manifest, spec map[string]any) {
	const field = "spec.properties"
	sum, kind := m.StringField("spec", "properties", domain+"image-checksum"), m.StringField("spec", "properties", domain+"image-checksum-type")
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

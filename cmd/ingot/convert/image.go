package convert

import (
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// vMetal's property keys and annotations that begin alike.
const domain = "metal3.vcluster.com/"

func cutGroup(apiVersion string) (group, version string, found bool) {
	return strings.Cut(apiVersion, "/")
}

func (c *converter) osImage(m offline.Manifest) {
	spec := map[string]any{}
	carried(spec, "displayName", at[string](m.Object, "spec", "displayName"))
	carried(spec, "url", m.Word("spec", "properties", domain+"image-url"))
	c.checksum(m, spec)
	url, _ := spec["url"].(string)
	if format := formatOf(url); format != "" {
		spec["format"] = string(format)
	} else {
		c.add(m, "spec.properties", RuleAdd, "the URL does not tell the image's format: add spec.format, one of raw, raw.gz, raw.zst, qcow2")
	}
	c.add(m, "spec", RuleAdd, "add spec.os (id and version, as /etc/os-release of the image has them) and spec.software: the kubelet's version, and those of the GPU driver and the container toolkit where they are baked in")
	c.lost(m, at[map[string]any](m.Object, "spec"), "spec", map[string]string{
		"description": "say it in displayName", "owner": "who may use an image is up to RBAC", "access": "who may use an image is up to RBAC",
	})
	c.made("OSImage", map[string]any{"name": m.Name()}, spec)
}

// digits of the digests that can be pinned.
var digits = map[int]string{64: "sha256", 128: "sha512"}

func (c *converter) checksum(m offline.Manifest, spec map[string]any) {
	const field = "spec.properties"
	sum, kind := m.Word("spec", "properties", domain+"image-checksum"), m.Word("spec", "properties", domain+"image-checksum-type")
	bare := strings.ToLower(sum)
	if _, after, found := strings.Cut(bare, ":"); found && !offline.IsURL(sum) {
		bare = after
	}
	switch {
	case sum == "":
		c.add(m, field, RuleAdd, "there is no checksum: add spec.checksum, sha256:HEX or sha512:HEX")
	case offline.IsURL(sum) && kind != "md5":
		spec["checksum"] = sum
		c.add(m, field, RuleCheck, "the checksum is a file, which is read once and pinned: sha256:HEX in spec.checksum names the image for good")
	case kind == "md5" || len(bare) == 32:
		c.add(m, field, RuleAdd, "an md5 checksum proves nothing: add spec.checksum with sha256:HEX or sha512:HEX of the same file")
	case digits[len(bare)] == "" || strings.Trim(bare, "0123456789abcdef") != "":
		c.add(m, field, RuleAdd, "the checksum has neither 64 nor 128 hex digits: add spec.checksum, sha256:HEX or sha512:HEX")
	default:
		spec["checksum"] = digits[len(bare)] + ":" + bare
	}
}

// formatOf is the format that a URL's end tells; empty: it does not.
func formatOf(url string) v1alpha1.ImageFormat {
	url, _, _ = strings.Cut(url, "?")
	for _, f := range []v1alpha1.ImageFormat{v1alpha1.FormatRawGzip, v1alpha1.FormatRawZstd, v1alpha1.FormatRaw, v1alpha1.FormatQCOW2} {
		if strings.HasSuffix(url, "."+string(f)) {
			return f
		}
	}
	return ""
}

// host gives a BareMetalHost Ingot's annotation of its address. What a claim wrote is left out.
func (c *converter) host(m offline.Manifest) {
	annotations, kept := at[map[string]any](m.Object, "metadata", "annotations"), map[string]any{}
	ours := false
	for key, value := range annotations {
		switch name, vmetal := strings.CutPrefix(key, domain); {
		case vmetal && name == "ip-address":
			kept[v1alpha1.AnnotationIPAddress], ours = value, true
		case vmetal:
		case !strings.HasPrefix(key, "kubectl.kubernetes.io/"):
			kept[key] = value
		}
	}
	for _, name := range []string{"gateway", "dns-servers", "ntp-servers"} {
		if annotations[domain+name] != nil {
			ours = true
			where := map[string]string{"gateway": "network.cidr of the NodeProvider is the gateway", "dns-servers": "say it in network.dnsServers of the NodeProvider", "ntp-servers": "say it in the user data, ntp.servers"}[name]
			c.add(m, "metadata.annotations", RuleLost, "%s of one host: %s", domain+name, where)
		}
	}
	if !ours {
		return // it can stay as it is
	}
	metadata := map[string]any{"name": m.Name()}
	carried(metadata, "namespace", m.Namespace())
	carried(metadata, "labels", at[map[string]any](m.Object, "metadata", "labels"))
	carried(metadata, "annotations", kept)
	spec := map[string]any{}
	for key, value := range at[map[string]any](m.Object, "spec") {
		switch key {
		case "consumerRef", "image", "userData", "networkData", "metaData", "customDeploy":
		default:
			spec[key] = value
		}
	}
	c.object(cli.Object{"apiVersion": metal3.GroupVersion.String(), "kind": "BareMetalHost", "metadata": metadata, "spec": spec})
}

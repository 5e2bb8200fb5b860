package conversion

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// CompleteImage says what must be added to an OSImage that is made of a URL.
const CompleteImage = "add spec.os (id and version, as /etc/os-release of the image has them) and spec.software: the kubelet's version, and those of the GPU driver and the container toolkit where they are baked in"

// Image is an image as other systems name it.
type Image struct {
	URL, Checksum string
	// ChecksumType is md5, sha256 or sha512; empty: the checksum tells.
	ChecksumType string
	// Format is raw or qcow2; empty: the URL tells.
	Format string
}

// ConvertImage returns the spec of an OSImage, as far as the image says it.
func (r *Report) ConvertImage(m offline.Manifest, field string, image Image) map[string]any {
	spec := map[string]any{}
	CopyField(spec, "url", image.URL)
	r.convertChecksum(m, field, image, spec)
	if format := formatOf(image); format != "" {
		spec["format"] = string(format)
	} else {
		r.AddFinding(m, field, RuleAdd, "the URL does not tell the image's format: add spec.format, one of raw, raw.gz, raw.zst, qcow2")
	}
	return spec
}

// digestAlgorithms are the algorithms of digests by their number of hex digits.
var digestAlgorithms = map[int]string{64: "sha256", 128: "sha512"}

func (r *Report) convertChecksum(m offline.Manifest, field string, image Image, spec map[string]any) {
	sum, kind := image.Checksum, image.ChecksumType
	bare := strings.ToLower(sum)
	if _, after, found := strings.Cut(bare, ":"); found && !offline.IsURL(sum) {
		bare = after
	}
	switch {
	case sum == "":
		r.AddFinding(m, field, RuleAdd, "there is no checksum: add spec.checksum, sha256:HEX or sha512:HEX")
	case offline.IsURL(sum) && kind != "md5" && !strings.HasSuffix(sum, ".md5sum"):
		spec["checksum"] = sum
		r.AddFinding(m, field, RuleCheck, "the checksum is a file, which is read once and pinned: sha256:HEX in spec.checksum names the image for good")
	case kind == "md5" || offline.IsURL(sum) || len(bare) == 32:
		r.AddFinding(m, field, RuleAdd, "an md5 checksum proves nothing: add spec.checksum with sha256:HEX or sha512:HEX of the same file")
	case digestAlgorithms[len(bare)] == "" || strings.Trim(bare, "0123456789abcdef") != "":
		r.AddFinding(m, field, RuleAdd, "the checksum has neither 64 nor 128 hex digits: add spec.checksum, sha256:HEX or sha512:HEX")
	default:
		spec["checksum"] = digestAlgorithms[len(bare)] + ":" + bare
	}
}

// formatOf returns the format that the extension of the URL says, or else the one that is named; empty: neither is known.
func formatOf(image Image) v1alpha1.ImageFormat {
	url, _, _ := strings.Cut(image.URL, "?")
	for _, f := range []v1alpha1.ImageFormat{v1alpha1.FormatRawGzip, v1alpha1.FormatRawZstd, v1alpha1.FormatRaw, v1alpha1.FormatQCOW2} {
		if strings.HasSuffix(url, "."+string(f)) {
			return f
		}
	}
	if f := v1alpha1.ImageFormat(image.Format); f == v1alpha1.FormatRaw || f == v1alpha1.FormatQCOW2 {
		return f
	}
	return ""
}

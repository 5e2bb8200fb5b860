package machine

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheFormatOfAHostsImageIsOneThatMetal3Knows(t *testing.T) {
	for format, want := range map[v1alpha1.ImageFormat]string{
		v1alpha1.FormatRaw: "raw", v1alpha1.FormatRawZstd: "raw", v1alpha1.FormatQCOW2: "qcow2", v1alpha1.FormatLiveISO: "live-iso",
	} {
		obs := &observation{}
		obs.facts.Revision.Image = v1alpha1.ExactImage{URL: "http://images.example/a", Checksum: "sha256:a1", Format: format}
		if got := obs.hostImage(); *got.DiskFormat != want {
			t.Errorf("%s: expected %s, seen %s", format, want, *got.DiskFormat)
		}
	}
}

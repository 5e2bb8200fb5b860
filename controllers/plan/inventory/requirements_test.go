package inventory

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestTheImageRequiresItsArchitecture(t *testing.T) {
	for _, c := range []struct {
		image *v1alpha1.ExactImage
		want  string
	}{
		{nil, ""}, {&v1alpha1.ExactImage{}, "amd64"}, {&v1alpha1.ExactImage{Architecture: "arm64"}, "arm64"},
	} {
		for _, required := range []*v1alpha1.HardwareRequirements{nil, {}} {
			if got := Requirements(required, c.image).Architecture; got != c.want {
				t.Errorf("image %+v, requirements %+v: %q, want %q", c.image, required, got, c.want)
			}
		}
	}
	arm := &v1alpha1.HostInventory{Architecture: "aarch64"}
	if HardwareDifference(nil, &v1alpha1.ExactImage{}, arm) == "" || HardwareDifference(nil, &v1alpha1.ExactImage{Architecture: "arm64"}, arm) != "" {
		t.Error("an arm64 server is not compared with the image")
	}
}

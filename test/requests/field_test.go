package requests

import (
	"reflect"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestOnlyFieldsOfTheTypesAreFields(t *testing.T) {
	object := reflect.TypeFor[v1alpha1.NodeType]()
	for path, want := range map[string]bool{
		"spec.gpu.presentation.mig.layout[0].profiles": true, "spec.gpu.presentation.mig.layout[0].profiles[3g.40gb]": true,
		"spec.resources[nvidia.com/gpu]": true, "spec.gpu.driver.packages[12]": true, "spec.gpu": true,
		"spec.gpu.presentation.mig.layout.profiles": false, "spec.gpu.presentation.mig.layout[x].profiles": false, "spec.gpus": false,
		"spec.gpu.": false, "spec.gpu.count.x": false, "spec.gpu.count[0]": false, "spec.resources[nvidia.com/gpu": false,
	} {
		if got := hasField(object, path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

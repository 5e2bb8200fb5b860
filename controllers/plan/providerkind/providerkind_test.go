package providerkind_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

func TestTheREADMEHasTheTableOfTheKinds(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := providerkind.Table(); !strings.Contains(string(readme), table) {
		t.Errorf("README.md does not have this table:\n%s", table)
	}
}

func TestAFullEraseWithoutEvidenceIsNone(t *testing.T) {
	for _, kind := range providerkind.All() {
		want := v1alpha1.EraseMetadata
		if kind.Name == "redfish" {
			want = v1alpha1.EraseFull
		}
		if got := kind.ProvenErase(v1alpha1.EraseFull); got != want {
			t.Errorf("%s: a full erase counts as %s, expected %s", kind.Name, got, want)
		}
		for _, mode := range []v1alpha1.EraseMode{v1alpha1.EraseNone, v1alpha1.EraseMetadata} {
			if got := kind.ProvenErase(mode); got != mode {
				t.Errorf("%s: an erase of mode %s counts as %s", kind.Name, mode, got)
			}
		}
	}
}

package feasibility

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestALiveISOIsForIronicAndMetal3AndSaysWhatItLacks(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*v1alpha1.NodeProviderSpec)
		warnings int
		refused  bool
	}{
		"ironic":  {func(p *v1alpha1.NodeProviderSpec) { p.Redfish, p.Ironic = nil, &v1alpha1.IronicProvider{} }, 2, false},
		"metal3":  {func(p *v1alpha1.NodeProviderSpec) { p.Redfish, p.Metal3 = nil, &v1alpha1.Metal3Provider{} }, 2, false},
		"redfish": {func(*v1alpha1.NodeProviderSpec) {}, 0, true},
	} {
		in := possible()
		in.Image.Spec.Format = v1alpha1.FormatLiveISO
		c.change(&in.Provider.Spec)
		j := Check(in)
		if len(j.Warnings) != c.warnings || c.warnings > 0 && (j.Warnings[0].Rule != "image/not-verified" || j.Warnings[1].Rule != "image/not-kept") {
			t.Errorf("%s: the warnings are %v", name, j.Warnings)
		}
		if (j.Err() != nil) != c.refused || c.refused && j.Refusals[0].Reason != v1alpha1.ReasonFormatUnsupported {
			t.Errorf("%s: the refusals are %v", name, j.Refusals)
		}
	}
}

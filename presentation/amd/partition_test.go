package amd

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// TestWhatIsValidIsTheVendorsTable has the kernel's rule written out by hand, for eight compute dies and for the six of an MI300A.
func TestWhatIsValidIsTheVendorsTable(t *testing.T) {
	for model, want := range map[*catalogue.Model]string{
		{XCC: 8, Architecture: catalogue.CDNA4}: "spx_nps1=1 dpx_nps1=2 dpx_nps2=2 qpx_nps1=4 qpx_nps2=4 cpx_nps1=8 cpx_nps2=8",

		{XCC: 8}: "spx_nps1=1 dpx_nps1=2 dpx_nps2=2 qpx_nps1=4 qpx_nps4=4 cpx_nps1=8 cpx_nps4=8",
		{XCC: 6}: "spx_nps1=1 tpx_nps1=3 tpx_nps3=3 cpx_nps1=6",
		{}:       "",
	} {
		var got []string
		for _, c := range append(computeModes, "", "MPX") {
			for _, m := range []string{"", "NPS1", "NPS2", "NPS3", "NPS4", "NPS8"} {
				if p := (partition{c, m}); p.isValid(*model) {
					got = append(got, p.String()+"="+string(rune('0'+p.devicesPerGPU(model.XCC))))
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d dies, %s: %v, want %s", model.XCC, model.Architecture, got, want)
		}
	}
}

func TestEveryDocumentedPartitionAndEveryProfileIsValid(t *testing.T) {
	for name, all := range documentedPartitions {
		model, err := catalogue.Lookup(v1alpha1.VendorAMD, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if !p.isValid(model) {
				t.Errorf("%s is documented for %s and not valid", p, name)
			}
		}
	}
	for p, name := range configProfiles {
		if !p.isValid(catalogue.Model{XCC: 8}) || p != unpartitioned && !strings.HasPrefix(name, p.String()) {
			t.Errorf("%s is not valid, or not what the profile %s says", p, name)
		}
	}
}

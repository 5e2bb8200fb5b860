package catalogue

import (
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// reported has what drivers say of GPUs: the product's name (the list of GPUs of NVIDIA's open kernel modules) and, where it was measured, the total memory in MiB
// as nvidia-smi shows it.
var reported = map[string][]struct {
	product string
	memory  int64
}{
	"T4-16GB":                            {{"Tesla T4", 15360}},
	"A10-24GB":                           {{"NVIDIA A10", 23028}},
	"A16-16GB":                           {{"NVIDIA A16", 15356}},
	"A30-24GB":                           {{"NVIDIA A30", 24576}},
	"A40-48GB":                           {{"NVIDIA A40", 46068}},
	"A100-SXM4-40GB":                     {{"NVIDIA A100-SXM4-40GB", 40960}},
	"A100-SXM4-80GB":                     {{"NVIDIA A100-SXM4-80GB", 81920}},
	"A100-PCIe-40GB":                     {{"NVIDIA A100-PCIE-40GB", 40960}},
	"A100-PCIe-80GB":                     {{"NVIDIA A100 80GB PCIe", 81920}},
	"A800-SXM4-80GB":                     {{"NVIDIA A800-SXM4-80GB", 81920}},
	"A800-PCIe-80GB":                     {{"NVIDIA A800 80GB PCIe", 81920}},
	"L4-24GB":                            {{"NVIDIA L4", 23034}},
	"L40-48GB":                           {{"NVIDIA L40", 46068}},
	"L40S-48GB":                          {{"NVIDIA L40S", 46068}},
	"H100-SXM5-80GB":                     {{"NVIDIA H100 80GB HBM3", 81559}},
	"H100-PCIe-80GB":                     {{"NVIDIA H100 PCIe", 81559}},
	"H100-NVL-94GB":                      {{"NVIDIA H100 NVL", 95830}},
	"H800-SXM5-80GB":                     {{"NVIDIA H800", 81559}},
	"H800-PCIe-80GB":                     {{"NVIDIA H800 PCIe", 81559}},
	"H20-SXM5-96GB":                      {{"NVIDIA H20", 97871}},
	"H20-3e-SXM5-141GB":                  {{"NVIDIA H20-3e", 143771}},
	"H200-SXM-141GB":                     {{"NVIDIA H200", 143771}},
	"H200-NVL-141GB":                     {{"NVIDIA H200 NVL", 143771}},
	"GH200-96GB":                         {{"NVIDIA GH200 480GB", 97871}},
	"B200-SXM-180GB":                     {{"NVIDIA B200", 183359}},
	"B300-SXM-269GB":                     {{"NVIDIA B300 SXM6 AC", 275040}},
	"GB200-186GB":                        {{"NVIDIA GB200", 189471}},
	"RTX-PRO-6000-Blackwell-Server-96GB": {{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887}},
	"RTX-PRO-6000-Blackwell-Workstation-96GB": {{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887}},
	"RTX-PRO-6000-Blackwell-Max-Q-96GB":       {{"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887}},
}

// TestAGPUIsToldFromEveryOtherByItsNameAndItsMemory: what the driver says of a GPU fits its own model and no other.
func TestAGPUIsToldFromEveryOtherByItsNameAndItsMemory(t *testing.T) {
	for of, all := range reported {
		for _, r := range all {
			for _, m := range Models() {
				if m.Vendor != v1alpha1.VendorNVIDIA {
					continue
				}
				minimum, maximum := m.MemoryMiB()
				fits := hasProductWords(m, r.product) && minimum <= r.memory && r.memory <= maximum
				if fits != (m.Name == of) {
					t.Errorf("%q with %d MiB, which is %s, fits %s: %v", r.product, r.memory, of, m.Name, fits)
				}
			}
		}
	}
}

// TestModelsWithTheSameNamesDifferInMemory holds for models whose names nobody has measured too.
func TestModelsWithTheSameNamesDifferInMemory(t *testing.T) {
	for _, a := range Models() {
		for _, b := range Models() {
			aWords, aAbsent := a.ProductWords()
			bWords, bAbsent := b.ProductWords()
			if a.Name == b.Name || !slices.Equal(aWords, bWords) || !slices.Equal(aAbsent, bAbsent) {
				continue
			}
			least, most := a.MemoryMiB()
			if otherLeast, otherMost := b.MemoryMiB(); least <= otherMost && otherLeast <= most {
				t.Errorf("%s and %s have the same names, and memory of %d to %d and of %d to %d MiB", a.Name, b.Name, least, most, otherLeast, otherMost)
			}
		}
	}
}

// TestInstancesHaveTheirMemory has what nvidia-smi mig -lgip, or NVML, says of instances.
func TestInstancesHaveTheirMemory(t *testing.T) {
	for _, tt := range []struct {
		model, profile string
		memory         int64
		fits           bool
	}{
		{"A100-SXM4-40GB", "1g.5gb", 4864, true},
		{"A100-SXM4-40GB", "3g.20gb", 19968, true},
		{"A100-SXM4-80GB", "1g.10gb", 9728, true},
		{"A30-24GB", "1g.6gb", 5952, true},
		{"H100-SXM5-80GB", "1g.10gb", 9984, true},
		{"H100-SXM5-80GB", "7g.80gb", 81152, true},
		{"H100-SXM5-80GB", "3g.40gb", 19968, false},
		{"H100-SXM5-80GB", "1g.10gb", 17971, false},
		{"H200-SXM-141GB", "1g.18gb", 9984, false},
	} {
		model, err := Lookup(v1alpha1.VendorNVIDIA, tt.model)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(model.Geometry.Profiles, func(p Profile) bool { return slices.Contains(model.ProfileNames(p), tt.profile) })
		minimum, maximum := model.InstanceMemoryMiB(model.Geometry.Profiles[at])
		if (minimum <= tt.memory && tt.memory <= maximum) != tt.fits {
			t.Errorf("%s of %s has %d to %d MiB; %d fits: want %v", tt.profile, tt.model, minimum, maximum, tt.memory, tt.fits)
		}
	}
}

func hasProductWords(m Model, product string) bool {
	words, absent := m.ProductWords()
	named := nameWords(product)
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(named, w) }) && !slices.ContainsFunc(absent, func(w string) bool { return slices.Contains(named, w) })
}

package catalogue

import (
	"strings"
	"testing"
)

func TestProductNamesAreIdentified(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100-SXM5-80GB", "H100 80GB HBM3": "H100-SXM5-80GB", "NVIDIA H100 PCIe": "H100-PCIe-80GB",
		"NVIDIA H100 NVL": "H100-NVL-94GB", "  nvidia h100 nvl ": "H100-NVL-94GB", "NVIDIA H200 NVL": "H200-NVL-141GB",
		"NVIDIA A100-SXM4-80GB": "A100-SXM4-80GB", "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB", "A100-PCIE-40GB": "A100-PCIe-40GB",
		"NVIDIA A100 SXM4 40 GB": "A100-SXM4-40GB", "Tesla T4": "T4-16GB", "NVIDIA L40S": "L40S-48GB", "NVIDIA B200": "B200-SXM-180GB",
		"NVIDIA GB200": "GB200-186GB", "AMD Instinct MI300X OAM": "MI300X-192GB", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000-Blackwell-Server-96GB",
		"H100": "H100-SXM5-80GB H100-SXM5-96GB H100-PCIe-80GB H100-NVL-94GB", "NVIDIA GH200 480GB": "GH200-96GB GH200-144GB",
		"": "", "900-21010-0320-030": "", "NVSwitch": "", "Matrox G200eW3": "", "NVIDIA Corporation": "", "ConnectX-7": "", "NVIDIA H20": "H20-SXM5-96GB", "NVIDIA H20-3e": "H20-3e-SXM5-141GB", "NVIDIA RTX 6000 Ada Generation": "",
	} {
		var got []string
		for _, m := range IdentifyName(name) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q may be %q, expected %q", name, got, want)
		}
	}
}

func TestEveryModelIsIdentifiedByItsOwnName(t *testing.T) {
	for _, m := range Models() {
		if found := IdentifyName(m.Name); len(found) != 1 || found[0].Name != m.Name {
			t.Errorf("%s may be %d models", m.Name, len(found))
		}
	}
}

package catalogue

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the table into doc.go")

func TestTheTablesInThePackageDocumentationAreCurrent(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := string(source)
	for name, table := range map[string]string{"MODELS": tableOfModels(), "GEOMETRIES": tableOfGeometries()} {
		between := regexp.MustCompile(`(?s)// BEGIN ` + name + `\n.*// END ` + name + `\n`)
		want = between.ReplaceAllLiteralString(want, "// BEGIN "+name+"\n//\n"+table+"//\n// END "+name+"\n")
	}
	if *update {
		if err := os.WriteFile("doc.go", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(source) {
		t.Error("a table in doc.go is stale: go test ./presentation/catalogue -update")
	}
}

func tableOfModels() string {
	var out strings.Builder
	row := func(cells ...any) {
		out.WriteString(strings.TrimRight(fmt.Sprintf("//\t%-34s %-14s %-11s %-12s %-9s %-9s %-14s %-4s %-9s %-6s %s", cells...), " ") + "\n")
	}
	row("model", "PCI ids", "memory", "arch", "form", "link", "minimum driver", "open", "MIG", "vGPU", "profiles")
	for _, m := range Models() {
		geometry, names, totals, withOpenModules, driver := "no", []string{}, []string{}, "", m.MinimumDriver
		if m.Geometry != nil {
			geometry = m.Geometry.Name
			if m.PlacementsInferred {
				geometry += "?"
			}
			for _, p := range m.Geometry.Profiles {
				names = append(names, strings.Join(m.ProfileNames(p), "|"))
			}
		}
		for _, total := range m.MemoryGiB {
			totals = append(totals, fmt.Sprint(total))
		}
		if m.OpenModules {
			withOpenModules = "only"
		}
		if driver == "" {
			driver = "not verified"
		}
		row(m.Name, m.PCIVendor+":"+strings.Join(m.PCIDevices, ","), strings.Join(totals, "|")+" GiB", m.Architecture, m.FormFactor, m.Link, driver, withOpenModules, geometry, m.VGPUName, strings.Join(names, " "))
	}
	return out.String()
}

func tableOfGeometries() string {
	var out strings.Builder
	fmt.Fprintf(&out, "//\t%-9s %2s %7s %6s %3s %-7s %-6s %s\n", "MIG", "id", "compute", "memory", "max", "suffix", "driver", "starts")
	for _, g := range Geometries() {
		for _, p := range g.Profiles {
			fmt.Fprintf(&out, "//\t%-9s %2d %3d / %d %2d / %d %3d %-7s %-6s %v\n", g.Name, p.ID, p.ComputeSlices, g.ComputeSlices, p.MemorySlices, g.MemorySlices, p.Max, p.Suffix, p.MinimumDriver, p.Starts)
		}
	}
	return out.String()
}

func TestEveryModelIsCompleteAndUnique(t *testing.T) {
	hex, names, ids := regexp.MustCompile(`^[0-9a-f]{4}$`), map[string]bool{}, map[string]bool{}
	for _, m := range Models() {
		if names[m.Name] || m.Vendor == "" || len(m.MemoryGiB) == 0 || m.Architecture == "" || m.FormFactor == "" || m.Link == "" || len(m.PCIDevices) == 0 {
			t.Errorf("%s is there twice, or lacks something: %+v", m.Name, m)
		}
		names[m.Name] = true
		if !strings.HasSuffix(m.Name, fmt.Sprintf("-%dGB", m.MemoryGiB[0])) || strings.Contains(m.Name, "SXM") != (m.FormFactor == SXM) {
			t.Errorf("%s is called otherwise than what it is: %+v", m.Name, m)
		}
		for _, id := range m.PCIDevices {
			if !hex.MatchString(id) || !hex.MatchString(m.PCIVendor) || ids[id] {
				t.Errorf("%s: PCI id %s:%s is malformed or another model's too", m.Name, m.PCIVendor, id)
			}
			ids[id] = true
		}
		if (m.Geometry != nil || m.XCC > 0) && m.Architecture == Turing || m.OpenModules && m.Vendor != v1alpha1.VendorNVIDIA {
			t.Errorf("%s has what its architecture has not: %+v", m.Name, m)
		}
	}
	for id := range pciNames {
		if !ids[id] {
			t.Errorf("the PCI id %s has a name and no model", id)
		}
	}
}

func TestLookupNamesWhatItKnows(t *testing.T) {
	if _, err := Lookup(v1alpha1.VendorNVIDIA, "h100"); err == nil || !strings.Contains(err.Error(), "H100-SXM5-80GB") || strings.Contains(err.Error(), "GH200") {
		t.Errorf("error %v does not name the models", err)
	}
	if _, err := Lookup(v1alpha1.VendorNVIDIA, ""); err == nil || !strings.Contains(err.Error(), "GH200") {
		t.Errorf("got %v", err)
	}
	if _, err := Lookup(v1alpha1.VendorAMD, "H100-SXM5-80GB"); err == nil || !strings.Contains(err.Error(), "MI300X-192GB") {
		t.Errorf("another vendor's model was found, or error %v does not name the models", err)
	}
	for name, want := range map[string]string{
		"H100-SXM-80GB":                     `: did you mean H100-SXM5-80GB?`,
		"NVIDIA H100 80GB HBM3":             `: did you mean H100-SXM5-80GB?`,
		"NVIDIA H100 NVL":                   `: did you mean H100-NVL-94GB?`,
		"h100-sxm5-80gb":                    `, where these begin so: H100-SXM5-80GB`,
		"GB20O-186GB":                       `: did you mean GB200-186GB?`,
		"B100":                              "; for another GPU set gpu.vendor: generic",
		strings.Repeat("H100-SXM5-80GB", 9): "; for another GPU set gpu.vendor: generic",
	} {
		if _, err := Lookup(v1alpha1.VendorNVIDIA, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	if _, err := Lookup(v1alpha1.VendorAMD, "MI308X-192GB"); err == nil || !strings.Contains(err.Error(), "gpu.vendor: generic") || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("error %v of a product without documents does not name generic", err)
	}
	if _, err := Lookup(v1alpha1.VendorGeneric, "H100-SXM5-80GB"); err == nil {
		t.Error("a model of a vendor that the catalogue does not have was found")
	}
}

func TestModelsAreKnownByTheirPCIIds(t *testing.T) {
	for _, m := range Models() {
		for _, id := range m.PCIDevices {
			if got, known := Identify(m.PCIVendor, id); !known || got.Name != m.Name {
				t.Errorf("%s:%s is %q, expected %s", m.PCIVendor, id, got.Name, m.Name)
			}
		}
	}
	if m, known := Identify("1002", "2330"); known {
		t.Errorf("another vendor's device is %s", m.Name)
	}
}

func TestOnlyAmpereKeepsTheMIGMode(t *testing.T) {
	for _, m := range Models() {
		if m.HasPersistentMIGMode() != (strings.HasPrefix(m.Name, "A100") || strings.HasPrefix(m.Name, "A800") || m.Name == "A30-24GB") {
			t.Errorf("%s: the MIG mode persists: %v", m.Name, m.HasPersistentMIGMode())
		}
	}
}

// profiles is the table of profiles in NVIDIA's MIG user guide, typed in by hand, from the largest.
var profiles = map[string]string{
	"A100-SXM4-40GB": "7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me",
	"A100-SXM4-80GB": "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"A100-PCIe-40GB": "7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me",
	"A100-PCIe-80GB": "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H100-SXM5-80GB": "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H100-PCIe-80GB": "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H100-NVL-94GB":  "7g.94gb 4g.47gb 3g.47gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me",
	"H100-SXM5-96GB": "7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me",
	"GH200-96GB":     "7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me",
	"GH200-144GB":    "7g.144gb 4g.72gb 3g.72gb 2g.36gb 1g.36gb 1g.18gb 1g.18gb+me",
	"B200-SXM-180GB": "7g.180gb 4g.90gb 3g.90gb 2g.45gb 1g.45gb 1g.23gb 1g.23gb+me",
	"B300-SXM-269GB": "7g.269gb 4g.135gb 3g.135gb 2g.67gb 1g.67gb 1g.34gb 1g.34gb+me",
	"GB200-186GB":    "7g.186gb 7g.189gb 4g.93gb 4g.95gb 3g.93gb 3g.95gb 2g.47gb 1g.47gb 1g.23gb 1g.24gb 1g.23gb+me 1g.24gb+me",
	"GB300-278GB":    "7g.278gb 4g.139gb 3g.139gb 2g.70gb 1g.70gb 1g.35gb 1g.35gb+me",
	"A30-24GB":       "4g.24gb 2g.12gb 2g.12gb+me 1g.6gb 1g.6gb+me",
	"RTX-PRO-6000-Blackwell-Server-96GB": "4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all " +
		"1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all",
	"H200-SXM-141GB": "7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me",
	"H200-NVL-141GB": "7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me",

	"A800-SXM4-40GB":    "7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me",
	"A800-SXM4-80GB":    "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"A800-PCIe-40GB":    "7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me",
	"A800-PCIe-80GB":    "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H800-SXM5-80GB":    "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H800-PCIe-80GB":    "7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me",
	"H800-NVL-94GB":     "7g.94gb 4g.47gb 3g.47gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me",
	"H20-SXM5-96GB":     "7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me",
	"H20-3e-SXM5-141GB": "7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me",
	"RTX-PRO-6000-Blackwell-Workstation-96GB": "4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all " +
		"1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all",
	"RTX-PRO-6000-Blackwell-Max-Q-96GB": "4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all " +
		"1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all",
}

// TestThePCIIdsAreThoseOfTheVendorsLists has the ids and product names of the list of supported GPUs in NVIDIA's open kernel modules (release 595), and of
// AMD's system health checks, typed in by hand.
func TestThePCIIdsAreThoseOfTheVendorsLists(t *testing.T) {
	for id, want := range map[string]struct{ product, model string }{
		"10de:20bd": {"NVIDIA A800-SXM4-40GB", "A800-SXM4-40GB"}, "10de:20f3": {"NVIDIA A800-SXM4-80GB", "A800-SXM4-80GB"}, "10de:20f5": {"NVIDIA A800 80GB PCIe", "A800-PCIe-80GB"},
		"10de:20f6": {"", "A800-PCIe-40GB"}, "10de:25b6": {"NVIDIA A16", "A16-16GB"}, "10de:26b5": {"NVIDIA L40", "L40-48GB"},
		"10de:2322": {"NVIDIA H800 PCIe", "H800-PCIe-80GB"}, "10de:2324": {"", "H800-SXM5-80GB"}, "10de:233a": {"NVIDIA H800 NVL", "H800-NVL-94GB"},
		"10de:2329": {"NVIDIA H20", "H20-SXM5-96GB"}, "10de:232c": {"NVIDIA H20-3e", "H20-3e-SXM5-141GB"},
		"10de:2bb1": {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000-Blackwell-Workstation-96GB"},
		"10de:2bb4": {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-Blackwell-Max-Q-96GB"},
		"10de:233d": {"", "H100-SXM5-96GB"}, "10de:2338": {"", "H100-SXM5-96GB"},
		"1002:75a0": {"AMD Instinct MI350X", "MI350X-288GB"}, "1002:75a3": {"AMD Instinct MI355X", "MI355X-288GB"},
	} {
		vendor, device, _ := strings.Cut(id, ":")
		if m, known := Identify(vendor, device); !known || m.Name != want.model {
			t.Errorf("%s is %q, want %s", id, m.Name, want.model)
		}
		if named := IdentifyName(want.product); want.product != "" && (len(named) != 1 || named[0].Name != want.model) {
			t.Errorf("%q may be %d models, want %s", want.product, len(named), want.model)
		}
	}
}

func TestTheNamesOfProfilesAreThoseOfTheVendorsTable(t *testing.T) {
	for _, m := range Models() {
		var got []string
		if m.Geometry == nil {
			if profiles[m.Name] != "" {
				t.Errorf("%s cannot be partitioned, want %s", m.Name, profiles[m.Name])
			}
			continue
		}
		for _, p := range m.Geometry.Profiles {
			got = append(got, m.ProfileNames(p)...)
		}
		if strings.Join(got, " ") != profiles[m.Name] {
			t.Errorf("%s has the profiles %v, want %s", m.Name, got, profiles[m.Name])
		}
	}
}

func TestAModelWhoseMemoryDiffersBetweenDriversHasBothNames(t *testing.T) {
	grace := Model{MemoryGiB: []int{186, 189}, Geometry: sevenSlices}
	for i, want := range []string{"7g.186gb 7g.189gb", "4g.93gb 4g.95gb", "3g.93gb 3g.95gb", "2g.47gb", "1g.47gb", "1g.23gb 1g.24gb", "1g.23gb+me 1g.24gb+me"} {
		if got := strings.Join(grace.ProfileNames(sevenSlices.Profiles[i]), " "); got != want {
			t.Errorf("profile %d is called %s, want %s", i, got, want)
		}
	}
	if names := (Model{MemoryGiB: []int{48}}).ProfileNames(sevenSlices.Profiles[0]); names != nil {
		t.Errorf("a model that cannot be partitioned has the profile %v", names)
	}
}

func TestEveryPlacementOfAGeometryLiesOnTheGPU(t *testing.T) {
	for _, g := range Geometries() {
		ids := map[int]bool{}
		for _, p := range g.Profiles {
			if ids[p.ID] || len(p.Starts) < p.Max || p.ComputeSlices > g.ComputeSlices {
				t.Errorf("%s: profile %d is there twice, or has fewer places than instances, or is larger than the GPU", g.Name, p.ID)
			}
			ids[p.ID] = true
			for i, s := range p.Starts {
				if s < 0 || s+p.MemorySlices > g.MemorySlices || i > 0 && s <= p.Starts[i-1] {
					t.Errorf("%s: profile %d: start %d lies off the GPU, or is out of order", g.Name, p.ID, s)
				}
			}
		}
		for _, c := range g.Combinations {
			for _, id := range c.IDs {
				if !ids[id] {
					t.Errorf("%s: a combination names profile %d, which does not exist", g.Name, id)
				}
			}
		}
	}
}

func TestTheNamesOfPassedThroughGPUsAreTheDevicePlugins(t *testing.T) {
	for model, want := range map[string]string{
		"A100-SXM4-40GB": "GA100_A100_SXM4_40GB", "A100-PCIe-40GB": "GA100_A100_PCIE_40GB", "A30-24GB": "GA100GL_A30_PCIE", "T4-16GB": "TU104GL_TESLA_T4",
		"H100-SXM5-80GB": "GH100_H100_SXM5_80GB", "H100-PCIe-80GB": "GH100_H100_PCIE", "H100-NVL-94GB": "GH100_H100L_94GB", "GH200-96GB": "GH100_GH200_120GB___480GB",
		"GH200-144GB": "GH100_GH200_144G_HBM3E", "L40S-48GB": "AD102GL_L40S", "GB200-186GB": "GB100_HGX_GB200", "A800-SXM4-40GB": "GA100_A800_SXM4_40GB", "A800-PCIe-40GB": "GA100_A800_40GB_PCIE",
		"H800-PCIe-80GB": "GH100_H800_PCIE", "H800-SXM5-80GB": "GH100_H800", "H20-3e-SXM5-141GB": "GH100_H20_HBM3E", "H100-SXM5-96GB": "GH100_H100_96GB GH100_H100_SXM5_96GB", "H800-NVL-94GB": "GH100_H800L_94GB",
		"RTX-PRO-6000-Blackwell-Workstation-96GB": "GB202GL_RTX_PRO_6000_BLACKWELL_WORKSTATION_EDITION", "RTX-PRO-6000-Blackwell-Max-Q-96GB": "GB202GL_RTX_PRO_6000_BLACKWELL_MAXQ_WORKSTATION_EDITION",
		"RTX-PRO-6000-Blackwell-Server-96GB": "GB202GL_RTX_PRO_6000_BLACKWELL_SERVER_EDITION",
	} {
		m, err := Lookup(v1alpha1.VendorNVIDIA, model)
		if err != nil {
			t.Fatal(err)
		}
		if names, unlisted := m.KubeVirtResourceNames(); strings.Join(names, " ") != want || len(unlisted) > 0 {
			t.Errorf("%s is advertised as %v, and %v is unlisted; want %s", model, names, unlisted, want)
		}
	}
	b300, err := Lookup(v1alpha1.VendorNVIDIA, "B300-SXM-269GB")
	if err != nil {
		t.Fatal(err)
	}
	if names, unlisted := b300.KubeVirtResourceNames(); len(names) > 0 || strings.Join(unlisted, " ") != "3182" {
		t.Errorf("the plugin's file does not list B300: %v, %v", names, unlisted)
	}
}

func TestEveryVGPUTypeIsReadAndFitsOnItsGPU(t *testing.T) {
	for _, m := range Models() {
		types := m.VGPUTypes()
		if len(types) != len(strings.Fields(m.vgpuTypes)) || (m.VGPUName == "") != (len(types) == 0) {
			t.Errorf("%s: %d types were read of %q", m.Name, len(types), m.vgpuTypes)
		}
		seen := map[string]bool{}
		for _, v := range types {
			total := m.MemoryGiB[len(m.MemoryGiB)-1]
			if seen[v.Name] || v.Slices == 0 && (v.GiB*v.Max > total+1 || v.Media) {
				t.Errorf("%s: %+v is there twice, or does not fit in %d GiB", m.Name, v, total)
			}
			seen[v.Name] = true
			if v.Slices > 0 && m.ProfileIndex(v) < 0 {
				t.Errorf("%s: %s has no MIG profile behind it", m.Name, v.Name)
			}
		}
	}
}

func FuzzVGPUTypes(f *testing.F) {
	for _, m := range Models() {
		f.Add(m.vgpuTypes)
	}
	f.Add("0C1 1-C1 8-1C1 1-10CMEME1 9999C1 1C0 -")
	f.Fuzz(func(t *testing.T, s string) {
		for _, v := range (Model{VGPUName: "X", vgpuTypes: s}).VGPUTypes() {
			name := fmt.Sprintf("X-%d%s", v.GiB, v.Series)
			if v.Slices > 0 {
				name = fmt.Sprintf("X-%d-%d%s", v.Slices, v.GiB, v.Series)
			}
			if v.Media {
				name += "ME"
			}
			if v.Name != name || v.GiB < 1 || v.Max < 1 || v.Slices > 7 {
				t.Errorf("%q has the type %+v, want %s", s, v, name)
			}
		}
	})
}

func FuzzIdentify(f *testing.F) {
	f.Add("10de", "2330")
	f.Add("10DE", "2330")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, vendor, device string) {
		m, known := Identify(vendor, device)
		if known && (m.PCIVendor != vendor || !strings.Contains(strings.Join(m.PCIDevices, " "), device) || len(device) != 4) {
			t.Errorf("%q:%q is %s", vendor, device, m.Name)
		}
	})
}

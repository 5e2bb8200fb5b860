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

func TestTheTableInThePackageDocumentationIsCurrent(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "//\t%-16s %-14s %7s  %-7s %-5s %-14s %s\n", "model", "PCI ids", "memory", "arch", "form", "minimum driver", "NVSwitch")
	for _, m := range Models() {
		nvswitch := "no"
		if m.HasNVSwitch(8) {
			nvswitch = "from 5 GPUs"
		}
		fmt.Fprintf(&table, "//\t%-16s %-14s %4d GiB %-7s %-5s %-14s %s\n", m.Name, m.PCIVendor+":"+strings.Join(m.PCIDevices, ","), m.MemoryGiB[0], m.Architecture, m.FormFactor, m.MinimumDriver, nvswitch)
	}
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)// BEGIN MODELS\n.*// END MODELS\n`).ReplaceAllLiteralString(string(source), "// BEGIN MODELS\n//\n"+table.String()+"//\n// END MODELS\n")
	if *update {
		if err := os.WriteFile("doc.go", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(source) {
		t.Error("the table in doc.go is stale: go test ./presentation/catalogue -update")
	}
}

func TestEveryModelIsCompleteAndUnique(t *testing.T) {
	hex, names, ids := regexp.MustCompile(`^[0-9a-f]{4}$`), map[string]bool{}, map[string]bool{}
	for _, m := range Models() {
		if names[m.Name] || m.Vendor == "" || len(m.MemoryGiB) == 0 || m.Architecture == "" || m.FormFactor == "" || m.MinimumDriver == "" {
			t.Errorf("%s is there twice, or lacks something: %+v", m.Name, m)
		}
		names[m.Name] = true
		if !strings.Contains(m.Name, fmt.Sprintf("%dGB", m.MemoryGiB[0])) || !strings.Contains(m.Name, string(m.FormFactor)) && !strings.Contains(m.Name, "NVL") {
			t.Errorf("%s is called otherwise than what it is: %+v", m.Name, m)
		}
		for _, id := range m.PCIDevices {
			if !hex.MatchString(id) || !hex.MatchString(m.PCIVendor) || ids[id] {
				t.Errorf("%s: PCI id %s:%s is malformed or another model's too", m.Name, m.PCIVendor, id)
			}
			ids[id] = true
		}
	}
}

func TestLookupNamesWhatItKnows(t *testing.T) {
	if _, err := Lookup(v1alpha1.VendorNVIDIA, "h100"); err == nil || !strings.Contains(err.Error(), "H100-SXM5-80GB") {
		t.Errorf("error %v does not name the models", err)
	}
	if _, err := Lookup(v1alpha1.VendorAMD, "MI300X"); err == nil {
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
		if m.MIGModePersists() != strings.HasPrefix(m.Name, "A100") {
			t.Errorf("%s: the MIG mode persists: %v", m.Name, m.MIGModePersists())
		}
	}
}

package spdx_test

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/imagebuilder/spdx"
)

func contents() spdx.Contents {
	return spdx.Contents{
		Image:    spdx.Image{Name: "debian-12-0123456789ab.raw.zst", SHA256: strings.Repeat("a", 64)},
		Packages: []recipe.Package{{Name: "libstdc++6", Version: "1:12.2.0-14+deb12u1", Architecture: "amd64", Source: "gcc-12"}, {Name: "adduser", Version: "3.134", Architecture: "all"}},
		Programs: []spdx.Program{
			{Path: "/usr/bin/a", Info: debug.BuildInfo{GoVersion: "go1.26.8", Path: "example.com/a", Main: debug.Module{Path: "image.invalid/program", Version: "(devel)"},
				Deps: []*debug.Module{{Path: "example.com/a", Version: "v1.2.3", Sum: "h1:x="}, {Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.37.0"}}}}},
			{Path: "/usr/bin/b", Info: debug.BuildInfo{GoVersion: "go1.26.8", Path: "example.com/a/b", Deps: []*debug.Module{{Path: "example.com/a", Version: "v1.2.3"}}}},
		},
		Files: []spdx.File{{Path: "/etc/x", SHA1: strings.Repeat("b", 40), SHA256: strings.Repeat("c", 64)}},
	}
}

// TestTheDocumentIsWhatTheSpecificationDemands reads the document as JSON and checks the rules of SPDX 2.3 for the members that it uses: the
// identifiers (3.2), the mandatory fields of documents (6), packages (7), files (8) and relationships (11).
func TestTheDocumentIsWhatTheSpecificationDemands(t *testing.T) {
	text, err := contents().Document(1767225600).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		SPDXVersion, DataLicense, SPDXID, Name, DocumentNamespace string
		CreationInfo                                              struct {
			Created  string
			Creators []string
		}
		Packages, Files []map[string]any
		Relationships   []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.SPDXID != "SPDXRef-DOCUMENT" || d.Name == "" || !strings.HasPrefix(d.DocumentNamespace, "https://") ||
		strings.Contains(d.DocumentNamespace, "#") || d.CreationInfo.Created != "2026-01-01T00:00:00Z" || !strings.HasPrefix(d.CreationInfo.Creators[0], "Tool: ") {
		t.Errorf("the document: %+v", d)
	}
	identifiers := map[string]bool{d.SPDXID: true}
	pattern := regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`)
	for _, e := range append(d.Packages, d.Files...) {
		id, _ := e["SPDXID"].(string)
		if !pattern.MatchString(id) || identifiers[id] {
			t.Errorf("%v: the identifier is wrong or not unique", e)
		}
		identifiers[id] = true
	}
	for _, p := range d.Packages {
		if p["name"] == "" || p["downloadLocation"] == nil || p["filesAnalyzed"] != false {
			t.Errorf("a package lacks a mandatory field: %v", p)
		}
	}
	for _, r := range d.Relationships {
		if !identifiers[r.SPDXElementID] || !identifiers[r.RelatedSPDXElement] {
			t.Errorf("%+v names what is not there", r)
		}
	}
	if !strings.Contains(string(text), `"spdxElementId": "SPDXRef-DOCUMENT",
   "relationshipType": "DESCRIBES",
   "relatedSpdxElement": "SPDXRef-Image"`) {
		t.Error("the document does not say that it describes the image")
	}
}

func TestEverythingIsListedOnceWithItsPackageURL(t *testing.T) {
	text, err := contents().Document(0).JSON()
	if err != nil {
		t.Fatal(err)
	}
	for want, count := range map[string]int{
		`"pkg:golang/example.com/a@v1.2.3"`: 1, `"pkg:golang/k8s.io/api@v0.37.0"`: 1, `"pkg:golang/stdlib@1.26.8"`: 1,
		`"pkg:deb/debian/libstdc++6@1%3A12.2.0-14%2Bdeb12u1?arch=amd64"`: 1, `"go.sum: h1:x="`: 1, `"./etc/x"`: 1, "image.invalid": 0, "v0.0.0": 0,
		`"DEPENDS_ON"`: 5, `"CONTAINS"`: 5,
	} {
		if got := strings.Count(string(text), want); got != count {
			t.Errorf("%s is there %d times, expected %d", want, got, count)
		}
	}
}

package container

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"slices"
)

// element is a package of an SPDX document (version 2.3, section 7).
type element struct {
	ID               string        `json:"SPDXID"`
	Name             string        `json:"name"`
	Version          string        `json:"versionInfo,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	LicenseConcluded string        `json:"licenseConcluded"`
	LicenseDeclared  string        `json:"licenseDeclared"`
	CopyrightText    string        `json:"copyrightText"`
	ExternalRefs     []externalRef `json:"externalRefs,omitempty"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

// fileElement is a file of an SPDX document. SPDX demands its SHA-1; nothing here relies on that.
type fileElement struct {
	ID               string           `json:"SPDXID"`
	Name             string           `json:"fileName"`
	Checksums        []map[string]any `json:"checksums"`
	LicenseConcluded string           `json:"licenseConcluded"`
	CopyrightText    string           `json:"copyrightText"`
}

// noAssertion says that something was not looked at.
const noAssertion = "NOASSERTION"

// Contents returns what the image of a Go program consists of, as an SPDX document in JSON: the modules that the program was built from, the Go
// release, and every file with its digest. Licences are not concluded.
func Contents(imageName, version, program string, layers []Layer) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a Go program: %w", program, err)
	}
	packages := append([]element{newElement("Image", imageName, version, "")}, moduleElements(info, version)...)
	files, digest, err := fileElements(layers)
	if err != nil {
		return nil, err
	}
	relations := []map[string]string{relation("SPDXRef-DOCUMENT", "DESCRIBES", packages[0].ID)}
	for _, p := range packages[1:] {
		relations = append(relations, relation(packages[0].ID, "CONTAINS", p.ID))
	}
	for _, f := range files {
		relations = append(relations, relation(packages[0].ID, "CONTAINS", f.ID))
	}
	return json.MarshalIndent(map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": imageName,
		"documentNamespace": "https://ingot.dev/spdx/" + imageName + "-" + digest,
		"creationInfo":      map[string]any{"created": epoch.Format("2006-01-02T15:04:05Z"), "creators": []string{"Tool: ingot-image-manager"}},
		"packages":          packages, "files": files, "relationships": relations,
	}, "", " ")
}

// moduleElements returns the program's own module, the Go release and the modules that the program was built from.
func moduleElements(info *debug.BuildInfo, version string) []element {
	var all []element
	add := func(name, version string) {
		all = append(all, newElement(fmt.Sprintf("Module-%d", len(all)), name, version, "pkg:golang/"+name+"@"+url.PathEscape(version)))
	}
	add(info.Main.Path, version)
	add("stdlib", info.GoVersion)
	for _, m := range slices.SortedFunc(slices.Values(info.Deps), compareModules) {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version)
	}
	return all
}

func compareModules(a, b *debug.Module) int {
	return cmp.Compare(a.Path, b.Path)
}

func newElement(id, name, version, locator string) element {
	e := element{ID: "SPDXRef-" + id, Name: name, Version: version, DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion}
	if locator != "" {
		e.ExternalRefs = []externalRef{{"PACKAGE-MANAGER", "purl", locator}}
	}
	return e
}

func relation(from, kind, to string) map[string]string {
	return map[string]string{"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to}
}

// fileElements returns the files of all layers, and a digest over their digests.
func fileElements(layers []Layer) (elements []fileElement, digest string, err error) {
	all := sha256.New()
	for _, layer := range layers {
		for _, f := range layer {
			first, second, err := f.digests()
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintln(all, second, f.Path)
			elements = append(elements, fileElement{
				ID: fmt.Sprintf("SPDXRef-File-%d", len(elements)), Name: "./" + f.Path, LicenseConcluded: noAssertion, CopyrightText: noAssertion,
				Checksums: []map[string]any{{"algorithm": "SHA1", "checksumValue": first}, {"algorithm": "SHA256", "checksumValue": second}},
			})
		}
	}
	return elements, hex.EncodeToString(all.Sum(nil)), nil
}

// digests returns the SHA-1 and the SHA-256 of the content in hex.
func (f File) digests() (first, second string, err error) {
	content, _, err := f.open()
	if err != nil {
		return "", "", err
	}
	defer content.Close()
	one, two := sha1.New(), sha256.New()
	if _, err := io.Copy(io.MultiWriter(one, two), content); err != nil {
		return "", "", err
	}
	return hex.EncodeToString(one.Sum(nil)), hex.EncodeToString(two.Sum(nil)), nil
}

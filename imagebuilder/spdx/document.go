package spdx

import "encoding/json"

// noAssertion says that something was not looked at.
const noAssertion = "NOASSERTION"

// Document is an SPDX document. The names of its members are those of the specification, version 2.3.
type Document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	CreationInfo  CreationInfo   `json:"creationInfo"`
	Packages      []Element      `json:"packages"`
	Files         []FileElement  `json:"files,omitempty"`
	Relationships []Relationship `json:"relationships"`
}

// CreationInfo says when and by what the document was made.
type CreationInfo struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// Element is a package: one of Debian's, a module, a program or the image.
type Element struct {
	ID               string        `json:"SPDXID"`
	Name             string        `json:"name"`
	Version          string        `json:"versionInfo,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	Checksums        []Checksum    `json:"checksums,omitempty"`
	Homepage         string        `json:"homepage,omitempty"`
	SourceInfo       string        `json:"sourceInfo,omitempty"`
	LicenseConcluded string        `json:"licenseConcluded"`
	LicenseDeclared  string        `json:"licenseDeclared"`
	CopyrightText    string        `json:"copyrightText"`
	ExternalRefs     []ExternalRef `json:"externalRefs,omitempty"`
}

// ExternalRef is a package URL, by which scanners find an element.
type ExternalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

// FileElement is a file.
type FileElement struct {
	ID               string     `json:"SPDXID"`
	Name             string     `json:"fileName"`
	Checksums        []Checksum `json:"checksums"`
	LicenseConcluded string     `json:"licenseConcluded"`
	CopyrightText    string     `json:"copyrightText"`
}

// Checksum is a digest in hex.
type Checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

// Relationship says how two elements belong together.
type Relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// JSON returns the document as text.
func (d Document) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", " ")
	return append(b, '\n'), err
}

func (d *Document) relate(element, kind, related string) {
	d.Relationships = append(d.Relationships, Relationship{element, kind, related})
}

// newElement returns an element that was not looked into. locator is its package URL; empty: it has none.
func newElement(id, name, version, locator string) Element {
	e := Element{
		ID: id, Name: name, Version: version, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion,
	}
	if locator != "" {
		e.ExternalRefs = []ExternalRef{{"PACKAGE-MANAGER", "purl", locator}}
	}
	return e
}

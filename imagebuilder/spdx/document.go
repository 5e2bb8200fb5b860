package spdx

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

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

// Kinds of Relationship.
const (
	Describes = "DESCRIBES"
	Contains  = "CONTAINS"
	DependsOn = "DEPENDS_ON"
)

// New returns a document about the image. identity tells its content from that of other images of the name, created is its time, and tool made it.
func New(image Element, identity string, created time.Time, tool string) Document {
	d := Document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: image.Name,
		Namespace:    "https://ingot.dev/spdx/" + image.Name + "-" + identity,
		CreationInfo: CreationInfo{Created: created.UTC().Format(time.RFC3339), Creators: []string{"Tool: " + tool}},
		Packages:     []Element{image},
	}
	d.Relate(d.ID, Describes, image.ID)
	return d
}

// Relate says how two elements belong together.
func (d *Document) Relate(element, kind, related string) {
	d.Relationships = append(d.Relationships, Relationship{element, kind, related})
}

// AddFile adds a file of the image.
func (d *Document) AddFile(f File) {
	id := fmt.Sprintf("SPDXRef-File-%d", len(d.Files))
	d.Files = append(d.Files, FileElement{
		ID: id, Name: "." + f.Path, Checksums: []Checksum{{"SHA1", f.SHA1}, {"SHA256", f.SHA256}},
		LicenseConcluded: noAssertion, CopyrightText: noAssertion,
	})
	d.Relate(d.Packages[0].ID, Contains, id)
}

// ReadFile returns the file at the path with the digests of its content.
func ReadFile(path string, content io.Reader) (File, error) {
	// SPDX demands SHA-1 for files (8.4 of the specification).
	old, current := sha1.New(), sha256.New()
	_, err := io.Copy(io.MultiWriter(old, current), content)
	return File{Path: path, SHA1: hex.EncodeToString(old.Sum(nil)), SHA256: hex.EncodeToString(current.Sum(nil))}, err
}

// NewElement returns an element that was not looked into. locator is its package URL; empty: it has none.
func NewElement(id, name, version, locator string) Element {
	e := Element{
		ID: id, Name: name, Version: version, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion,
	}
	if locator != "" {
		e.ExternalRefs = []ExternalRef{{"PACKAGE-MANAGER", "purl", locator}}
	}
	return e
}

package spdx

import (
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// Image is the file that the document describes.
type Image struct {
	Name, SHA256 string
}

// Program is a program that was built from Go modules.
type Program struct {
	// Path on the node.
	Path string
	Info debug.BuildInfo
}

// File is a file that is part of no package.
type File struct {
	// Path on the node.
	Path string
	// SHA1 and SHA256 are digests of the content in hex. SPDX demands the former; nothing here relies on it.
	SHA1, SHA256 string
}

// Contents are what an image consists of.
type Contents struct {
	Image    Image
	Packages []recipe.Package
	Programs []Program
	Files    []File
}

// Document returns the SPDX document. epoch is the time of the image, in seconds since 1970.
func (c Contents) Document(epoch uint32) Document {
	image := NewElement("SPDXRef-Image", c.Image.Name, "", "")
	image.Checksums = []Checksum{{"SHA256", c.Image.SHA256}}
	d := New(image, c.Image.SHA256, time.Unix(int64(epoch), 0), "ingot-image-build")
	for _, p := range c.Packages {
		d.addPackage(image.ID, p)
	}
	modules := map[string]string{}
	for i, p := range c.Programs {
		d.addProgram(image.ID, fmt.Sprintf("SPDXRef-Program-%d", i), p, modules)
	}
	for _, f := range c.Files {
		d.AddFile(f)
	}
	return d
}

// addPackage adds a package of Debian.
func (d *Document) addPackage(image string, p recipe.Package) {
	e := NewElement("SPDXRef-Deb-"+idText(p.Name+"-"+p.Architecture), p.Name, p.Version,
		fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", url.PathEscape(p.Name), url.QueryEscape(p.Version), p.Architecture))
	if p.Source != "" {
		e.SourceInfo = "built from the source package " + p.Source
	}
	if p.Homepage != "" {
		e.Homepage = p.Homepage
	}
	d.Packages = append(d.Packages, e)
	d.Relate(image, Contains, e.ID)
}

// addProgram adds a program and its modules. A module that several programs have is listed once.
func (d *Document) addProgram(image, id string, p Program, modules map[string]string) {
	e := NewElement(id, p.Path, "", "")
	e.SourceInfo = "built from " + p.Info.Path + " with " + p.Info.GoVersion
	d.Packages = append(d.Packages, e)
	d.Relate(image, Contains, id)
	list := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(strings.Fields(p.Info.GoVersion + " ")[0], "go")}}
	if p.Info.Main.Version != "" && p.Info.Main.Version != "(devel)" {
		list = append(list, p.Info.Main)
	}
	for _, m := range p.Info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, *m)
	}
	for _, m := range list {
		key := m.Path + "@" + m.Version
		if modules[key] == "" {
			modules[key] = fmt.Sprintf("SPDXRef-Module-%d", len(modules))
			module := NewElement(modules[key], m.Path, m.Version, "pkg:golang/"+m.Path+"@"+url.QueryEscape(m.Version))
			if m.Sum != "" {
				module.SourceInfo = "go.sum: " + m.Sum
			}
			d.Packages = append(d.Packages, module)
		}
		d.Relate(id, DependsOn, modules[key])
	}
}

// idText replaces what an identifier may not have.
func idText(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		if r == '+' {
			return 'p'
		}
		return '.'
	}, text)
}

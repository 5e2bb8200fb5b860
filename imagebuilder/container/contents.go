package container

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"

	"github.com/ingot-dev/ingot/imagebuilder/spdx"
)

// Contents returns what the image of a Go program consists of, as an SPDX document in JSON: the modules that the program was built from, the Go
// release, and every file with its digest. Licences are not concluded.
func Contents(imageName, version, program string, layers []Layer) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a Go program: %w", program, err)
	}
	files, digest, err := listFiles(layers)
	if err != nil {
		return nil, err
	}
	d := spdx.New(spdx.NewElement("SPDXRef-Image", imageName, version, ""), digest, epoch, "ingot-image-manager")
	for _, e := range moduleElements(info, version) {
		d.Packages = append(d.Packages, e)
		d.Relate(d.Packages[0].ID, spdx.Contains, e.ID)
	}
	for _, f := range files {
		d.AddFile(f)
	}
	return d.JSON()
}

// moduleElements returns the program's own module, the Go release and the modules that the program was built from.
func moduleElements(info *debug.BuildInfo, version string) []spdx.Element {
	var all []spdx.Element
	add := func(name, version string) {
		all = append(all, spdx.NewElement(fmt.Sprintf("SPDXRef-Module-%d", len(all)), name, version, "pkg:golang/"+name+"@"+url.PathEscape(version)))
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

// listFiles returns the files of all layers, and a digest over their digests.
func listFiles(layers []Layer) (files []spdx.File, digest string, err error) {
	all := sha256.New()
	for _, layer := range layers {
		for _, f := range layer {
			listed, err := f.list()
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintln(all, listed.SHA256, f.Path)
			files = append(files, listed)
		}
	}
	return files, hex.EncodeToString(all.Sum(nil)), nil
}

// list returns the file with the digests of its content.
func (f File) list() (listed spdx.File, err error) {
	content, _, err := f.open()
	if err != nil {
		return spdx.File{}, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return spdx.ReadFile("/"+f.Path, content)
}

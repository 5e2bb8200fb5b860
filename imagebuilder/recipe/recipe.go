package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Recipe says what an image is made of.
type Recipe struct {
	// Name of the OSImage; empty: operating system, version and digest.
	Name string `json:"name,omitempty"`
	// Architecture is amd64 or arm64; empty: amd64.
	Architecture string `json:"architecture,omitempty"`
	Debian       Debian `json:"debian"`
	Kernel       Kernel `json:"kernel"`
	// Files are added after the packages. A later one replaces an earlier one.
	Files []File `json:"files,omitempty"`
	// Programs are built from Go modules.
	Programs []Program `json:"programs,omitempty"`
	Units    Units     `json:"units,omitempty"`
	// Size of the disk, such as 4Gi; empty: what the content needs and room to boot. The root file system grows at the first boot.
	Size string `json:"size,omitempty"`
	// Software has the versions that cannot be found in the image: those of programs that are given as files.
	Software v1alpha1.OSImageSoftware `json:"software,omitempty"`
}

// Debian is the distribution.
type Debian struct {
	// Repositories are those that packages are installed from, and that apt uses on the node. The first one has the base system.
	Repositories []Repository `json:"repositories"`
	// Packages are installed without those that they only recommend.
	Packages []string `json:"packages,omitempty"`
	// LocalPackages are paths of packages (.deb).
	LocalPackages []string `json:"localPackages,omitempty"`
}

// Repository is an apt repository. That of a snapshot (snapshot.debian.org) always has the same packages.
type Repository struct {
	URL        string   `json:"url"`
	Suite      string   `json:"suite"`
	Components []string `json:"components,omitempty"`
	// Key is the public key in ASCII armor, KeyFile the path of a file with it. One of them is needed.
	Key     string `json:"key,omitempty"`
	KeyFile string `json:"keyFile,omitempty"`
	// Snapshot is the time of the snapshot. Lists of packages may have expired since, and must have been valid then.
	Snapshot *time.Time `json:"snapshot,omitempty"`
}

// Kernel is the kernel and how it is started.
type Kernel struct {
	// Package is the kernel's package: linux-image-amd64 has drivers for servers, linux-image-cloud-amd64 only those of virtual machines.
	Package string `json:"package"`
	// Arguments are added to root= and rw.
	Arguments []string `json:"arguments,omitempty"`
}

// File is a file, a directory or a link. It has exactly one of Content, From, Link and Directory.
type File struct {
	// Path on the node.
	Path    string  `json:"path"`
	Content *string `json:"content,omitempty"`
	// From is the path of the file with the content, relative to the recipe.
	From string `json:"from,omitempty"`
	// Link is the target of a symbolic link.
	Link      string `json:"link,omitempty"`
	Directory bool   `json:"directory,omitempty"`
	// Mode in octal digits; empty: 0644, for a directory 0755.
	Mode string `json:"mode,omitempty"`
	// Owner is user:group by names in the image or by numbers; empty: root:root.
	Owner string `json:"owner,omitempty"`
}

// Program is a program that is built from a Go module, without cgo.
type Program struct {
	// Path on the node.
	Path string `json:"path"`
	// Module and Version are those of the module proxy. The checksum database or Sums confirms the content.
	Module  string `json:"module"`
	Version string `json:"version"`
	// Package is the path of the main package; empty: that of the module.
	Package string `json:"package,omitempty"`
	// LocalReplacements is the version of the modules that Module's go.mod replaces by directories of its own repository, which the
	// proxy does not serve: v0.37.0 for v1.37.0 of k8s.io/kubernetes.
	LocalReplacements string `json:"localReplacements,omitempty"`
	// Sums is the path of a go.sum, relative to the recipe. With it, modules that it does not have are refused.
	Sums string   `json:"sums,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// LinkerFlags are those of go build -ldflags, beside -s and -w.
	LinkerFlags []string `json:"linkerFlags,omitempty"`
}

// Units are names of systemd units.
type Units struct {
	Enable  []string `json:"enable,omitempty"`
	Disable []string `json:"disable,omitempty"`
	Mask    []string `json:"mask,omitempty"`
}

// Parse reads a recipe in YAML. Fields that are not known are errors.
func Parse(raw []byte) (Recipe, error) {
	var r Recipe
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return r, fmt.Errorf("expected a recipe in YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, decodeError(err)
	}
	if r.Architecture == "" {
		r.Architecture = "amd64"
	}
	return r, r.validate()
}

// decodeError says in the words of the recipe what cannot be read.
func decodeError(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s: seen a %s, expected another kind of value: compare with the README", mismatch.Field, mismatch.Value)
	}
	return fmt.Errorf("%s: compare with the fields in the README", strings.TrimPrefix(err.Error(), "json: "))
}

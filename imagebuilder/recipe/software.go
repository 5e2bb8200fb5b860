package recipe

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Package is an installed package, as dpkg's status file has it.
type Package struct {
	Name, Version, Architecture, Source, Maintainer, Homepage string
}

// ParsePackages returns the installed packages of dpkg's status file, in its order.
func ParsePackages(status []byte) []Package {
	var out []Package
	for stanza := range strings.SplitSeq(string(status), "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(stanza) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
				fields[key] = strings.TrimSpace(value)
			}
		}
		if fields["Package"] != "" && strings.HasSuffix(fields["Status"], " installed") {
			out = append(out, Package{fields["Package"], fields["Version"], fields["Architecture"], fields["Source"], fields["Maintainer"], fields["Homepage"]})
		}
	}
	return out
}

// softwareFields are the members of OSImageSoftware by the names of programs and packages that have them.
func softwareFields(s *v1alpha1.OSImageSoftware) map[string]*string {
	return map[string]*string{
		"kubelet": &s.Kubelet, "containerd": &s.Containerd, "containerd.io": &s.Containerd,
		"nvidia-container-toolkit": &s.ContainerToolkit, "nvidia-ctk": &s.ContainerToolkit, "nvidia-mig-parted": &s.MIGParted,
		"nvidia-fabricmanager": &s.FabricManager, "nvidia-imex": &s.IMEX, "nvidia-vgpu-dm": &s.VGPUDeviceManager,
	}
}

// upstreamPattern matches the upstream version in the version of a Debian package.
var upstreamPattern = regexp.MustCompile(`^(?:[0-9]+:)?([0-9]+(?:\.[0-9]+)*)`)

// FindSoftware returns what the packages and programs say, and what the recipe says beside them. A contradiction is an error.
func (r Recipe) FindSoftware(packages []Package) (v1alpha1.OSImageSoftware, error) {
	found := r.builtSoftware(packages)
	fields, declared := softwareFields(&found), r.Software
	for name, field := range softwareFields(&declared) {
		if *field != "" && *fields[name] != "" && *field != *fields[name] {
			return found, fmt.Errorf("software: the recipe says %s %s, the image has %s: remove it from the recipe, it is found by itself", name, *field, *fields[name])
		}
		*fields[name] = cmp.Or(*fields[name], *field)
	}
	found.GPUDriver = declared.GPUDriver
	isKubelet := func(p Package) bool { return p.Name == "kubelet" }
	if r.Software.Kubelet != "" && !r.hasFile("kubelet") && !slices.ContainsFunc(packages, isKubelet) {
		return found, fmt.Errorf("software.kubelet: the recipe says %s, and no file, program or package of it is a kubelet", r.Software.Kubelet)
	}
	return found, nil
}

// builtSoftware returns the versions of the packages and programs.
func (r Recipe) builtSoftware(packages []Package) v1alpha1.OSImageSoftware {
	var found v1alpha1.OSImageSoftware
	fields := softwareFields(&found)
	for _, p := range packages {
		if m := upstreamPattern.FindStringSubmatch(p.Version); fields[p.Name] != nil && m != nil {
			*fields[p.Name] = m[1]
		}
	}
	for _, p := range r.Programs {
		if field := fields[path.Base(p.Path)]; field != nil {
			*field = strings.TrimPrefix(p.Version, "v")
		}
	}
	return found
}

// hasFile reports whether the recipe adds a file or a program with the name.
func (r Recipe) hasFile(name string) bool {
	for _, f := range r.Files {
		if path.Base(f.Path) == name && !f.Directory {
			return true
		}
	}
	for _, p := range r.Programs {
		if path.Base(p.Path) == name {
			return true
		}
	}
	return false
}

package ignition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Variant of butane.
type Variant string

// Variants.
const (
	FCOS      Variant = "fcos"
	Flatcar   Variant = "flatcar"
	OpenShift Variant = "openshift"
)

// systems are the variants by the ID of os-release. Fedora CoreOS calls itself fedora there, and RHEL CoreOS rhel since
// OpenShift 4.19; their other names are what people call them.
var systems = map[string]Variant{
	"fcos": FCOS, "fedora": FCOS, "fedora-coreos": FCOS,
	"flatcar": Flatcar,
	"rhcos":   OpenShift, "scos": OpenShift, "rhel": OpenShift, "openshift": OpenShift,
}

// header of a butane document: the version is the newest that becomes Ignition 3.4.0.
var header = map[Variant]string{
	FCOS: "variant: fcos\nversion: 1.5.0\n", Flatcar: "variant: flatcar\nversion: 1.1.0\n",
	OpenShift: "variant: openshift\nversion: 4.18.0\nmetadata:\n  name: 99-ingot\n  labels:\n    machineconfiguration.openshift.io/role: worker\n",
}

// newestVersions version of people's layers, for messages.
var newestVersions = map[Variant]string{FCOS: "1.5.0", Flatcar: "1.1.0", OpenShift: "4.18.0"}

// Unsupported is what a variant lacks and the node needs.
type Unsupported struct {
	// What is lacking, and what to do instead.
	What string
}

// Error says it.
func (u *Unsupported) Error() string { return u.What }

func unsupported(format string, args ...any) error {
	return &Unsupported{What: fmt.Sprintf(format, args...)}
}

// VariantOf is the variant of an operating system by the ID of its os-release. The error is an *Unsupported.
func VariantOf(os string) (Variant, error) {
	if v, ok := systems[strings.ToLower(os)]; ok {
		return v, nil
	}
	return "", unsupported("no Ignition variant is known for the operating system %q; known are %s: correct os.id of the OSImage, or set its userData to CloudInit",
		os, strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
}

const (
	localPrograms   = "/usr/local/"
	flatcarPrograms = "/opt/bin/"
)

// place is where a file of the node goes. A path under /usr that cannot be written to is an *Unsupported.
func (v Variant) place(path string) (string, error) {
	if !strings.HasPrefix(path, "/usr/") {
		return path, nil
	}
	local := strings.HasPrefix(path, localPrograms)
	switch {
	case local && v != Flatcar:
		// A link to /var/usrlocal, which Ignition follows.
		return path, nil
	case strings.HasPrefix(path, localPrograms+"bin/"), strings.HasPrefix(path, localPrograms+"sbin/"):
		return flatcarPrograms + path[strings.LastIndex(path, "/")+1:], nil
	}
	return "", unsupported("%s cannot be written on %s, whose /usr is read-only: bake it into the image", path, v)
}

package ignition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Variant is a variant of butane: the family of operating systems that a document is for.
type Variant string

// Variants.
const (
	FCOS      Variant = "fcos"
	Flatcar   Variant = "flatcar"
	OpenShift Variant = "openshift"
)

// variantsByOS has the variants by the ID of os-release, and by the usual names. The ID of Fedora CoreOS is fedora, and that of RHEL
// CoreOS is rhel since OpenShift 4.19.
var variantsByOS = map[string]Variant{
	"fcos": FCOS, "fedora": FCOS, "fedora-coreos": FCOS,
	"flatcar": Flatcar,
	"rhcos":   OpenShift, "scos": OpenShift, "rhel": OpenShift, "openshift": OpenShift,
}

// header begins a butane document. The version is the newest that translates to Ignition 3.4.0.
var header = map[Variant]string{
	FCOS: "variant: fcos\nversion: 1.5.0\n", Flatcar: "variant: flatcar\nversion: 1.1.0\n",
	OpenShift: "variant: openshift\nversion: 4.18.0\nmetadata:\n  name: 99-ingot\n  labels:\n    machineconfiguration.openshift.io/role: worker\n",
}

// newestVersions are the newest versions that users' layers can have, for messages.
var newestVersions = map[Variant]string{FCOS: "1.5.0", Flatcar: "1.1.0", OpenShift: "4.18.0"}

// Unsupported is the error about something that the node needs and the variant does not have.
type Unsupported struct {
	// What the variant does not have, and what to do instead.
	What string
}

// Error returns What.
func (u *Unsupported) Error() string { return u.What }

// unsupported returns an *Unsupported.
func unsupported(format string, args ...any) error {
	return &Unsupported{What: fmt.Sprintf(format, args...)}
}

// VariantOf returns the variant of an operating system by the ID of its os-release. The error is an *Unsupported.
func VariantOf(os string) (Variant, error) {
	if v, ok := variantsByOS[strings.ToLower(os)]; ok {
		return v, nil
	}
	return "", unsupported("no Ignition variant is known for the operating system %q; known are %s: correct os.id of the OSImage, or set its userData to CloudInit",
		os, strings.Join(slices.Sorted(maps.Keys(variantsByOS)), ", "))
}

const (
	localPrograms   = "/usr/local/"
	flatcarPrograms = "/opt/bin/"
)

// writablePath returns the path at which a file is written on the variant. When a path under /usr cannot be written to the error is
// an *Unsupported.
func (v Variant) writablePath(path string) (string, error) {
	if !strings.HasPrefix(path, "/usr/") {
		return path, nil
	}
	local := strings.HasPrefix(path, localPrograms)
	switch {
	case local && v != Flatcar:
		// It is a link to /var/usrlocal, and Ignition follows it.
		return path, nil
	case strings.HasPrefix(path, localPrograms+"bin/"), strings.HasPrefix(path, localPrograms+"sbin/"):
		return flatcarPrograms + path[strings.LastIndex(path, "/")+1:], nil
	}
	return "", unsupported("%s cannot be written on %s, whose /usr is read-only: bake it into the image", path, v)
}

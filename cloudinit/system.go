package cloudinit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ignitionSystems are the IDs in os-release of systems without cloud-init. Flatcar's coreos-cloudinit reads a part of a cloud-config and runs no
// command, so that the node would never join.
var ignitionSystems = []string{"flatcar", "rhcos", "scos"}

// checkSystem refuses cloud-init on a system that does not have it.
func checkSystem(in Input) error {
	if !slices.Contains(ignitionSystems, in.OS) {
		return nil
	}
	return &Unsupported{Kind: string(v1alpha1.UserDataCloudInit), What: fmt.Sprintf("the OSImage's os.id is %s, which has no cloud-init, and its userData is CloudInit: a node would boot and never join; make an OSImage with userData: Ignition and ignitionPlatform: openstack", in.OS)}
}

// rpmSystems are the IDs in os-release of systems whose packages dnf installs.
var rpmSystems = []string{"rhel", "rocky", "almalinux", "centos", "fedora", "ol", "amzn", "openeuler"}

// packageNames returns the packages as the package manager of the system reads them. A package with its version is name=version to apt, and
// name-version to dnf, which takes the other form for a name that it does not find (cloud-init's own distros/rhel.py writes it so too).
func packageNames(in Input) []string {
	if !slices.Contains(rpmSystems, in.OS) {
		return in.Plan.Packages
	}
	var out []string
	for _, p := range in.Plan.Packages {
		name, version, found := strings.Cut(p, "=")
		if found && name != "" && version != "" {
			p = name + "-" + version
		}
		out = append(out, p)
	}
	return out
}

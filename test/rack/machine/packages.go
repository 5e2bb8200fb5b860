package machine

import (
	"regexp"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos"
)

// vendorPackages are the effects of the vendors' packages, by their names in the repositories of NVIDIA, AMD and Ubuntu.
var vendorPackages = []struct {
	name  *regexp.Regexp
	bring func(image *machineos.Image, name, version string)
}{
	{regexp.MustCompile(`^(nvidia-open|cuda-drivers|nvidia-driver(-\d+)?(-server)?(-open)?)(-\d+)?$`), func(image *machineos.Image, name, version string) {
		module := "Proprietary"
		if strings.Contains(name, "open") {
			module = "Open"
		}
		image.Software.GPUDriver = &machineos.GPUDriver{Vendor: "nvidia", Version: version, KernelModule: module}
	}},
	{regexp.MustCompile(`^nvidia-container-toolkit$`), func(image *machineos.Image, _, version string) { image.Software.ContainerToolkit = version }},
	{regexp.MustCompile(`^nvidia-fabricmanager(-\d+)?$`), func(image *machineos.Image, _, version string) { image.Software.FabricManager = version }},
	{regexp.MustCompile(`^nvidia-mig-(manager|parted)$`), func(image *machineos.Image, _, _ string) {
		image.Programs = append(image.Programs, "nvidia-mig-parted")
	}},
	{regexp.MustCompile(`^amdgpu(-dkms)?$`), func(image *machineos.Image, _, version string) {
		image.Software.GPUDriver = &machineos.GPUDriver{Vendor: "amd", Version: version}
	}},
}

// installPackages adds the software of packages to the image. Versions lose the distribution's suffix.
func (m *Machine) installPackages(image *machineos.Image, packages []string) error {
	for _, wanted := range packages {
		name, version, _ := strings.Cut(wanted, "=")
		version, _, _ = strings.Cut(version, "-")
		for _, b := range vendorPackages {
			if b.name.MatchString(name) {
				b.bring(image, name, version)
			}
		}
	}
	m.driver, m.Toolkit, m.installed = image.Software.GPUDriver, image.Software.ContainerToolkit, image
	return nil
}

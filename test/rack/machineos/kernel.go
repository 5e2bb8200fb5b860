package machineos

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/kernel"
)

// maxLinks is how many links are followed for a path, as in Linux.
const maxLinks = 40

// modulesLoadUnit is the service that loads the modules of modules-load.d.
const modulesLoadUnit = "systemd-modules-load.service"

// bootKernel begins a boot: it reads the configuration of modules, lets devices be found and starts the service that loads
// modules.
func (s *System) bootKernel() {
	s.modules = kernel.Modules{Exists: s.Image.hasModule}
	s.coldplugConfig = s.kernelConfig()
	if s.machine.OnColdplug != nil {
		s.machine.OnColdplug(s)
	}
	s.startUnits(modulesLoadUnit)
}

func (s *System) kernelConfig() kernel.Config {
	return kernel.ParseConfig(s.KernelArguments(), s.kernelFiles())
}

// loadModules does the work of systemd-modules-load.
func (s *System) loadModules() {
	if err := s.modules.LoadConfigured(s.kernelConfig(), s.KernelArguments(), s.kernelFiles()); err != nil {
		s.Failed = append(s.Failed, err)
	}
}

// kernelFiles returns the image's configuration of kernel modules and all written files.
func (s *System) kernelFiles() map[string][]byte {
	out := maps.Clone(s.Image.Files)
	if out == nil {
		out = map[string][]byte{}
	}
	for path, file := range s.Files {
		out[path] = file.Content
	}
	return out
}

// KernelArguments returns the kernel's command line in this boot: the image's, with the changes by Ignition.
func (s *System) KernelArguments() []string {
	var out []string
	for _, argument := range s.Image.KernelArguments {
		if !slices.Contains(s.Arguments.Removed, argument) {
			out = append(out, argument)
		}
	}
	for _, argument := range s.Arguments.Added {
		if !slices.Contains(out, argument) {
			out = append(out, argument)
		}
	}
	return out
}

// IsModuleLoaded reports whether the module was loaded in this boot by modules-load.d, the command line, modprobe, or as a
// soft dependency. It does not tell of modules that udev loads for devices: see IsModuleBlacklisted.
func (s *System) IsModuleLoaded(name string) bool { return s.modules.IsLoaded(name) }

// IsModuleBlacklisted reports whether udev did not load the module when this boot found the machine's devices. Files that
// were written later do not count.
func (s *System) IsModuleBlacklisted(name string) bool { return s.coldplugConfig.IsBlacklisted(name) }

// SoftDependencies returns the modules that modprobe loads before this one.
func (s *System) SoftDependencies(name string) []string {
	return s.coldplugConfig.SoftDependencies(name)
}

// ModuleOptions returns the parameters with which the module was loaded, or with which udev would load it. The last value
// of a parameter counts.
func (s *System) ModuleOptions(name string) map[string]string {
	if s.modules.IsLoaded(name) {
		return s.modules.Options(name)
	}
	return s.coldplugConfig.Options(name)
}

// File returns the content of a written file, or of one of the image's files that configure the kernel. It follows links.
func (s *System) File(path string) ([]byte, bool) {
	for range maxLinks {
		target, ok := s.Links[path]
		if !ok {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	if file, ok := s.Files[path]; ok {
		return file.Content, true
	}
	content, ok := s.Image.Files[path]
	return content, ok
}

// Modprobe runs modprobe with these arguments.
func (s *System) Modprobe(words []string) error {
	return s.modules.Modprobe(s.kernelConfig(), words)
}

// hasModule reports whether the image has the module. NVIDIA's modules are not part of Linux and come with the driver.
func (i Image) hasModule(module string) bool {
	if module != "nvidia" && !strings.HasPrefix(module, "nvidia_") {
		return true
	}
	return i.Software.GPUDriver != nil && strings.EqualFold(i.Software.GPUDriver.Vendor, "nvidia")
}

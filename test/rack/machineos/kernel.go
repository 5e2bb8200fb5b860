package machineos

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/machineos/kernel"
)

// maxLinks bounds how many links lead to a file, as Linux does.
const maxLinks = 40

// modulesLoad is the service that loads what modules-load.d names.
const modulesLoadUnit = "systemd-modules-load.service"

// bootKernel begins a boot: the kernel with its command line, then what the disk says of modules.
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

// loadModules is the work of systemd-modules-load.
func (s *System) loadModules() {
	if err := s.modules.LoadConfigured(s.kernelConfig(), s.KernelArguments(), s.kernelFiles()); err != nil {
		s.Failed = append(s.Failed, err)
	}
}

// all are the files that are known: the image's configuration of the kernel, and what was written.
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

// KernelArguments is the command line of this boot: the image's, as Ignition has changed it.
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

// ModuleLoaded says whether the module was loaded in this boot, because it was asked for: by modules-load.d, the command
// line, modprobe, or as another's soft dependency. What udev loads for a device depends on the machine: see
// ModuleBlacklisted.
func (s *System) IsModuleLoaded(name string) bool { return s.modules.IsLoaded(name) }

// ModuleBlacklisted says whether udev left the module alone when this boot found the machine's devices. What was written
// later comes too late for that.
func (s *System) IsModuleBlacklisted(name string) bool { return s.coldplugConfig.IsBlacklisted(name) }

// ModuleBefore are the modules that modprobe loads before this one, its soft dependencies.
func (s *System) SoftDependencies(name string) []string {
	return s.coldplugConfig.SoftDependencies(name)
}

// ModuleOptions are the parameters with which the module was loaded; of one that was not, with which udev would have
// loaded it. The last of a parameter counts.
func (s *System) ModuleOptions(name string) map[string]string {
	if s.modules.IsLoaded(name) {
		return s.modules.Options(name)
	}
	return s.coldplugConfig.Options(name)
}

// File returns a file that was written, or one of the image's that configure the kernel. It follows links that were made.
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

// Modprobe is the program, with the words behind its name.
func (s *System) Modprobe(words []string) error {
	return s.modules.Modprobe(s.kernelConfig(), words)
}

// hasModule says whether the image has the module: NVIDIA's are no part of Linux and come with the driver.
func (i Image) hasModule(module string) bool {
	if module != "nvidia" && !strings.HasPrefix(module, "nvidia_") {
		return true
	}
	return i.Software.GPUDriver != nil && strings.EqualFold(i.Software.GPUDriver.Vendor, "nvidia")
}

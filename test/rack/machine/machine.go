package machine

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/pci"
)

// Options are the parameters of a boot.
type Options struct {
	Image machineos.Image
	// Drive holds the documents; nil: there is none.
	Drive *machineos.ConfigDrive
	// State is what earlier boots left; nil means that this is the first.
	State *machineos.State
	// Devices on the PCI bus of this boot. The model of a GPU that a hypervisor made begins with vGPU.
	Devices []hardware.PCIDevice
	// CPU is the processor's name, Architecture the machine's: amd64, arm64.
	CPU, Architecture string
	// CPUs is the number of logical processors, MemoryBytes the memory that the kernel leaves, NUMANodes the number of memory nodes; 0: not known.
	CPUs        int
	MemoryBytes int64
	NUMANodes   int
	// Address is the address of the network interface; empty: there is none.
	Address string
	// Owner names the server and Boot this boot: UUIDs follow from them.
	Owner, Boot string
	// InfoROM keeps MIG modes; empty: nothing is kept.
	InfoROM gpu.InfoROM
	// Missing are units that are not written to the disk.
	Missing []string
	// RenameProfile, if set, replaces the names of MIG profiles to create.
	RenameProfile func(profile string) string
	// InUse means that a client uses every GPU. Unhealthy is the number of GPUs that have reported an error.
	InUse     bool
	Unhealthy int
}

// Machine is a server that has booted.
type Machine struct {
	*machineos.System
	Bus *pci.Bus
	// Toolkit is the version of NVIDIA's container toolkit, which may come in a pod.
	Toolkit string
	// ToolkitEnvironment is the environment of the pod that the toolkit came in; nil: it came in none.
	ToolkitEnvironment map[string]string
	// Annotations are those of the Node that the machine's own units set.
	Annotations map[string]string
	// MPS means that NVIDIA's control daemon runs.
	MPS bool

	options Options
	// installed is the image with the packages that were installed.
	installed *machineos.Image
	driver    *machineos.GPUDriver
	gpus      []*gpu.GPU
	// licensed means that the guest has got a vGPU licence.
	licensed bool
	// removed are modules that were unloaded with modprobe.
	removed map[string]bool
}

// Boot boots the image on the machine. The error holds what failed; the machine runs nevertheless.
func Boot(options Options) (*Machine, error) {
	m := &Machine{options: options, driver: options.Image.Software.GPUDriver, Toolkit: options.Image.Software.ContainerToolkit, removed: map[string]bool{}}
	m.installed = &options.Image
	gpus, failed := gpu.Discover(options.Devices, options.Owner, options.Boot, options.InfoROM)
	m.gpus = gpus
	for i, g := range m.gpus {
		g.InUse, g.Unhealthy = options.InUse, i < options.Unhealthy
		g.Virtual = slices.ContainsFunc(options.Devices, func(d hardware.PCIDevice) bool { return d.Address == g.Address && strings.HasPrefix(d.Model, "vGPU") })
	}
	m.Bus = m.newBus(options.Image.KernelArguments)
	system, err := machineos.Boot(options.Image, options.Drive, options.State, machineos.Machine{
		Programs: m.programs(), Missing: options.Missing, Install: m.installPackages, Services: m.services(), Shell: m.runShell, OnColdplug: func(system *machineos.System) {
			m.System, m.Bus = system, m.newBus(system.KernelArguments())
			m.syncModules(system)
		},
	})
	m.System = system
	m.syncModules(system)
	return m, errors.Join(failed, err)
}

// newBus returns the PCI bus of a boot with this command line.
func (m *Machine) newBus(arguments []string) *pci.Bus {
	return pci.New(pci.Options{
		Devices: m.options.Devices, Kernel: m.options.Image.Kernel, Arguments: arguments, IOMMU: m.options.Architecture == "arm64" || strings.Contains(m.options.CPU, "AMD"),
		VGPUTypes: gpu.VGPUTypes, VGPUManager: m.driver != nil && m.driver.Kind == kindManager,
	})
}

// Kinds of NVIDIA's driver in an image.
const (
	kindManager = "VGPUManager"
	kindGuest   = "VGPUGuest"
)

// optionalModules are modules of accelerators that configuration can load, besides those that udev loads for devices.
var optionalModules = []string{"vfio_pci", "nvgrace_gpu_vfio_pci", "nvidia", "amdgpu", "nouveau", "habanalabs", "xocl"}

// syncModules loads the modules that the system has loaded into the bus.
func (m *Machine) syncModules(system *machineos.System) {
	for _, module := range m.Bus.RequestedModules() {
		if !system.IsModuleBlacklisted(module) {
			m.loadModule(system, module)
		}
	}
	for _, module := range optionalModules {
		if system.IsModuleLoaded(module) {
			m.loadModule(system, module)
		}
	}
}

func (m *Machine) loadModule(system *machineos.System, module string) {
	if !m.removed[module] && m.hasModule(module) {
		m.Bus.LoadModule(module, system.ModuleOptions(module))
	}
}

// hasModule reports whether the machine has the module. NVIDIA's module comes with its driver, all others with Linux.
func (m *Machine) hasModule(module string) bool { return module != "nvidia" || m.hasDriver("nvidia") }

// hasDriver reports whether the vendor's driver is installed.
func (m *Machine) hasDriver(vendor string) bool {
	return m.driver != nil && strings.EqualFold(m.driver.Vendor, vendor)
}

// GPUs returns the GPUs that NVIDIA's driver is bound to and supports.
func (m *Machine) GPUs() []*gpu.GPU {
	var out []*gpu.GPU
	for _, g := range m.gpus {
		if d := m.Bus.Find(g.Address); d != nil && d.Driver == "nvidia" && m.canDrive(g) {
			out = append(out, g)
		}
	}
	return out
}

// canDrive reports whether the installed kind of driver supports the GPU.
func (m *Machine) canDrive(g *gpu.GPU) bool {
	switch {
	case g.Virtual:
		return m.driver.Kind == kindGuest
	case m.driver.KernelModule == "Proprietary":
		return g.Model.Architecture != gpu.Blackwell
	}
	return true
}

// NVIDIADriver returns the version of NVIDIA's driver, or "" when it drives no GPU.
func (m *Machine) NVIDIADriver() string {
	if !m.hasDriver("nvidia") || len(m.GPUs()) == 0 {
		return ""
	}
	return m.driver.Version
}

// IsVGPUManager reports whether NVIDIA's driver is the vGPU manager.
func (m *Machine) IsVGPUManager() bool { return m.hasDriver("nvidia") && m.driver.Kind == kindManager }

// InstallDriver installs a driver that comes in a pod and loads its module. It does nothing when a driver is installed.
func (m *Machine) InstallDriver(driver machineos.GPUDriver) error {
	if m.driver != nil {
		return nil // the pod finds it and waits
	}
	for _, d := range m.Bus.Devices() {
		if d.Driver == "nouveau" {
			return errors.New("nouveau holds the GPUs: could not unload it")
		}
	}
	m.driver = &driver
	m.Bus.SetVGPUManager(driver.Kind == kindManager)
	m.Bus.LoadModule(map[string]string{"nvidia": "nvidia", "amd": "amdgpu"}[strings.ToLower(driver.Vendor)], nil)
	return nil
}

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

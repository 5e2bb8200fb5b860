package nvidia

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// maxGPUs is the largest number of GPUs of one server, as the API has it.
const maxGPUs = 64

// CheckRequest returns the model of the GPUs. When the image or the driver cannot drive it, the error is a *spec.Refusal. kind is the
// kind of driver that the image must have when the driver is baked in.
func CheckRequest(r spec.Request, kind string) (catalogue.Model, error) {
	model, err := LookupModel(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	if err := checkDriver(r, model, kind); err != nil {
		return catalogue.Model{}, err
	}
	if err := checkPackages(r, model); err != nil {
		return catalogue.Model{}, err
	}
	if err := checkFabric(r, model); err != nil {
		return catalogue.Model{}, err
	}
	return model, CheckNouveau(r.Image)
}

// LookupModel returns the model of the GPUs without checking the image. The error is a *spec.Refusal.
func LookupModel(r spec.Request) (catalogue.Model, error) {
	model, err := catalogue.Lookup(r.GPU.Vendor, r.GPU.Model)
	if err != nil {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("model"), "gpu/model", "%v", err)
	}
	if r.GPU.Count < 1 || r.GPU.Count > maxGPUs {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("count"), "gpu/count", "it is %d, and a server has 1 to %d GPUs", r.GPU.Count, maxGPUs)
	}
	return model, nil
}

// CheckNouveau refuses an image in which the nouveau driver would take the GPUs before NVIDIA's driver does.
func CheckNouveau(image v1alpha1.OSImageSpec) error {
	if image.UserData != v1alpha1.UserDataIgnition && !isBlacklisted(image.KernelArguments, "nouveau") {
		return spec.Refuse(spec.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "%v do not keep nouveau off the GPUs, and user data cannot change the kernel's command line before it boots: bake in %s", image.KernelArguments, NouveauBlacklistArgument)
	}
	return nil
}

// CheckContainerToolkit refuses an image without the container toolkit, because containers could not use the GPUs that the device
// plugin gives them.
func CheckContainerToolkit(r spec.Request) error {
	if r.Image.Software.ContainerToolkit == "" && !IsDriverFromOperator(r) && !HasDriverPackage(r, toolkitPackage) {
		return spec.Invalid(spec.ImageField("software.containerToolkit"), "image/container-toolkit", "it is empty: without the NVIDIA container toolkit containers cannot see the GPUs; bake it in and name its version")
	}
	return nil
}

// checkFabric refuses a fabric manager or an IMEX whose version is not the driver's, and an IMEX that the model does not have.
func checkFabric(r spec.Request, model catalogue.Model) error {
	software, driver := r.Image.Software, DriverVersion(r)
	if v := software.FabricManager; v != "" && model.HasNVSwitch(r.GPU.Count) && !IsDriverFromOperator(r) && !spec.IsSameVersion(v, driver) {
		return spec.Invalid(spec.ImageField("software.fabricManager"), "image/fabric-manager", "it is %s, and the driver is %s: the fabric manager refuses a driver of another version, and no GPU can be used; install both with the same version", v, driver)
	}
	if r.GPU.IMEX == "" {
		return nil
	}
	if model.Link != catalogue.LinkRack {
		return spec.Invalid(spec.GPUField("imex"), "gpu/imex", "it is %s, and %s shares no memory beyond its server: remove it", r.GPU.IMEX, model.Name)
	}
	if r.GPU.IMEX == spec.IMEXHost && !IsDriverFromOperator(r) && !spec.IsSameVersion(software.IMEX, driver) && !HasDriverPackage(r, "imex") {
		return spec.Invalid(spec.GPUField("imex"), "image/imex", "it is Host, the OSImage's software.imex is %q, and the driver is %s: bake nvidia-imex in with the driver's version, or leave it out", software.IMEX, driver)
	}
	return nil
}

// isBlacklisted reports whether the kernel arguments keep the module from being loaded. It knows the arguments of modprobe, of
// the kernel and of dracut, each of which takes a list.
func isBlacklisted(arguments []string, module string) bool {
	for _, a := range arguments {
		key, list, ok := strings.Cut(a, "=")
		if !ok || key != "modprobe.blacklist" && key != "module_blacklist" && key != "rd.driver.blacklist" {
			continue
		}
		for _, m := range strings.Split(list, ",") {
			// dracut's argument ends with the initramfs; udev would load the module afterwards.
			if m == module && key != "rd.driver.blacklist" {
				return true
			}
		}
	}
	return false
}

// DriverVersion returns the version of the driver that will run, whether it comes from the image, from packages or from the
// operator.
func DriverVersion(r spec.Request) string {
	if IsDriverFromImage(r) {
		if d := r.Image.Software.GPUDriver; d != nil {
			return d.Version
		}
		return ""
	}
	return r.GPU.Driver.Version
}

// IsDriverFromImage reports whether the driver is baked into the image.
func IsDriverFromImage(r spec.Request) bool {
	return r.GPU.Driver.Source == "" || r.GPU.Driver.Source == v1alpha1.DriverFromImage
}

// IsDriverFromOperator reports whether NVIDIA's operator installs the driver, in a pod.
func IsDriverFromOperator(r spec.Request) bool {
	return r.GPU.Driver.Source == v1alpha1.DriverFromOperator
}

// checkDriver refuses a driver that cannot drive the model. kind is the kind of driver that the image must have when the driver
// is baked in.
func checkDriver(r spec.Request, model catalogue.Model, kind string) error {
	if IsDriverFromImage(r) {
		if err := checkImageDriver(r.Image.Software.GPUDriver, model, kind); err != nil {
			return err
		}
	} else if baked := r.Image.Software.GPUDriver; baked != nil {
		return spec.Invalid(spec.GPUField("driver.source"), "driver/two", "it is %s, and the OSImage has the driver %s baked in: two drivers would fight for the GPUs; use an image without, or source: Image", r.GPU.Driver.Source, baked.Version)
	}
	version, field := DriverVersion(r), spec.DriverField(r.GPU.Driver.Source, "version")
	if _, ok := spec.IsOlderVersion(version, "1"); !ok {
		return spec.Invalid(field, "image/driver-version", "%q is not a driver version such as 580.126.09", version)
	}
	if older, _ := spec.IsOlderVersion(version, model.MinimumDriver); older {
		return spec.Refuse(field, v1alpha1.ReasonDriverTooOld, "image/driver-version", "it is %s, and %s needs %s or newer", version, model.Name, model.MinimumDriver)
	}
	return checkKernelModules(r, model)
}

func checkImageDriver(driver *v1alpha1.GPUDriverSoftware, model catalogue.Model, kind string) error {
	if driver == nil {
		return spec.Refuse(spec.GPUField("driver.source"), v1alpha1.ReasonDriverMissing, "image/driver", "Image needs a driver in the image, and the OSImage's software.gpuDriver names none: bake the %s driver in%s", model.Vendor, orNewer(model.MinimumDriver))
	}
	if driver.Vendor != model.Vendor {
		return spec.Refuse(spec.ImageField("software.gpuDriver.vendor"), v1alpha1.ReasonDriverMissing, "image/driver-vendor", "it is %s, and %s needs a driver of vendor %s", driver.Vendor, model.Name, model.Vendor)
	}
	imageKind := cmp.Or(driver.Kind, spec.DriverKindGPU)
	if imageKind != kind {
		return spec.Refuse(spec.ImageField("software.gpuDriver.kind"), v1alpha1.ReasonDriverMissing, "image/driver-kind", "it is %s, and the presentation needs %s: they are different drivers; use an image with that one", imageKind, kind)
	}
	return nil
}

func orNewer(minimum string) string {
	if minimum == "" {
		return ""
	}
	return ", " + minimum + " or newer"
}

// checkKernelModules refuses kernel modules that cannot drive the model. The operator chooses the right ones unless the NodeType
// names a kind.
func checkKernelModules(r spec.Request, model catalogue.Model) error {
	kind := r.GPU.Driver.KernelModule
	if IsDriverFromImage(r) {
		kind = r.Image.Software.GPUDriver.KernelModule
	}
	if !model.OpenModules || kind == spec.KernelModuleOpen || kind == "" && IsDriverFromOperator(r) {
		return nil
	}
	field := spec.DriverField(r.GPU.Driver.Source, "kernelModule")
	if kind == spec.KernelModuleProprietary {
		return spec.Invalid(field, "image/kernel-module", "it is Proprietary, and only the open kernel modules drive %s: install those", model.Name)
	}
	return spec.Invalid(field, "image/kernel-module", "it does not say which kernel modules are installed, and only the open ones drive %s: make sure, and write Open", model.Name)
}

// companionPackages are parts of the names of packages whose version must be the driver's. Some of them refuse another driver,
// and others fail silently.
var companionPackages = []string{"fabricmanager", "imex", "nscq", "nvsdm"}

func isCompanionPackage(name string) bool {
	return slices.ContainsFunc(companionPackages, func(c string) bool { return strings.Contains(name, c) })
}

// checkPackages refuses packages that would install another driver version than the one that the node is expected to report.
func checkPackages(r spec.Request, model catalogue.Model) error {
	if r.GPU.Driver.Source != v1alpha1.DriverFromPackages {
		return nil
	}
	packages, version := r.GPU.Driver.Packages, spec.UpstreamVersion(r.GPU.Driver.Version)
	if i := slices.IndexFunc(packages, func(p string) bool { return strings.Contains(p, "*") }); i >= 0 {
		return spec.Invalid(packageField(i), "packages/wildcard", "it is %s: a wildcard takes other branches too; write the whole version", packages[i])
	}
	if !hasPackage(slices.DeleteFunc(slices.Clone(packages), isCompanionPackage), version) {
		return spec.Invalid(spec.GPUField("driver.packages"), "packages/version", "it has no driver of version %s, which gpu.driver.version promises: write each package with its exact version", version)
	}
	for i, p := range packages {
		if isCompanionPackage(p) && !strings.Contains(p, version) {
			return spec.Invalid(packageField(i), "packages/companion-version", "it is %s, which only works beside a driver of its own version: write it with %s", p, version)
		}
	}
	if model.HasNVSwitch(r.GPU.Count) && !hasPackage(packages, "fabricmanager") && r.Image.Software.FabricManager == "" {
		return spec.Invalid(spec.GPUField("driver.packages"), "packages/fabric-manager", "%d %s need the fabric manager, and neither these packages nor the OSImage's software.fabricManager has it: add nvidia-fabricmanager with version %s", r.GPU.Count, model.Name, version)
	}
	return nil
}

func packageField(i int) spec.Field { return spec.GPUField(fmt.Sprintf("driver.packages[%d]", i)) }

// hasPackage reports whether the name or the version of a package contains part.
func hasPackage(packages []string, part string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return strings.Contains(p, part) })
}

// HasDriverPackage reports whether the driver comes from packages, and one of them contains part.
func HasDriverPackage(r spec.Request, part string) bool {
	return r.GPU.Driver.Source == v1alpha1.DriverFromPackages && hasPackage(r.GPU.Driver.Packages, part)
}

// iommuArguments turn the IOMMU on, one for Intel's CPUs and one for AMD's. Each CPU ignores the other argument.
var iommuArguments = []string{"intel_iommu=on", "amd_iommu=on"}

// IOMMUArguments returns the kernel arguments that turn the IOMMU on for devices of virtual machines: those that the image has,
// or both where Ignition sets them. It returns none for Arm servers, whose IOMMU is always on.
func IOMMUArguments(image v1alpha1.OSImageSpec) []string {
	if image.Architecture == "arm64" {
		return nil
	}
	if image.UserData == v1alpha1.UserDataIgnition {
		return iommuArguments
	}
	return slices.DeleteFunc(slices.Clone(iommuArguments), func(a string) bool { return !slices.Contains(image.KernelArguments, a) })
}

// CheckIOMMU refuses an image that leaves the IOMMU off.
func CheckIOMMU(image v1alpha1.OSImageSpec) error {
	if image.Architecture == "arm64" || len(IOMMUArguments(image)) > 0 {
		return nil
	}
	return spec.Refuse(spec.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/iommu", "%v do not turn the IOMMU on, without which no virtual machine gets a device: bake in %s", image.KernelArguments, strings.Join(iommuArguments, " or "))
}

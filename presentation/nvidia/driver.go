package nvidia

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// DriverVersion is the version of the driver that will run, wherever it comes from.
func DriverVersion(r spec.Request) string {
	if FromImage(r) {
		if d := r.Image.Software.GPUDriver; d != nil {
			return d.Version
		}
		return ""
	}
	return r.GPU.Driver.Version
}

// FromImage says whether the driver is baked into the image.
func FromImage(r spec.Request) bool {
	return r.GPU.Driver.Source == "" || r.GPU.Driver.Source == v1alpha1.DriverFromImage
}

// FromOperator says whether the vendor's operator installs the driver, in a pod.
func FromOperator(r spec.Request) bool { return r.GPU.Driver.Source == v1alpha1.DriverFromOperator }

// judgeDriver refuses a driver that does not run the model. kind is what the image must have baked in.
func judgeDriver(r spec.Request, model catalogue.Model, kind string) error {
	if FromImage(r) {
		if err := judgeBaked(r.Image.Software.GPUDriver, model, kind); err != nil {
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
	return judgeModules(r, model)
}

func judgeBaked(driver *v1alpha1.GPUDriverSoftware, model catalogue.Model, kind string) error {
	if driver == nil {
		return spec.Refuse(spec.GPUField("driver.source"), v1alpha1.ReasonDriverMissing, "image/driver", "Image needs a driver in the image, and the OSImage's software.gpuDriver names none: bake the %s driver in%s", model.Vendor, orNewer(model.MinimumDriver))
	}
	if driver.Vendor != model.Vendor {
		return spec.Refuse(spec.ImageField("software.gpuDriver.vendor"), v1alpha1.ReasonDriverMissing, "image/driver-vendor", "it is %s, and %s needs a driver of vendor %s", driver.Vendor, model.Name, model.Vendor)
	}
	has := driver.Kind
	if has == "" {
		has = spec.DriverKindGPU
	}
	if has != kind {
		return spec.Refuse(spec.ImageField("software.gpuDriver.kind"), v1alpha1.ReasonDriverMissing, "image/driver-kind", "it is %s, and the presentation needs %s: they are different drivers; use an image with that one", has, kind)
	}
	return nil
}

func orNewer(minimum string) string {
	if minimum == "" {
		return ""
	}
	return ", " + minimum + " or newer"
}

// judgeModules refuses kernel modules that do not drive the model. The operator chooses the right ones unless it is told.
func judgeModules(r spec.Request, model catalogue.Model) error {
	kind := r.GPU.Driver.KernelModule
	if FromImage(r) {
		kind = r.Image.Software.GPUDriver.KernelModule
	}
	if !model.OpenModules || kind == spec.KernelModuleOpen || kind == "" && FromOperator(r) {
		return nil
	}
	field := spec.DriverField(r.GPU.Driver.Source, "kernelModule")
	if kind == spec.KernelModuleProprietary {
		return spec.Invalid(field, "image/kernel-module", "it is Proprietary, and only the open kernel modules drive %s: install those", model.Name)
	}
	return spec.Invalid(field, "image/kernel-module", "it does not say which kernel modules are installed, and only the open ones drive %s: make sure, and write Open", model.Name)
}

// companions are packages whose version must be the driver's: they refuse another one, or worse.
var companions = []string{"fabricmanager", "imex", "nscq", "nvsdm"}

func isCompanion(name string) bool {
	return slices.ContainsFunc(companions, func(c string) bool { return strings.Contains(name, c) })
}

// judgePackages refuses packages that would install something else than the version that nodes must show.
func judgePackages(r spec.Request, model catalogue.Model) error {
	if r.GPU.Driver.Source != v1alpha1.DriverFromPackages {
		return nil
	}
	packages, version := r.GPU.Driver.Packages, spec.UpstreamVersion(r.GPU.Driver.Version)
	if i := slices.IndexFunc(packages, func(p string) bool { return strings.Contains(p, "*") }); i >= 0 {
		return spec.Invalid(packageField(i), "packages/wildcard", "it is %s: a wildcard takes other branches too; write the whole version", packages[i])
	}
	if !has(slices.DeleteFunc(slices.Clone(packages), isCompanion), version) {
		return spec.Invalid(spec.GPUField("driver.packages"), "packages/version", "it has no driver of version %s, which gpu.driver.version promises: write each package with its exact version", version)
	}
	for i, p := range packages {
		if isCompanion(p) && !strings.Contains(p, version) {
			return spec.Invalid(packageField(i), "packages/companion-version", "it is %s, which only works beside a driver of its own version: write it with %s", p, version)
		}
	}
	if model.HasNVSwitch(r.GPU.Count) && !has(packages, "fabricmanager") && r.Image.Software.FabricManager == "" {
		return spec.Invalid(spec.GPUField("driver.packages"), "packages/fabric-manager", "%d %s need the fabric manager, and neither these packages nor the OSImage's software.fabricManager has it: add nvidia-fabricmanager with version %s", r.GPU.Count, model.Name, version)
	}
	return nil
}

func packageField(i int) spec.Field { return spec.GPUField(fmt.Sprintf("driver.packages[%d]", i)) }

// has says whether a package's name or version has the part.
func has(packages []string, part string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return strings.Contains(p, part) })
}

// Installs says whether the driver comes from packages, and one of them is the named one.
func Installs(r spec.Request, part string) bool {
	return r.GPU.Driver.Source == v1alpha1.DriverFromPackages && has(r.GPU.Driver.Packages, part)
}

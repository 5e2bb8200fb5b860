package nvidia

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// maxGPUs of one server, as the API has it.
const maxGPUs = 64

// Judge finds the model, and refuses an image that cannot drive it. The error is a *plan.Refusal.
func Judge(r plan.Request) (catalogue.Model, error) {
	model, err := catalogue.Lookup(r.GPU.Vendor, r.GPU.Model)
	if err != nil {
		return catalogue.Model{}, refuse("gpu/model", "gpu.model: %v", err)
	}
	if r.GPU.Count < 1 || r.GPU.Count > maxGPUs {
		return catalogue.Model{}, refuse("gpu/count", "gpu.count is %d: a server has 1 to %d GPUs", r.GPU.Count, maxGPUs)
	}
	if err := judgeDriver(model, r.Image.Software.GPUDriver); err != nil {
		return catalogue.Model{}, err
	}
	if r.Image.UserData != v1alpha1.UserDataIgnition && !blacklists(r.Image.KernelArguments, "nouveau") {
		return catalogue.Model{}, plan.Refuse(v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "the OSImage's kernelArguments %v do not keep nouveau off the GPUs, and user data cannot change the kernel's command line before it boots: bake in %s", r.Image.KernelArguments, blacklistNouveau)
	}
	return model, nil
}

func judgeDriver(model catalogue.Model, driver *v1alpha1.GPUDriverSoftware) error {
	if driver == nil {
		return plan.Refuse(v1alpha1.ReasonDriverMissing, "image/driver", "gpu.driver.source: Image needs a driver in the image, and the OSImage's software.gpuDriver names none: bake the %s driver in, %s or newer", model.Vendor, model.MinimumDriver)
	}
	if driver.Vendor != model.Vendor {
		return plan.Refuse(v1alpha1.ReasonDriverMissing, "image/driver-vendor", "the OSImage's software.gpuDriver is of vendor %s, and %s needs one of vendor %s", driver.Vendor, model.Name, model.Vendor)
	}
	older, ok := plan.OlderThan(driver.Version, model.MinimumDriver)
	if !ok {
		return refuse("image/driver-version", "the OSImage's software.gpuDriver.version %q is not a driver version such as %s", driver.Version, model.MinimumDriver)
	}
	if older {
		return plan.Refuse(v1alpha1.ReasonDriverTooOld, "image/driver-version", "the OSImage's driver is %s, and %s needs %s or newer", driver.Version, model.Name, model.MinimumDriver)
	}
	return nil
}

// JudgeToolkit refuses an image in which containers could not see GPUs that the device plugin gives them.
func JudgeToolkit(image v1alpha1.OSImageSpec) error {
	if image.Software.ContainerToolkit == "" {
		return refuse("image/container-toolkit", "the OSImage's software.containerToolkit is empty: without the NVIDIA container toolkit containers cannot see the GPUs; bake it in and name its version")
	}
	return nil
}

// blacklists knows the arguments of modprobe, of the kernel and of dracut; each takes a list.
func blacklists(arguments []string, module string) bool {
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

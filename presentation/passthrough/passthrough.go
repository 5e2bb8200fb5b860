package passthrough

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// resourceName is what the device plugin advertises whole GPUs as.
const resourceName corev1.ResourceName = "nvidia.com/gpu"

// blacklistNouveau keeps the free driver off the GPUs, in the initramfs too.
const blacklistNouveau = "modprobe.blacklist=nouveau"

// Resolve plans whole GPUs for containers with the driver baked into the image. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	model, err := catalogue.Lookup(r.GPU.Vendor, r.GPU.Model)
	if err != nil {
		return plan.Plan{}, refuse(v1alpha1.ReasonPresentationInvalid, "gpu/model", "gpu.model: %v", err)
	}
	if err := checkImage(model, r.Image); err != nil {
		return plan.Plan{}, err
	}
	fabric := model.HasNVSwitch(r.GPU.Count)
	units := []plan.Unit{{Name: "nvidia-persistenced.service"}}
	if fabric {
		units = append(units, plan.Unit{Name: fabricManager})
	}
	return plan.Plan{
		KernelArguments: []string{blacklistNouveau},
		Modules:         plan.Modules{Load: []string{"nvidia", "nvidia_uvm", "nvidia_modeset"}, Blacklist: []string{"nouveau"}},
		Files:           []plan.File{{Path: modeScript, Mode: "0755", Content: script(fabric)}},
		Units:           append(units, plan.Unit{Name: modeUnit, Content: unit(fabric)}),
		Expectation:     expect(r),
	}, nil
}

func checkImage(model catalogue.Model, image v1alpha1.OSImageSpec) error {
	driver := image.Software.GPUDriver
	if driver == nil {
		return refuse(v1alpha1.ReasonDriverMissing, "image/driver", "gpu.driver.source: Image needs a driver in the image, and the OSImage's software.gpuDriver names none: bake the %s driver in, %s or newer", model.Vendor, model.MinimumDriver)
	}
	if driver.Vendor != model.Vendor {
		return refuse(v1alpha1.ReasonDriverMissing, "image/driver-vendor", "the OSImage's software.gpuDriver is of vendor %s, and %s needs one of vendor %s", driver.Vendor, model.Name, model.Vendor)
	}
	older, ok := plan.OlderThan(driver.Version, model.MinimumDriver)
	if !ok {
		return refuse(v1alpha1.ReasonPresentationInvalid, "image/driver-version", "the OSImage's software.gpuDriver.version %q is not a driver version such as %s", driver.Version, model.MinimumDriver)
	}
	if older {
		return refuse(v1alpha1.ReasonDriverTooOld, "image/driver-version", "the OSImage's driver is %s, and %s needs %s or newer", driver.Version, model.Name, model.MinimumDriver)
	}
	if image.Software.ContainerToolkit == "" {
		return refuse(v1alpha1.ReasonPresentationInvalid, "image/container-toolkit", "the OSImage's software.containerToolkit is empty: without the NVIDIA container toolkit containers cannot see the GPUs; bake it in and name its version")
	}
	if image.UserData != v1alpha1.UserDataIgnition && !blacklists(image.KernelArguments, "nouveau") {
		return refuse(v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "the OSImage's kernelArguments %v do not keep nouveau off the GPUs, and user data cannot change the kernel's command line before it boots: bake in %s", image.KernelArguments, blacklistNouveau)
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

func expect(r plan.Request) plan.Expectation {
	return plan.Expectation{
		Resources: []plan.Resource{{
			Name: resourceName, Quantity: *resource.NewQuantity(int64(r.GPU.Count), resource.DecimalSI), Waits: true,
			Hint: "is the NVIDIA device plugin's pod on the node, and does it tolerate the gate? On the node: nvidia-smi -L; journalctl -k | grep -i xid; journalctl -u " + modeUnit,
		}},
		Labels: []plan.Label{{
			Check: "software/gpu-driver", Key: "nvidia.com/cuda.driver-version.full", Value: r.Image.Software.GPUDriver.Version,
			Hint: "the driver that runs is not the one that the OSImage names: correct software.gpuDriver.version, or rebuild the image with the driver held",
		}},
	}
}

func refuse(reason, rule, format string, args ...any) error {
	return &plan.Refusal{Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

package nvidia

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// maxGPUs of one server, as the API has it.
const maxGPUs = 64

// Judge finds the model, and refuses an image and a driver that cannot drive it. The error is a *spec.Refusal.
func Judge(r spec.Request) (catalogue.Model, error) { return JudgeKind(r, spec.DriverKindGPU) }

// JudgeKind is Judge for another kind of driver in the image.
func JudgeKind(r spec.Request, kind string) (catalogue.Model, error) {
	model, err := Find(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	if err := judgeDriver(r, model, kind); err != nil {
		return catalogue.Model{}, err
	}
	if err := judgePackages(r, model); err != nil {
		return catalogue.Model{}, err
	}
	if err := judgeFabric(r, model); err != nil {
		return catalogue.Model{}, err
	}
	return model, JudgeNouveau(r.Image)
}

// Find finds the model, whatever the image has.
func Find(r spec.Request) (catalogue.Model, error) {
	model, err := catalogue.Lookup(r.GPU.Vendor, r.GPU.Model)
	if err != nil {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("model"), "gpu/model", "%v", err)
	}
	if r.GPU.Count < 1 || r.GPU.Count > maxGPUs {
		return catalogue.Model{}, spec.Invalid(spec.GPUField("count"), "gpu/count", "it is %d, and a server has 1 to %d GPUs", r.GPU.Count, maxGPUs)
	}
	return model, nil
}

// JudgeNouveau refuses an image in which the free driver takes the GPUs first.
func JudgeNouveau(image v1alpha1.OSImageSpec) error {
	if image.UserData != v1alpha1.UserDataIgnition && !blacklists(image.KernelArguments, "nouveau") {
		return spec.Refuse(spec.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/kernel-arguments", "%v do not keep nouveau off the GPUs, and user data cannot change the kernel's command line before it boots: bake in %s", image.KernelArguments, BlacklistNouveau)
	}
	return nil
}

// JudgeToolkit refuses an image in which containers could not see GPUs that the device plugin gives them.
func JudgeToolkit(r spec.Request) error {
	if r.Image.Software.ContainerToolkit == "" && !FromOperator(r) && !Installs(r, "nvidia-container-toolkit") {
		return spec.Invalid(spec.ImageField("software.containerToolkit"), "image/container-toolkit", "it is empty: without the NVIDIA container toolkit containers cannot see the GPUs; bake it in and name its version")
	}
	return nil
}

// judgeFabric refuses companions of another version than the driver's, and an IMEX that the model has not.
func judgeFabric(r spec.Request, model catalogue.Model) error {
	software, driver := r.Image.Software, DriverVersion(r)
	if v := software.FabricManager; v != "" && model.HasNVSwitch(r.GPU.Count) && !FromOperator(r) && !spec.IsSameVersion(v, driver) {
		return spec.Invalid(spec.ImageField("software.fabricManager"), "image/fabric-manager", "it is %s, and the driver is %s: the fabric manager refuses a driver of another version, and no GPU can be used; install both with the same version", v, driver)
	}
	if r.GPU.IMEX == "" {
		return nil
	}
	if model.Link != catalogue.LinkRack {
		return spec.Invalid(spec.GPUField("imex"), "gpu/imex", "it is %s, and %s shares no memory beyond its server: remove it", r.GPU.IMEX, model.Name)
	}
	if r.GPU.IMEX == spec.IMEXHost && !FromOperator(r) && !spec.IsSameVersion(software.IMEX, driver) && !Installs(r, "imex") {
		return spec.Invalid(spec.GPUField("imex"), "image/imex", "it is Host, the OSImage's software.imex is %q, and the driver is %s: bake nvidia-imex in with the driver's version, or leave it out", software.IMEX, driver)
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

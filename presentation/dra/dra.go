package dra

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Driver is the name of NVIDIA's DRA driver for GPUs.
const Driver = "gpu.nvidia.com"

// Labels of the node by which the vendor's DaemonSets choose it.
const (
	labelDevicePlugin  = "nvidia.com/gpu.deploy.device-plugin"
	labelKubeletPlugin = "nvidia.com/dra-kubelet-plugin"
)

// What the driver needs (its documentation's prerequisites, and containerd's: 1.6 starts pods and hands them no CDI device).
const (
	minimumDriver     = "565"
	minimumKubelet    = "1.34.2"
	minimumContainerd = "1.7"
)

// architectures are how the driver spells them.
var architectures = map[catalogue.Architecture]string{catalogue.Ampere: "Ampere", catalogue.Hopper: "Hopper"}

// Kind is devices of one kind that the driver publishes.
type Kind struct {
	// Type is the attribute type.
	Type string
	// Class is the DeviceClass that selects devices of the type.
	Class string
	// Profiles are the names of the MIG profile; empty: it has none.
	Profiles []string
	// Count of devices.
	Count int
}

// GPUs are whole GPUs.
func GPUs(count int) Kind { return Kind{Type: "gpu", Class: "gpu.nvidia.com", Count: count} }

// Instances are MIG instances of one profile, which goes by any of the names.
func Instances(profiles []string, count int) Kind {
	return Kind{Type: "mig", Class: "mig.nvidia.com", Profiles: profiles, Count: count}
}

// Resolve plans whole GPUs that the DRA driver gives away. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	if spec := r.GPU.Presentation.DRA; spec != nil && spec.Driver != "" && spec.Driver != Driver {
		return plan.Plan{}, plan.Refuse(v1alpha1.ReasonPresentationInvalid, "dra/driver", "dra.driver is %s, and GPUs of vendor %s are published by %s: correct it, or leave it out", spec.Driver, r.GPU.Vendor, Driver)
	}
	model, err := Judge(r)
	if err != nil {
		return plan.Plan{}, err
	}
	p := nvidia.Node(r, model, nvidia.MIGOff())
	Publish(&p, r, model, GPUs(int(r.GPU.Count)))
	return p, nil
}

// Judge finds the model, and refuses an image with which the DRA driver does not work. The error is a *plan.Refusal.
func Judge(r plan.Request) (catalogue.Model, error) {
	model, err := nvidia.Judge(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	software := r.Image.Software
	for _, need := range []struct{ rule, reason, field, version, minimum, why string }{
		{"dra/driver-version", v1alpha1.ReasonDriverTooOld, "gpuDriver.version", software.GPUDriver.Version, minimumDriver, "NVIDIA's DRA driver does not work with older drivers"},
		{"dra/kubelet-version", v1alpha1.ReasonPresentationInvalid, "kubelet", software.Kubelet, minimumKubelet, "NVIDIA's DRA driver does not work with older kubelets"},
		{"dra/containerd-version", v1alpha1.ReasonPresentationInvalid, "containerd", software.Containerd, minimumContainerd, "devices reach containers by CDI, which older ones ignore without an error; before 2.0 its configuration must say enable_cdi"},
	} {
		older, ok := plan.OlderThan(need.version, need.minimum)
		if !ok {
			return catalogue.Model{}, plan.Refuse(v1alpha1.ReasonPresentationInvalid, need.rule, "the OSImage's software.%s is %q, and must be a version, %s or newer: %s", need.field, need.version, need.minimum, need.why)
		}
		if older {
			return catalogue.Model{}, plan.Refuse(need.reason, need.rule, "the OSImage's software.%s is %s, and %s or newer is needed: %s", need.field, need.version, need.minimum, need.why)
		}
	}
	return model, nil
}

// Publish makes the DRA driver the advertiser of a plan, with these devices. The request has passed Judge.
func Publish(p *plan.Plan, r plan.Request, model catalogue.Model, kinds ...Kind) {
	p.NodeLabels = map[string]string{labelDevicePlugin: "false", labelKubeletPlugin: "true"}
	slice := plan.SliceExpectation{
		Driver: Driver,
		Hint: "is the pod of the DRA driver's kubelet plugin on the node, and does it tolerate the gate? It looks for devices when it starts, and never again. " +
			"On the node: nvidia-smi -L; journalctl -u " + nvidia.ModeUnit,
	}
	for _, k := range kinds {
		slice.Devices = append(slice.Devices, plan.DeviceExpectation{
			Type: k.Type, Profiles: k.Profiles, Count: k.Count, Attributes: attributes(model, r.Image.Software.GPUDriver.Version),
		})
		at := slices.IndexFunc(slice.DeviceClasses, func(c plan.DeviceClassExpectation) bool { return c.Name == k.Class })
		if at < 0 {
			at, slice.DeviceClasses = len(slice.DeviceClasses), append(slice.DeviceClasses, plan.DeviceClassExpectation{Name: k.Class})
		}
		slice.DeviceClasses[at].Count += k.Count
	}
	p.Expectation.Slices = []plan.SliceExpectation{slice}
}

// attributes that every device of the driver's has.
func attributes(model catalogue.Model, driver string) map[string][]string {
	out := map[string][]string{"driverVersion": versions(driver)}
	if spelled, known := architectures[model.Architecture]; known {
		out["architecture"] = []string{spelled}
	}
	return out
}

// versions are the forms of the driver's version in an attribute, which is a semantic version.
func versions(driver string) []string {
	if semantic, ok := plan.Semantic(driver); ok && semantic != driver {
		return []string{semantic, driver}
	}
	return []string{driver}
}

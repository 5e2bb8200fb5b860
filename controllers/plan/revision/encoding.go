package revision

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// object is one level of the canonical form. encoding/json sorts its keys.
type object map[string]any

// encodeV1 is the first encoding. It is frozen: a new field is added only so that its default leaves no trace.
func encodeV1(spec v1alpha1.NodeTypeRevisionSpec) object {
	layers := slices.DeleteFunc(slices.Clone(spec.UserData), func(layer string) bool { return layer == "" })
	keys := slices.Clone(spec.SSHKeys)
	slices.Sort(keys)
	form := object{}
	form.number("hashVersion", int64(spec.HashVersion), 0)
	form.nested("image", imageV1(spec.Image))
	form.nested("gpu", gpuV1(spec.GPU))
	form.texts("userData", layers)
	form.nested("properties", propertiesV1(spec.Properties))
	form.nested("network", networkV1(spec.Network))
	form.texts("sshKeys", keys)
	return form
}

func imageV1(image v1alpha1.RevisionImage) object {
	form := object{}
	form.text("checksum", image.Checksum, "")
	form.text("format", string(image.Format), "")
	form.text("userData", string(image.UserData), string(v1alpha1.UserDataCloudInit))
	return form
}

// propertiesV1 is what a node sees: a later level wins, and where a property comes from does not matter.
func propertiesV1(levels []map[string]string) object {
	form := object{}
	for _, level := range levels {
		for key, value := range level {
			form[key] = value
		}
	}
	return form
}

func networkV1(network *v1alpha1.NetworkSpec) object {
	form := object{}
	if network != nil {
		form.text("cidr", network.CIDR, "")
		form.texts("dnsServers", network.DNSServers)
	}
	return form
}

func gpuV1(gpu *v1alpha1.GPUSpec) object {
	form := object{}
	if gpu == nil {
		return form
	}
	form.text("vendor", string(gpu.Vendor), "")
	form.text("model", gpu.Model, "")
	form.number("count", int64(gpu.Count), 0)
	form.text("driver.source", string(gpu.Driver.Source), string(v1alpha1.DriverFromImage))
	form.text("driver.version", gpu.Driver.Version, "")
	form.text("driver.kernelModule", gpu.Driver.KernelModule, "")
	form.texts("driver.packages", gpu.Driver.Packages)
	form.text("imex", gpu.IMEX, "ComputeDomain")
	form.nested("generic", genericV1(gpu.Generic))
	form.text("mode", string(gpu.Presentation.Mode), "")
	form.nested("passthrough", passthroughV1(gpu.Presentation.Passthrough))
	form.nested("vgpu", vgpuV1(gpu.Presentation.VGPU))
	form.nested("mig", migV1(gpu.Presentation.MIG))
	form.nested("dra", draV1(gpu.Presentation.DRA))
	form.nested("partitions", partitionsV1(gpu.Presentation.Partitions))
	return form
}

func genericV1(generic *v1alpha1.GenericSpec) object {
	form := object{}
	if generic == nil {
		return form
	}
	form.text("resourceName", generic.ResourceName, "")
	form.number("resourcesPerDevice", int64(max(generic.ResourcesPerDevice, 1)), 1)
	form.texts("kernelArguments", generic.KernelArguments)
	form.texts("modules", generic.Modules)
	form.texts("blacklist", generic.Blacklist)
	form.texts("packages", generic.Packages)
	if generic.DRA != nil {
		dra := object{}
		dra.text("driver", generic.DRA.Driver, "")
		dra.text("deviceClass", generic.DRA.DeviceClass, "")
		dra.text("type", generic.DRA.Type, "")
		form.nested("dra", dra)
	}
	return form
}

func partitionsV1(partitions *v1alpha1.PartitionSpec) object {
	form := object{}
	if partitions != nil {
		form.text("compute", partitions.Compute, "")
		form.text("memory", partitions.Memory, "")
		form.text("resourceNaming", partitions.ResourceNaming, "single")
	}
	return form
}

func passthroughV1(passthrough *v1alpha1.PassthroughSpec) object {
	form := object{}
	if passthrough != nil {
		form.text("workload", string(passthrough.Workload), string(v1alpha1.WorkloadContainer))
		form.text("advertise", string(passthrough.Advertise), string(v1alpha1.AdvertiseDevicePlugin))
		form.nested("sharing", sharingV1(passthrough.Sharing))
		form.texts("addresses", sorted(passthrough.Addresses))
		form.text("resourceName", passthrough.ResourceName, "")
	}
	return form
}

func sharingV1(sharing *v1alpha1.SharingSpec) object {
	form := object{}
	if sharing != nil {
		form.text("strategy", sharing.Strategy, "")
		form.number("replicas", int64(sharing.Replicas), 0)
	}
	return form
}

func vgpuV1(vgpu *v1alpha1.VGPUSpec) object {
	form := object{}
	if vgpu == nil {
		return form
	}
	form.text("role", vgpu.Role, "")
	form.counts("types", vgpu.Types)
	form.text("framework", vgpu.Framework, "")
	form.text("namePrefix", vgpu.NamePrefix, "")
	if vgpu.Licence != nil {
		licence := object{}
		licence.text("tokenSecretRef", vgpu.Licence.TokenSecretRef.Name, "")
		licence.number("featureType", int64(vgpu.Licence.FeatureType), 0)
		form.nested("licence", licence)
	}
	return form
}

func migV1(mig *v1alpha1.MIGSpec) object {
	form := object{}
	if mig == nil {
		return form
	}
	form.text("strategy", mig.Strategy, "")
	form.text("advertise", string(mig.Advertise), string(v1alpha1.AdvertiseDevicePlugin))
	form.layout(mig.Layout)
	return form
}

func draV1(dra *v1alpha1.DRASpec) object {
	form := object{}
	if dra != nil {
		form.text("driver", dra.Driver, "")
		form.text("devices", dra.Devices, "GPU")
		form.nested("sharing", sharingV1(dra.Sharing))
		form.layout(dra.Layout)
		form.texts("featureGates", sorted(dra.FeatureGates))
	}
	return form
}

// layout sets the member layout, a list of GPUs and their MIG profiles.
func (o object) layout(parts []v1alpha1.MIGLayout) {
	var layout []object
	for _, part := range parts {
		entry := object{}
		if len(part.GPUs) > 0 {
			entry["gpus"] = part.GPUs
		}
		entry.counts("profiles", part.Profiles)
		layout = append(layout, entry)
	}
	if len(layout) > 0 {
		o["layout"] = layout
	}
}

// sorted is a set in its canonical order.
func sorted(set []string) []string { return slices.Sorted(slices.Values(set)) }

// text sets a member unless it is empty or has its default.
func (o object) text(key, value, standard string) {
	if value != "" && value != standard {
		o[key] = value
	}
}

func (o object) number(key string, value, standard int64) {
	if value != standard {
		o[key] = value
	}
}

func (o object) texts(key string, values []string) {
	if len(values) > 0 {
		o[key] = values
	}
}

func (o object) counts(key string, values map[string]int32) {
	if len(values) > 0 {
		o[key] = values
	}
}

func (o object) nested(key string, value object) {
	if len(value) > 0 {
		o[key] = value
	}
}

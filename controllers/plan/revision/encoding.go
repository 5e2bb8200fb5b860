package revision

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// object is a JSON object of the canonical form. encoding/json sorts its keys.
type object map[string]any

// encodeV1 returns the canonical form of hash version 1. It is frozen: a new field may be added only if its default is omitted.
func encodeV1(spec v1alpha1.NodeTypeRevisionSpec) object {
	layers := slices.DeleteFunc(slices.Clone(spec.UserData), func(layer string) bool { return layer == "" })
	keys := slices.Clone(spec.SSHKeys)
	slices.Sort(keys)
	form := object{}
	form.setNumber("hashVersion", int64(spec.HashVersion), 0)
	form.setObject("image", imageV1(spec.Image))
	form.setObject("gpu", gpuV1(spec.GPU))
	form.setTexts("userData", layers)
	form.setObject("properties", propertiesV1(spec.Properties))
	form.setObject("network", networkV1(spec.Network))
	form.setTexts("sshKeys", keys)
	form.setObject("kubelet", kubeletV1(spec.Kubelet))
	form.setObject("containerd", containerdV1(spec.Containerd))
	return form
}

// containerdV1 returns the mirrors by their registries: their order means nothing, and that of the endpoints of one does.
func containerdV1(spec *v1alpha1.ContainerdSpec) object {
	form := object{}
	if spec == nil {
		return form
	}
	form.setText("sandboxImage", spec.SandboxImage, "")
	mirrors := object{}
	for _, m := range spec.RegistryMirrors {
		mirror := object{}
		mirror.setTexts("endpoints", m.Endpoints)
		mirror.setText("caBundle", m.CABundle, "")
		mirrors[m.Registry] = mirror
	}
	form.setObject("registryMirrors", mirrors)
	return form
}

// kubeletV1 returns the user's members with sorted keys. What kind of document they are is no member. Text that is no object is taken as it is: no node
// is made of it.
func kubeletV1(members *runtime.RawExtension) object {
	form := object{}
	if members == nil || len(members.Raw) == 0 {
		return form
	}
	decoder := json.NewDecoder(bytes.NewReader(members.Raw))
	decoder.UseNumber() // A number keeps its digits.
	if err := decoder.Decode(&form); err != nil {
		return object{"invalid": string(members.Raw)}
	}
	delete(form, "apiVersion")
	delete(form, "kind")
	return form
}

// hasMembers returns true when there is something that the digest covers.
func hasMembers(kubelet *runtime.RawExtension) bool { return len(kubeletV1(kubelet)) > 0 }

func imageV1(image v1alpha1.RevisionImage) object {
	form := object{}
	form.setText("checksum", image.Checksum, "")
	form.setText("format", string(image.Format), "")
	form.setText("userData", string(image.UserData), string(v1alpha1.UserDataCloudInit))
	return form
}

// propertiesV1 merges the layers as a node does: a later layer overrides an earlier one.
func propertiesV1(layers []map[string]string) object {
	form := object{}
	for _, layer := range layers {
		for key, value := range layer {
			form[key] = value
		}
	}
	return form
}

func networkV1(network *v1alpha1.NetworkSpec) object {
	form := object{}
	if network != nil {
		form.setText("cidr", network.CIDR, "")
		form.setTexts("dnsServers", network.DNSServers)
	}
	return form
}

func gpuV1(gpu *v1alpha1.GPUSpec) object {
	form := object{}
	if gpu == nil {
		return form
	}
	form.setText("vendor", string(gpu.Vendor), "")
	form.setText("model", gpu.Model, "")
	form.setNumber("count", int64(gpu.Count), 0)
	form.setText("driver.source", string(gpu.Driver.Source), string(v1alpha1.DriverFromImage))
	form.setText("driver.version", gpu.Driver.Version, "")
	form.setText("driver.kernelModule", gpu.Driver.KernelModule, "")
	form.setTexts("driver.packages", gpu.Driver.Packages)
	form.setText("imex", gpu.IMEX, "ComputeDomain")
	form.setText("tenancy", string(gpu.Tenancy), string(v1alpha1.TenancyDedicated))
	form.setObject("generic", genericV1(gpu.Generic))
	form.setText("mode", string(gpu.Presentation.Mode), "")
	form.setObject("passthrough", passthroughV1(gpu.Presentation.Passthrough))
	form.setObject("vgpu", vgpuV1(gpu.Presentation.VGPU))
	form.setObject("mig", migV1(gpu.Presentation.MIG))
	form.setObject("dra", draV1(gpu.Presentation.DRA))
	form.setObject("partitions", partitionsV1(gpu.Presentation.Partitions))
	return form
}

func genericV1(generic *v1alpha1.GenericSpec) object {
	form := object{}
	if generic == nil {
		return form
	}
	form.setText("resourceName", generic.ResourceName, "")
	form.setNumber("resourcesPerDevice", int64(max(generic.ResourcesPerDevice, 1)), 1)
	form.setTexts("kernelArguments", generic.KernelArguments)
	form.setTexts("modules", generic.Modules)
	form.setTexts("blacklist", generic.Blacklist)
	form.setTexts("packages", generic.Packages)
	if generic.DRA != nil {
		dra := object{}
		dra.setText("driver", generic.DRA.Driver, "")
		dra.setText("deviceClass", generic.DRA.DeviceClass, "")
		dra.setText("type", generic.DRA.Type, "")
		form.setObject("dra", dra)
	}
	return form
}

func partitionsV1(partitions *v1alpha1.PartitionSpec) object {
	form := object{}
	if partitions != nil {
		form.setText("compute", partitions.Compute, "")
		form.setText("memory", partitions.Memory, "")
		form.setText("resourceNaming", partitions.ResourceNaming, "single")
	}
	return form
}

func passthroughV1(passthrough *v1alpha1.PassthroughSpec) object {
	form := object{}
	if passthrough != nil {
		form.setText("workload", string(passthrough.Workload), string(v1alpha1.WorkloadContainer))
		form.setText("advertise", string(passthrough.Advertise), string(v1alpha1.AdvertiseDevicePlugin))
		form.setObject("sharing", sharingV1(passthrough.Sharing))
		form.setTexts("addresses", sorted(passthrough.Addresses))
		form.setText("resourceName", passthrough.ResourceName, "")
	}
	return form
}

func sharingV1(sharing *v1alpha1.SharingSpec) object {
	form := object{}
	if sharing != nil {
		form.setText("strategy", sharing.Strategy, "")
		form.setNumber("replicas", int64(sharing.Replicas), 0)
	}
	return form
}

func vgpuV1(vgpu *v1alpha1.VGPUSpec) object {
	form := object{}
	if vgpu == nil {
		return form
	}
	form.setText("role", vgpu.Role, "")
	form.setCounts("types", vgpu.Types)
	form.setText("framework", vgpu.Framework, "")
	form.setText("namePrefix", vgpu.NamePrefix, "")
	if vgpu.Licence != nil {
		licence := object{}
		licence.setText("tokenSecretRef", vgpu.Licence.TokenSecretRef.Name, "")
		licence.setNumber("featureType", int64(vgpu.Licence.FeatureType), 0)
		form.setObject("licence", licence)
	}
	return form
}

func migV1(mig *v1alpha1.MIGSpec) object {
	form := object{}
	if mig == nil {
		return form
	}
	form.setText("strategy", mig.Strategy, "")
	form.setText("advertise", string(mig.Advertise), string(v1alpha1.AdvertiseDevicePlugin))
	form.setLayout(mig.Layout)
	return form
}

func draV1(dra *v1alpha1.DRASpec) object {
	form := object{}
	if dra != nil {
		form.setText("driver", dra.Driver, "")
		form.setText("devices", dra.Devices, "GPU")
		form.setObject("sharing", sharingV1(dra.Sharing))
		form.setLayout(dra.Layout)
		form.setText("driverRelease", dra.DriverRelease, "")
		form.setTexts("featureGates", sorted(dra.FeatureGates))
	}
	return form
}

// setLayout sets the member layout, a list of GPUs and their MIG profiles.
func (o object) setLayout(parts []v1alpha1.MIGLayout) {
	var layout []object
	for _, part := range parts {
		entry := object{}
		if len(part.GPUs) > 0 {
			entry["gpus"] = part.GPUs
		}
		entry.setCounts("profiles", part.Profiles)
		layout = append(layout, entry)
	}
	if len(layout) > 0 {
		o["layout"] = layout
	}
}

// sorted returns the items of a set in canonical order.
func sorted(set []string) []string { return slices.Sorted(slices.Values(set)) }

// setText sets a member, unless the value is empty or the default.
func (o object) setText(key, value, defaultValue string) {
	if value != "" && value != defaultValue {
		o[key] = value
	}
}

func (o object) setNumber(key string, value, defaultValue int64) {
	if value != defaultValue {
		o[key] = value
	}
}

func (o object) setTexts(key string, values []string) {
	if len(values) > 0 {
		o[key] = values
	}
}

func (o object) setCounts(key string, values map[string]int32) {
	if len(values) > 0 {
		o[key] = values
	}
}

func (o object) setObject(key string, value object) {
	if len(value) > 0 {
		o[key] = value
	}
}

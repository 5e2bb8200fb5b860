package convert

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/mig"
	"github.com/ingot-dev/ingot/presentation/mig/layout"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// convertNVIDIA converts GPUs for containers: unpartitioned, shared, or MIG instances.
func (r gpuReader) convertNVIDIA(resources []string) map[string]any {
	model := r.model(v1alpha1.VendorNVIDIA)
	shared, unpartitioned := r.counts[sharedGPU], r.counts[wellknown.NVIDIAGPU]
	profiles := slices.DeleteFunc(slices.Clone(resources), func(s string) bool { return !strings.HasPrefix(s, wellknown.NVIDIAMIGPrefix) })
	switch {
	case shared > 0:
		return r.convertShared(model, resources)
	case len(profiles) > 0:
		return r.convertMIG(model, profiles, unpartitioned)
	}
	gpu, presentation := newGPU(v1alpha1.VendorNVIDIA, model.Name, unpartitioned, v1alpha1.ModePassthrough)
	if n := r.count(); n > 0 && unpartitioned%n == 0 && unpartitioned/n >= 2 {
		gpu["count"] = n
		r.share(presentation, unpartitioned/n, wellknown.NVIDIAGPU)
	}
	if model.Name == "" {
		r.report(conversion.RuleAdd, "it has %d of %s, of a model that vMetal does not say: add spec.gpu.model, and another presentation than whole GPUs where there is one", unpartitioned, wellknown.NVIDIAGPU)
	}
	return gpu
}

// convertShared converts GPUs that pods share, under the name that the device plugin gives them when it renames them.
func (r gpuReader) convertShared(model catalogue.Model, resources []string) map[string]any {
	shared, n := r.counts[sharedGPU], r.count()
	if len(resources) > 1 || n == 0 || shared%n != 0 || shared/n < 2 {
		r.report(conversion.RuleAdd, "it has %d of %s: add spec.gpu with its model, its count and presentation.passthrough.sharing, whose replicas are those of one GPU", shared, strings.Join(resources, " and "))
		return nil
	}
	gpu, presentation := newGPU(v1alpha1.VendorNVIDIA, model.Name, n, v1alpha1.ModePassthrough)
	r.share(presentation, shared/n, sharedGPU)
	r.askForModel(model, sharedGPU)
	return gpu
}

func (r gpuReader) share(presentation map[string]any, replicas int64, resource string) {
	presentation["passthrough"] = map[string]any{"sharing": map[string]any{"strategy": spec.SharingTimeSlicing, "replicas": replicas}}
	r.report(conversion.RuleCheck, "%d of %s on %d GPUs is time-slicing with %d replicas, or MPS: choose the strategy; pods request %s", r.counts[resource], resource, r.count(), replicas, wellknown.NVIDIAGPU)
}

// convertMIG converts MIG instances: so many of each profile on all GPUs are a layout of each GPU.
func (r gpuReader) convertMIG(model catalogue.Model, resources []string, unpartitioned int64) map[string]any {
	needs := func(why string) map[string]any {
		r.report(conversion.RuleAdd, "it has %s, and %s: add spec.gpu with its model, its count and presentation.mig.layout", strings.Join(resources, " and "), why)
		return nil
	}
	models := withProfiles(model, resources)
	if len(models) == 0 {
		return needs("no model of the catalogue, or not the one of the selector, has these profiles")
	}
	partitioned := r.count() - unpartitioned
	counts, ok := layoutOfEach(models[0], resources, r.counts, partitioned)
	if r.count() == 0 {
		for partitioned = 1; partitioned <= maxGPUs && !ok; partitioned++ {
			counts, ok = layoutOfEach(models[0], resources, r.counts, partitioned)
		}
		partitioned--
	}
	if !ok {
		return needs("no number of GPUs with one layout each has them")
	}
	if r.count() == 0 {
		r.report(conversion.RuleCheck, "that there are %d partitioned GPUs is the smallest number that can have them: correct spec.gpu.count and presentation.mig.layout if there are more", partitioned)
	}
	if len(models) == 1 {
		model = models[0]
	} else {
		r.report(conversion.RuleAdd, "by its profiles it has one of the models %s: add spec.gpu.model", strings.Join(names(models), ", "))
	}
	gpu, presentation := newGPU(v1alpha1.VendorNVIDIA, model.Name, partitioned+unpartitioned, v1alpha1.ModeMIG)
	entry := map[string]any{"profiles": counts}
	if unpartitioned > 0 {
		entry["gpus"] = upTo(partitioned)
		r.report(conversion.RuleCheck, "which GPUs are partitioned is not said: here the first %d", partitioned)
	}
	presentation["mig"] = map[string]any{"strategy": wellknown.MIGStrategyMixed, "layout": []any{entry}}
	return gpu
}

// withProfiles returns the models that have all the profiles: the given one, or when it has no name every one of the catalogue. They all
// have the geometry of the first.
func withProfiles(model catalogue.Model, resources []string) []catalogue.Model {
	var out []catalogue.Model
	for _, m := range catalogue.Models() {
		if model.Name != "" && m.Name != model.Name || m.Geometry == nil || len(out) > 0 && m.Geometry != out[0].Geometry {
			continue
		}
		if !slices.ContainsFunc(resources, func(resource string) bool { return profileOf(m, resource) < 0 }) {
			out = append(out, m)
		}
	}
	return out
}

// profileOf returns the index of the profile that is advertised as the resource, or -1.
func profileOf(m catalogue.Model, resource string) int {
	return slices.IndexFunc(m.Geometry.Profiles, func(p catalogue.Profile) bool {
		return slices.ContainsFunc(m.ProfileNames(p), func(name string) bool { return string(mig.ResourceName(name)) == resource })
	})
}

// layoutOfEach returns how many instances of each profile one GPU has, when so many GPUs have them all; false: they cannot.
func layoutOfEach(m catalogue.Model, resources []string, totals map[string]int64, gpus int64) (map[string]any, bool) {
	if gpus < 1 || gpus > maxGPUs {
		return nil, false
	}
	each, counts := map[string]any{}, make(layout.Counts, len(m.Geometry.Profiles))
	for _, resource := range resources {
		if totals[resource]%gpus != 0 || totals[resource]/gpus > maxGPUs {
			return nil, false
		}
		at, n := profileOf(m, resource), totals[resource]/gpus
		counts[at] += int(n)
		for _, name := range m.ProfileNames(m.Geometry.Profiles[at]) {
			if string(mig.ResourceName(name)) == resource {
				each[name] = n
			}
		}
	}
	_, err := layout.Place(*m.Geometry, counts)
	return each, err == nil
}

func names(models []catalogue.Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.Name)
	}
	return out
}

func upTo(n int64) []any {
	var out []any
	for i := range n {
		out = append(out, i)
	}
	return out
}

// convertVirtualMachines converts NVIDIA's GPUs for virtual machines: whole ones under the names of its KubeVirt device plugin, or vGPUs under
// those of their types.
func (r gpuReader) convertVirtualMachines(resources []string) map[string]any {
	if len(resources) > 1 {
		r.report(conversion.RuleAdd, "it has %s, which are not of one presentation that this version knows: add spec.gpu", strings.Join(resources, " and "))
		return nil
	}
	resource, name := resources[0], strings.TrimPrefix(resources[0], wellknown.NVIDIADomain)
	if gpu := r.convertVGPU(resource, name); gpu != nil {
		return gpu
	}
	var models []catalogue.Model
	for _, m := range catalogue.Models() {
		advertised, unlisted := m.KubeVirtResourceNames()
		if m.Vendor == v1alpha1.VendorNVIDIA && slices.Contains(append(advertised, unlisted...), name) {
			models = append(models, m)
		}
	}
	if len(models) == 0 {
		r.report(conversion.RuleAdd, "it has %d of %s, which no software that this version knows advertises: add spec.gpu with its presentation", r.counts[resource], resource)
		return nil
	}
	model := r.model(v1alpha1.VendorNVIDIA)
	if len(models) == 1 {
		model = models[0]
	}
	gpu, presentation := newGPU(v1alpha1.VendorNVIDIA, model.Name, r.counts[resource], v1alpha1.ModePassthrough)
	presentation["passthrough"] = map[string]any{"workload": string(v1alpha1.WorkloadVM), "resourceName": resource}
	r.askForModel(model, resource)
	r.report(conversion.RuleCheck, "%s is for virtual machines: the image must have no GPU driver, and the kernel argument that turns the IOMMU on", resource)
	return gpu
}

// convertVGPU converts vGPUs of one type, whose resource ends in the type's name; nil: it is none.
func (r gpuReader) convertVGPU(resource, name string) map[string]any {
	prefix, typeName, found := strings.Cut(name, "_")
	if !found || prefix != "NVIDIA" && prefix != "GRID" {
		return nil
	}
	for _, m := range catalogue.Models() {
		for _, v := range m.VGPUTypes() {
			if v.Name != typeName {
				continue
			}
			each := int64(v.Max)
			if n := r.count(); n > 0 && r.counts[resource]%n == 0 {
				each = r.counts[resource] / n
			}
			if each > int64(v.Max) || r.counts[resource]%each != 0 {
				return nil
			}
			gpu, presentation := newGPU(v1alpha1.VendorNVIDIA, m.Name, r.counts[resource]/each, v1alpha1.ModeVGPU)
			host := map[string]any{"role": "Host", "types": map[string]any{typeName: each}}
			if prefix == "GRID" {
				host["namePrefix"] = prefix
			}
			presentation["vgpu"] = host
			r.report(conversion.RuleCheck, "%d of %s are %d on each of %d GPUs: correct it if they are spread otherwise; the image needs the vGPU manager and the vGPU device manager", r.counts[resource], resource, each, r.counts[resource]/each)
			return gpu
		}
	}
	return nil
}

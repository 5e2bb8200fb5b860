package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// maxGPUs is how many GPUs a server can have in Ingot.
const maxGPUs = 64

// gpuReader converts the resources of one node type that are GPUs to spec.gpu.
type gpuReader struct {
	c           *converter
	manifest    offline.Manifest
	field, name string
	// selector is the node type's selector of hosts. Its labels may say the model and the number of GPUs.
	selector map[string]any
	// counts has the resources that are GPUs.
	counts map[string]int64
}

// gpuKind is a way in which GPUs are advertised, in vMetal's resources.
type gpuKind struct {
	// has reports whether the resource is advertised so.
	has func(resource string) bool
	// convert returns spec.gpu for such resources; nil: more is needed, and a finding says what.
	convert func(r gpuReader, resources []string) map[string]any
}

// gpuKinds are tried in this order; the last takes every resource of a domain of accelerators.
var gpuKinds = []gpuKind{
	{isNVIDIAForContainers, gpuReader.convertNVIDIA},
	{hasPrefix(wellknown.NVIDIADomain), gpuReader.convertVirtualMachines},
	{hasPrefix(wellknown.AMDDomain), gpuReader.convertAMD},
	{hasPrefix(wellknown.HabanaDomain), gpuReader.convertGeneric},
	{hasPrefix(wellknown.IntelGPUDomain), gpuReader.convertGeneric},
}

func hasPrefix(prefix string) func(string) bool {
	return func(resource string) bool { return strings.HasPrefix(resource, prefix) }
}

func isNVIDIAForContainers(resource string) bool {
	return resource == wellknown.NVIDIAGPU || resource == sharedGPU || strings.HasPrefix(resource, wellknown.NVIDIAMIGPrefix)
}

// sharedGPU is the resource of GPUs that pods share, where the device plugin renames it.
const sharedGPU = wellknown.NVIDIAGPU + ".shared"

// convertResources converts resources, which are promises in Ingot. Those that are GPUs become spec.gpu.
func (c *converter) convertResources(m offline.Manifest, field, name string, spec, one map[string]any) {
	promised := maps.Clone(conversion.ValueAt[map[string]any](one, "resources"))
	selector, _ := spec["hostSelector"].(map[string]any)
	r := gpuReader{c: c, manifest: m, field: field + ".resources", name: name, selector: selector, counts: map[string]int64{}}
	byKind := make([][]string, len(gpuKinds))
	for _, resource := range slices.Sorted(maps.Keys(promised)) {
		kind := slices.IndexFunc(gpuKinds, func(k gpuKind) bool { return k.has(resource) })
		if kind < 0 {
			continue
		}
		n, whole := toInt64(promised[resource])
		delete(promised, resource)
		if !whole || n < 1 {
			r.report(conversion.RuleLost, "%s is %v, and not a number of devices", resource, n)
			continue
		}
		r.counts[resource] = n
		byKind[kind] = append(byKind[kind], resource)
	}
	for i, resources := range byKind {
		switch {
		case len(resources) == 0:
		case spec["gpu"] != nil:
			r.report(conversion.RuleAdd, "it also has %s, and a NodeType presents its GPUs in one way: make another NodeType for them", strings.Join(resources, ", "))
		default:
			if gpu := gpuKinds[i].convert(r, resources); gpu != nil {
				spec["gpu"] = gpu
			}
		}
	}
	conversion.CopyField(spec, "resources", promised)
	if len(promised) > 0 {
		c.AddFinding(m, field+".resources", conversion.RuleCheck, "NodeType %s promises its resources, and a node that differs is not admitted: cpu exactly, memory up to 5%% less", name)
	}
}

func (r gpuReader) report(rule, format string, args ...any) {
	r.c.AddFinding(r.manifest, r.field, rule, "NodeType %s: %s", r.name, fmt.Sprintf(format, args...))
}

// newGPU returns spec.gpu with what is known; a model of "" and a count of 0 are left out, for validate to ask for.
func newGPU(vendor v1alpha1.GPUVendor, model string, count int64, mode v1alpha1.PresentationMode) (gpu, presentation map[string]any) {
	presentation = map[string]any{"mode": string(mode)}
	gpu = map[string]any{"vendor": string(vendor), "presentation": presentation}
	conversion.CopyField(gpu, "model", model)
	if count > 0 {
		gpu["count"] = count
	}
	return gpu, presentation
}

// convertAMD converts AMD's GPUs: unpartitioned ones, or partitions by the names of the device plugin's naming strategy mixed.
func (r gpuReader) convertAMD(resources []string) map[string]any {
	if len(resources) > 1 {
		r.report(conversion.RuleAdd, "it has %s, and all GPUs of a server have one partition: add spec.gpu", strings.Join(resources, " and "))
		return nil
	}
	resource, model := resources[0], r.model(v1alpha1.VendorAMD)
	if resource == wellknown.AMDGPU {
		gpu, _ := newGPU(v1alpha1.VendorAMD, model.Name, r.counts[resource], v1alpha1.ModePassthrough)
		r.askForModel(model, resource)
		return gpu
	}
	compute, memory, found := strings.Cut(strings.ToUpper(strings.TrimPrefix(resource, wellknown.AMDDomain)), "_")
	each := map[string]int64{"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": int64(model.XCC)}[compute]
	if !found || each == 0 || r.counts[resource]%each != 0 {
		r.report(conversion.RuleAdd, "it has %d of %s: add spec.gpu with its model, its count and presentation.partitions", r.counts[resource], resource)
		return nil
	}
	gpu, presentation := newGPU(v1alpha1.VendorAMD, model.Name, r.counts[resource]/each, v1alpha1.ModePassthrough)
	presentation["partitions"] = map[string]any{"compute": compute, "memory": memory, "resourceNaming": wellknown.AMDNamingMixed}
	r.askForModel(model, resource)
	return gpu
}

// convertGeneric converts devices that the catalogue does not have to an accelerator of vendor generic.
func (r gpuReader) convertGeneric(resources []string) map[string]any {
	if len(resources) > 1 {
		r.report(conversion.RuleAdd, "it has %s, and spec.gpu.generic has one resource: add spec.gpu for one of them", strings.Join(resources, " and "))
		return nil
	}
	_, model, _ := strings.Cut(resources[0], "/")
	gpu, _ := newGPU(v1alpha1.VendorGeneric, model, r.counts[resources[0]], v1alpha1.ModePassthrough)
	gpu["generic"] = map[string]any{"resourceName": resources[0]}
	r.report(conversion.RuleCheck, "%s is of no vendor in the catalogue: correct spec.gpu.count and generic.resourcesPerDevice where one device gives several, and name its kernel modules", resources[0])
	return gpu
}

// model returns the model of the catalogue that a label of the selector means; the zero value: none does.
func (r gpuReader) model(vendor v1alpha1.GPUVendor) catalogue.Model {
	labels := conversion.ValueAt[map[string]any](r.selector, "matchLabels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text, _ := labels[key].(string)
		for _, m := range catalogue.Models() {
			if m.Vendor == vendor && strings.EqualFold(text, m.Name) {
				return m
			}
		}
		if named := catalogue.IdentifyName(text); len(named) == 1 && named[0].Vendor == vendor {
			return named[0]
		}
	}
	return catalogue.Model{}
}

// count returns the number of GPUs that a label gpu-count of the selector says; 0: none does.
func (r gpuReader) count() int64 {
	labels := conversion.ValueAt[map[string]any](r.selector, "matchLabels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		_, name, found := strings.Cut(key, "/")
		if !found {
			name = key
		}
		text, _ := labels[key].(string)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n <= maxGPUs && (name == "gpu-count" || name == "gpu.count") {
			return n
		}
	}
	return 0
}

func (r gpuReader) askForModel(model catalogue.Model, resource string) {
	if model.Name == "" {
		r.report(conversion.RuleAdd, "it has %d of %s, of a model that vMetal does not say: add spec.gpu.model", r.counts[resource], resource)
	}
}

package nvidia

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/gpumode"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

const (
	productHint  = "the GPUs are another product than the one that was ordered: compare spec.gpu.model with nvidia-smi -L on the node"
	instanceHint = "the GPUs are another product, or are partitioned otherwise than ordered. On the node: nvidia-smi -L; nvidia-smi mig -lgi; journalctl -u " + gpumode.UnitName
)

// GPULabelRules returns the rules for the labels by which feature discovery tells which GPUs it found, where it labels the node by whole GPUs: with MIG
// strategy mixed it does so too.
func GPULabelRules(model catalogue.Model) []v1alpha1.ExpectedLabelRule {
	return labelRules(expectedProduct(model), ExpectedMemory(model), productHint)
}

// InstanceLabelRules returns the same rules for MIG strategy single, with which feature discovery describes the instances: the product ends in -MIG- and the
// profile, without the characters that no label has (its internal/lm/resource.go). Drivers give the profile one of the names.
func InstanceLabelRules(model catalogue.Model, profile catalogue.Profile) []v1alpha1.ExpectedLabelRule {
	product := expectedProduct(model)
	for _, name := range model.ProfileNames(profile) {
		product.Suffixes = append(product.Suffixes, "-MIG-"+strings.ReplaceAll(name, "+", ""))
	}
	return labelRules(product, ExpectedInstanceMemory(model, profile), instanceHint)
}

func labelRules(product v1alpha1.ExpectedProduct, memory v1alpha1.ExpectedRange, hint string) []v1alpha1.ExpectedLabelRule {
	// The label has a number of MiB, without a unit.
	mebibytes := v1alpha1.ExpectedRange{
		Minimum: *resource.NewQuantity(memory.Minimum.Value()>>20, resource.DecimalSI), Maximum: *resource.NewQuantity(memory.Maximum.Value()>>20, resource.DecimalSI),
	}
	return []v1alpha1.ExpectedLabelRule{
		{Check: "label/" + wellknown.LabelGPUProduct, Key: wellknown.LabelGPUProduct, Product: &product, Hint: hint},
		{Check: "label/" + wellknown.LabelGPUMemory, Key: wellknown.LabelGPUMemory, Range: &mebibytes, Hint: hint},
	}
}

// ExpectedProducts returns the attributes of a DRA device that name its product.
func ExpectedProducts(model catalogue.Model) map[string]v1alpha1.ExpectedProduct {
	return map[string]v1alpha1.ExpectedProduct{wellknown.NVIDIAAttributeProduct: expectedProduct(model)}
}

func expectedProduct(model catalogue.Model) v1alpha1.ExpectedProduct {
	words, absent := model.ProductWords()
	slices.Sort(absent)
	return v1alpha1.ExpectedProduct{Words: words, AbsentWords: absent}
}

// ExpectedMemory returns the range of the memory of a GPU.
func ExpectedMemory(model catalogue.Model) v1alpha1.ExpectedRange {
	return mebibyteRange(model.MemoryMiB())
}

// ExpectedInstanceMemory returns the range of the memory of a MIG instance.
func ExpectedInstanceMemory(model catalogue.Model, p catalogue.Profile) v1alpha1.ExpectedRange {
	return mebibyteRange(model.InstanceMemoryMiB(p))
}

func mebibyteRange(minimum, maximum int64) v1alpha1.ExpectedRange {
	return v1alpha1.ExpectedRange{Minimum: *resource.NewQuantity(minimum<<20, resource.BinarySI), Maximum: *resource.NewQuantity(maximum<<20, resource.BinarySI)}
}

package inventory

import (
	"maps"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// maxLabelValue is the limit of a label's value (k8s.io/apimachinery/pkg/util/validation.LabelValueMaxLength).
const maxLabelValue = 63

// HostLabelChange compares the labels of a host with what inspection found in it, and returns the change. Beside those of GPULabelChange, the keys in
// v1alpha1.HardwareLabels belong to Ingot. Each of them is absent while nobody can tell its value. They have no event of their own: the HostRecord has
// what they say, and a value that somebody else wrote is replaced. A host that was never inspected keeps the labels that it has.
func HostLabelChange(have map[string]string, found *v1alpha1.HostInventory) LabelChange {
	l := GPULabelChange(have, found)
	if found == nil {
		return l
	}
	desired := hardwareLabels(found)
	l.Set = maps.Clone(l.Set)
	for _, key := range v1alpha1.HardwareLabels() {
		before, isSet := have[key]
		after, isDesired := desired[key]
		switch {
		case isSet == isDesired && before == after:
		case isDesired:
			if l.Set == nil {
				l.Set = map[string]string{}
			}
			l.Set[key] = after
		default:
			l.Remove = append(l.Remove, key)
		}
	}
	return l
}

// hardwareLabels returns the labels that the inventory tells the values of.
func hardwareLabels(i *v1alpha1.HostInventory) map[string]string {
	labels := map[string]string{}
	for key, text := range map[string]string{
		v1alpha1.LabelManufacturer: i.Manufacturer, v1alpha1.LabelModel: i.Model, v1alpha1.LabelArchitecture: hardware.ArchitectureName(i.Architecture), v1alpha1.LabelCPUModel: i.CPUModel,
		v1alpha1.LabelBIOSVersion: i.BIOSVersion, v1alpha1.LabelBMCVersion: i.BMCVersion, v1alpha1.LabelTPM: i.TPMVersion,
	} {
		if value := labelValue(text); value != "" {
			labels[key] = value
		}
	}
	for key, number := range map[string]int64{
		v1alpha1.LabelCPUSockets: int64(i.CPUSockets), v1alpha1.LabelCPUCores: int64(i.CPUCores), v1alpha1.LabelNUMANodes: int64(i.NUMANodes),
		v1alpha1.LabelMemoryGiB: memoryBytes(i) >> 30, v1alpha1.LabelNICMaxGbps: int64(fastestNIC(i) / mbpsPerGbps), v1alpha1.LabelGPULinkWidth: int64(lowestGPULink(i)),
	} {
		if number > 0 {
			labels[key] = strconv.FormatInt(number, 10)
		}
	}
	return labels
}

// memoryBytes returns the size of the memory modules or, while they are not known, what the BMC or the operating system told. The operating system tells
// less than the modules have.
func memoryBytes(i *v1alpha1.HostInventory) int64 {
	sum := int64(0)
	for _, m := range i.MemoryModules {
		sum += max(m.SizeBytes, 0)
	}
	if sum > 0 {
		return sum
	}
	return max(i.MemoryBytes, 0)
}

// fastestNIC returns the highest speed of a port with a link; 0: nobody knows of one.
func fastestNIC(i *v1alpha1.HostInventory) int32 {
	fastest := int32(0)
	for _, n := range i.NICs {
		if n.Link == v1alpha1.LinkUp {
			fastest = max(fastest, n.SpeedMbps)
		}
	}
	return fastest
}

// lowestGPULink returns the lowest number of PCIe lanes of a GPU; 0: it is not known for all kinds.
func lowestGPULink(i *v1alpha1.HostInventory) int32 {
	lowest := int32(0)
	for _, g := range i.GPUs {
		if g.LinkWidth <= 0 {
			return 0
		}
		if lowest == 0 || g.LinkWidth < lowest {
			lowest = g.LinkWidth
		}
	}
	return lowest
}

// labelValue returns the text with a hyphen for every run of characters that a label's value must not have, "" where nothing is left of it. The
// hardware's own texts are used, so the value is cut at the limit.
func labelValue(text string) string {
	var b strings.Builder
	isPending := false
	for _, r := range text {
		isAllowed := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_'
		if !isAllowed {
			isPending = true
			continue
		}
		if isPending && b.Len() > 0 {
			b.WriteByte('-')
		}
		isPending = false
		b.WriteRune(r)
	}
	value := b.String()
	return strings.Trim(value[:min(len(value), maxLabelValue)], "-._")
}

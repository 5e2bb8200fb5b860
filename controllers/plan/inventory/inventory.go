// Package inventory converts a server's hardware inventory into the inventory of its HostRecord and the labels of its BareMetalHost.
package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// gpuVendors are NVIDIA and AMD, by PCI vendor id (pci-ids.ucw.cz).
var gpuVendors = []string{"10de", "1002"}

// classGPU is the PCI class of the GPUs that HardwareInventory returns, because a HostRecord does not keep the class. 0302 is a 3D controller.
const classGPU = "030200"

// isGPU decides by vendor and PCI class: 03 is a display controller (VGA, 3D), 1200 a processing accelerator, which is the class of AMD's
// MI300. The other functions of a GPU (audio, USB) and NVSwitches (0680) are not GPUs.
func isGPU(d hardware.PCIDevice) bool {
	class := strings.ToLower(d.Class)
	return slices.Contains(gpuVendors, strings.ToLower(d.VendorID)) && (strings.HasPrefix(class, "03") || strings.HasPrefix(class, "1200"))
}

// HostInventory returns the inventory for a HostRecord. Of the PCI devices it has only the GPUs, as counts.
func HostInventory(i hardware.Inventory) *v1alpha1.HostInventory {
	out := &v1alpha1.HostInventory{
		Manufacturer: i.Manufacturer, Model: i.Model, SerialNumber: i.SerialNumber, SystemUUID: i.SystemUUID,
		BIOSVersion: i.BIOSVersion, Architecture: i.Architecture,
		CPUModel: i.CPUModel, CPUThreads: int32(i.CPUThreads), MemoryBytes: i.MemoryBytes,
		GPUs: gpus(i.PCIDevices),
	}
	for _, d := range i.Disks {
		out.Disks = append(out.Disks, v1alpha1.DiskInventory(d))
	}
	for _, n := range i.NICs {
		out.NICs = append(out.NICs, v1alpha1.NICInventory{Name: n.Name, MAC: n.MAC, SpeedMbps: int32(n.SpeedMbps)})
	}
	return out
}

// HardwareInventory returns the inventory that a HostRecord has as the type of package hardware, or nil when it has none.
func HardwareInventory(kept *v1alpha1.HostInventory) *hardware.Inventory {
	if kept == nil {
		return nil
	}
	out := &hardware.Inventory{
		Manufacturer: kept.Manufacturer, Model: kept.Model, SerialNumber: kept.SerialNumber, SystemUUID: kept.SystemUUID,
		BIOSVersion: kept.BIOSVersion, Architecture: kept.Architecture,
		CPUModel: kept.CPUModel, CPUThreads: int(kept.CPUThreads), MemoryBytes: kept.MemoryBytes,
	}
	for _, d := range kept.Disks {
		out.Disks = append(out.Disks, hardware.Disk(d))
	}
	for _, n := range kept.NICs {
		out.NICs = append(out.NICs, hardware.NIC{Name: n.Name, MAC: n.MAC, SpeedMbps: int(n.SpeedMbps)})
	}
	for _, g := range kept.GPUs {
		for range g.Count {
			out.PCIDevices = append(out.PCIDevices, hardware.PCIDevice{VendorID: g.VendorID, DeviceID: g.DeviceID, Class: classGPU})
		}
	}
	return out
}

// gpus returns the GPUs counted by vendor and device id, with the names of the models that the catalogue has.
func gpus(devices []hardware.PCIDevice) []v1alpha1.GPUInventory {
	var out []v1alpha1.GPUInventory
	for _, d := range devices {
		if !isGPU(d) {
			continue
		}
		g := v1alpha1.GPUInventory{VendorID: strings.ToLower(d.VendorID), DeviceID: strings.ToLower(d.DeviceID), Count: 1}
		if m, known := catalogue.Identify(g.VendorID, g.DeviceID); known {
			g.Model = m.Name
		}
		at := slices.IndexFunc(out, func(o v1alpha1.GPUInventory) bool { return o.VendorID == g.VendorID && o.DeviceID == g.DeviceID })
		if at < 0 {
			out = append(out, g)
			continue
		}
		out[at].Count++
	}
	slices.SortFunc(out, func(a, b v1alpha1.GPUInventory) int {
		return cmp.Or(cmp.Compare(a.VendorID, b.VendorID), cmp.Compare(a.DeviceID, b.DeviceID))
	})
	return out
}

// LabelChange is a change of a BareMetalHost's labels. The zero value changes nothing.
type LabelChange struct {
	// Set are the labels to be written, Remove the keys to be removed.
	Set    map[string]string
	Remove []string
	// Reason and Message are those of the event about the change. Warning is true when somebody should look at it. All of them are empty
	// when nothing changes.
	Reason, Message string
	Warning         bool
}

// IsEmpty reports whether nothing is to be changed.
func (l LabelChange) IsEmpty() bool { return len(l.Set) == 0 && len(l.Remove) == 0 }

// GPULabelChange compares the labels of a host with what inspection found in it, and returns the change. The keys gpu.ingot.dev/model and
// gpu.ingot.dev/count belong to Ingot:
//
//   - count is the number of all GPUs. It may be 0, and includes GPUs that the catalogue does not have.
//   - model is set only while all GPUs are of one model of the catalogue. With several models, or an unknown one, no name
//     would be true, so that a selector by model does not select such a host.
//   - A value that somebody else wrote is replaced by what was found, and the event says so, because hosts are selected by these labels.
//     Labels of other keys are left alone.
//
// A host that was never inspected keeps the labels that it has, because nothing is known that contradicts them.
func GPULabelChange(have map[string]string, found *v1alpha1.HostInventory) LabelChange {
	if found == nil {
		return LabelChange{}
	}
	desired := gpuLabels(found.GPUs)
	l := LabelChange{Set: map[string]string{}}
	var previous []string
	for _, key := range []string{v1alpha1.LabelGPUModel, v1alpha1.LabelGPUCount} {
		before, isSet := have[key]
		after, isDesired := desired[key]
		if isSet == isDesired && before == after {
			continue
		}
		if isSet {
			previous = append(previous, key+"="+before)
		}
		if isDesired {
			l.Set[key] = after
		} else {
			l.Remove = append(l.Remove, key)
		}
	}
	if l.IsEmpty() {
		return LabelChange{}
	}
	return withMessage(l, found.GPUs, desired, previous)
}

func gpuLabels(found []v1alpha1.GPUInventory) map[string]string {
	var count int32
	model := ""
	for i, g := range found {
		count += g.Count
		if i == 0 || g.Model == model {
			model = g.Model
		} else {
			model = ""
		}
	}
	labels := map[string]string{v1alpha1.LabelGPUCount: strconv.Itoa(int(count))}
	if model != "" {
		labels[v1alpha1.LabelGPUModel] = model
	}
	return labels
}

// withMessage returns the change with its event: what the labels are now, what they were, and why there is no model.
func withMessage(l LabelChange, found []v1alpha1.GPUInventory, desired map[string]string, previous []string) LabelChange {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		pairs = append(pairs, key+"="+desired[key])
	}
	l.Reason, l.Message = "Labelled", "inspection found "+strings.Join(pairs, ", ")
	if len(previous) > 0 {
		l.Warning, l.Reason = true, "Relabelled"
		l.Message += fmt.Sprintf("; the labels said %s. Ingot sets these labels by what it finds: select by a label of your own to overrule it", strings.Join(previous, ", "))
	}
	if note := missingModelReason(found, desired); note != "" {
		l.Warning = true
		l.Message += "; " + note
	}
	return l
}

// missingModelReason says why a host with GPUs has no label for their model.
func missingModelReason(found []v1alpha1.GPUInventory, desired map[string]string) string {
	if _, isNamed := desired[v1alpha1.LabelGPUModel]; isNamed || len(found) == 0 {
		return ""
	}
	var models, unknown []string
	for _, g := range found {
		if g.Model == "" {
			unknown = append(unknown, g.VendorID+":"+g.DeviceID)
			continue
		}
		models = append(models, fmt.Sprintf("%d %s", g.Count, g.Model))
	}
	if len(unknown) > 0 {
		return fmt.Sprintf("no label %s, because the PCI id %s is not in Ingot's catalogue", v1alpha1.LabelGPUModel, strings.Join(unknown, ", "))
	}
	return fmt.Sprintf("no label %s, because the models differ: %s", v1alpha1.LabelGPUModel, strings.Join(models, ", "))
}

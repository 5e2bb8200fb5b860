package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// noDeviceID is the device id of a GPU whose model a BMC does not tell.
const noDeviceID = ""

// deviceKind is what a PCI device is, as far as GPUs are concerned.
type deviceKind int

const (
	otherDevice deviceKind = iota
	gpuDevice
	// unreadDevice may be a GPU: the BMC does not report enough of it.
	unreadDevice
)

// gpuKey identifies a kind of GPU. The device id is noDeviceID for a GPU whose model is not known.
type gpuKey struct{ vendorID, deviceID string }

// deviceList is what one list of devices says about GPUs.
type deviceList struct {
	// byID counts the GPUs whose ids are reported, byName those whose model is known by its name only.
	byID, byName map[gpuKey]int
	// total counts all GPUs, with those of unknown model; unread counts the devices that may be further GPUs.
	total, unread int
	// isPCI is true for a list that has other devices than GPUs, so that it would have GPUs too.
	isPCI bool
}

// unnamed returns the number of GPUs whose model is not known.
func (l deviceList) unnamed() int {
	n := 0
	for key, count := range l.byName {
		if key.deviceID == noDeviceID {
			n += count
		}
	}
	return n
}

// classify says what a device is, and which GPU, by its class, its ids and its name.
func classify(d hardware.PCIDevice) (kind deviceKind, key gpuKey, hasID bool) {
	d.VendorID, d.DeviceID = strings.ToLower(d.VendorID), strings.ToLower(d.DeviceID)
	key = gpuKey{vendorID: d.VendorID, deviceID: d.DeviceID}
	if d.Class != "" && !d.IsAccelerator() {
		return otherDevice, key, false
	}
	isVendor := slices.Contains(gpuVendors, d.VendorID)
	if d.VendorID != "" && !isVendor {
		return otherDevice, key, false // the BMC's own graphics
	}
	if _, isKnown := catalogue.Identify(d.VendorID, d.DeviceID); isKnown || isVendor && d.DeviceID != noDeviceID && d.Class != "" {
		return gpuDevice, key, true
	}
	kind, key = classifyName(d, isVendor && d.Class != "")
	return kind, key, false
}

// classifyName says which GPU a device without usable ids is by its name. isGPU is true when its vendor and class say that it is some GPU.
func classifyName(d hardware.PCIDevice, isGPU bool) (deviceKind, gpuKey) {
	named := catalogue.IdentifyName(d.Model)
	switch {
	case len(named) == 1:
		return gpuDevice, gpuKey{named[0].PCIVendor, named[0].PCIDevices[0]}
	case len(named) > 1:
		return gpuDevice, gpuKey{named[0].PCIVendor, noDeviceID}
	case isGPU:
		return gpuDevice, gpuKey{d.VendorID, noDeviceID}
	}
	return unreadDevice, gpuKey{}
}

// readLists sorts the devices into the lists that have them.
func readLists(devices []hardware.PCIDevice) []deviceList {
	var names []string
	var lists []deviceList
	for _, d := range devices {
		at := slices.Index(names, d.List)
		if at < 0 {
			at = len(names)
			names, lists = append(names, d.List), append(lists, deviceList{byID: map[gpuKey]int{}, byName: map[gpuKey]int{}})
		}
		l := &lists[at]
		kind, key, hasID := classify(d)
		switch {
		case kind == otherDevice:
			l.isPCI = true
		case kind == unreadDevice:
			l.unread++
		case hasID:
			l.byID[key]++
			l.total++
		default:
			l.byName[key]++
			l.total++
		}
	}
	return lists
}

// countGPUs returns the GPUs of a server from the lists of a BMC, and whether they are all of it. A BMC may have one GPU in several lists that have
// no address in common, such as the functions of the host and the processors of an HGX board. So the lists are not added: of each kind of GPU there
// are as many as the list that has most of them.
//
// A list that only has names adds what it has more than all lists with ids. Without it: a BMC lists eight functions 10de:2330, and eight
// processors whose model is misspelt, and the server has sixteen GPUs.
func countGPUs(devices []hardware.PCIDevice) (found map[gpuKey]int, isKnown bool) {
	lists := readLists(devices)
	found = map[gpuKey]int{}
	total := 0
	for _, l := range lists {
		for key, n := range l.byID {
			total += max(0, n-found[key])
			found[key] = max(found[key], n)
		}
	}
	// A list that names the models comes before one with as many GPUs that does not.
	slices.SortStableFunc(lists, func(a, b deviceList) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.unnamed(), b.unnamed()))
	})
	for _, l := range lists {
		surplus := l.total - total
		for _, key := range sortedKeys(l.byName) {
			n := min(max(0, l.byName[key]-found[key]), max(0, surplus))
			if n > 0 {
				found[key] += n
				surplus -= n
				total += n
			}
		}
	}
	return found, isComplete(lists, total)
}

// isComplete reports whether the total is that of the server. It is when one list without unread devices has all of it, or when no list can have
// more. That a server has no GPU is believed only when some list of PCI devices could be read, and none of the lists leaves a doubt.
func isComplete(lists []deviceList, total int) bool {
	if total == 0 {
		return slices.ContainsFunc(lists, func(l deviceList) bool { return l.isPCI }) &&
			!slices.ContainsFunc(lists, func(l deviceList) bool { return l.unread > 0 })
	}
	return slices.ContainsFunc(lists, func(l deviceList) bool { return l.unread == 0 && l.total == total }) ||
		!slices.ContainsFunc(lists, func(l deviceList) bool { return l.total+l.unread > total })
}

// RequiredGPUs returns what the agent must find on the PCI bus. It requires nothing of GPUs that the catalogue does not have.
func RequiredGPUs(expected *v1alpha1.ExpectedGPUs) hardware.RequiredGPUs {
	if expected == nil {
		return hardware.RequiredGPUs{}
	}
	m, err := catalogue.Lookup(expected.Vendor, expected.Model)
	if err != nil {
		return hardware.RequiredGPUs{}
	}
	return hardware.RequiredGPUs{Model: m.Name, VendorID: m.PCIVendor, DeviceIDs: strings.Join(m.PCIDevices, " "), Count: int(expected.Count)}
}

// gpus returns the GPUs of an inventory by vendor and device id, with the names of the models that the catalogue has, and who counted them. Both
// are empty when nobody can tell.
func gpus(i hardware.Inventory) ([]v1alpha1.GPUInventory, v1alpha1.InventorySource) {
	found, isKnown := countGPUs(i.PCIDevices)
	source := v1alpha1.InventorySource(i.DeviceSource)
	if source == "" {
		if !isKnown {
			return nil, ""
		}
		source = v1alpha1.SourceBMC
	}
	var out []v1alpha1.GPUInventory
	for _, key := range sortedKeys(found) {
		g := v1alpha1.GPUInventory{VendorID: key.vendorID, DeviceID: key.deviceID, Count: input.Count(found[key])}
		if m, isListed := catalogue.Identify(g.VendorID, g.DeviceID); isListed {
			g.Model = m.Name
		}
		g.LinkWidth, g.MaxLinkWidth = linkWidths(i.PCIDevices, key)
		g.MaxLinkSpeed, g.PortMaxLinkSpeed = linkSpeeds(i.PCIDevices, key)
		g.SubsystemIDs, g.NUMANodes = placesOf(i.PCIDevices, key)
		out = append(out, g)
	}
	return out, source
}

// linkWidths returns the lowest link width of the GPUs of one kind and the highest that they have, 0 for what nobody has read.
func linkWidths(devices []hardware.PCIDevice, key gpuKey) (lowest, highest int32) {
	for _, d := range devices {
		if d.VendorID != key.vendorID || d.DeviceID != key.deviceID || !d.IsAccelerator() || d.LinkWidth <= 0 || d.MaxLinkWidth <= 0 {
			continue
		}
		if width := input.Count(d.LinkWidth); lowest == 0 || width < lowest {
			lowest = width
		}
		highest = max(highest, input.Count(d.MaxLinkWidth))
	}
	return lowest, highest
}

// linkSpeeds returns the highest link speed that the GPUs of one kind support, and the lowest that one of the ports above them does, 0 for what nobody
// has read.
func linkSpeeds(devices []hardware.PCIDevice, key gpuKey) (highest, lowestPort int32) {
	for _, d := range devices {
		if d.VendorID != key.vendorID || d.DeviceID != key.deviceID || !d.IsAccelerator() || d.MaxLinkSpeed <= 0 || d.PortMaxLinkSpeed <= 0 {
			continue
		}
		highest = max(highest, input.Count(d.MaxLinkSpeed))
		if port := input.Count(d.PortMaxLinkSpeed); lowestPort == 0 || port < lowestPort {
			lowestPort = port
		}
	}
	return highest, lowestPort
}

// placesOf returns the boards of the GPUs of one kind, and how many of the GPUs are near which memory node. What nobody has read is left out.
func placesOf(devices []hardware.PCIDevice, key gpuKey) (boards []string, nodes []v1alpha1.NUMANodeCount) {
	counts := map[string]int32{}
	for _, d := range devices {
		if d.VendorID != key.vendorID || d.DeviceID != key.deviceID || !d.IsAccelerator() {
			continue
		}
		if d.SubsystemID != "" && !slices.Contains(boards, d.SubsystemID) && len(boards) < v1alpha1.MaxSubsystemIDs {
			boards = append(boards, d.SubsystemID)
		}
		if d.NUMANode != "" {
			counts[d.NUMANode]++
		}
	}
	slices.Sort(boards)
	for _, node := range slices.SortedFunc(maps.Keys(counts), compareNumbers) {
		if len(nodes) < v1alpha1.MaxNUMANodeCounts {
			nodes = append(nodes, v1alpha1.NUMANodeCount{Node: node, Count: counts[node]})
		}
	}
	return boards, nodes
}

// compareNumbers compares numbers that are written without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func sortedKeys(counts map[gpuKey]int) []gpuKey {
	var keys []gpuKey
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b gpuKey) int {
		return cmp.Or(cmp.Compare(a.vendorID, b.vendorID), cmp.Compare(a.deviceID, b.deviceID))
	})
	return keys
}

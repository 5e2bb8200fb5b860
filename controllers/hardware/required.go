package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RequiredGPUs are the GPUs that a server must have to be installed: exactly Count of the model, and no other GPU of the vendor. The zero value
// requires nothing. It can be compared with ==.
type RequiredGPUs struct {
	// Model is the name of the model, for messages.
	Model string
	// VendorID is the PCI vendor id, and DeviceIDs are the PCI device ids of the model, separated by blanks. All have four lower-case
	// hexadecimal digits.
	VendorID, DeviceIDs string
	// Count is the number of GPUs; 0 requires nothing.
	Count int
}

// Difference says how the devices that an agent found on the PCI bus differ from the GPUs that are required. It is empty when they do not differ.
func (r RequiredGPUs) Difference(found []PCIDevice) string {
	if r.Count == 0 {
		return ""
	}
	count, others := 0, map[string]int{}
	for _, d := range found {
		switch {
		case d.VendorID != r.VendorID || !d.IsAccelerator():
		case slices.Contains(strings.Fields(r.DeviceIDs), d.DeviceID):
			count++
		default:
			others[d.VendorID+":"+d.DeviceID]++
		}
	}
	if count == r.Count && len(others) == 0 {
		return ""
	}
	seen := fmt.Sprintf("%d of them", count)
	for _, id := range slices.Sorted(maps.Keys(others)) {
		seen += fmt.Sprintf(" and %d with the PCI id %s", others[id], id)
	}
	if len(found) == 0 {
		seen = "no PCI device at all"
	}
	return fmt.Sprintf("expected %d GPUs %s (PCI ids %s:%s), the agent sees %s", r.Count, r.Model, r.VendorID, strings.ReplaceAll(r.DeviceIDs, " ", ","), seen)
}

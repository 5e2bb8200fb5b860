package hardware

import "slices"

// RootDevice selects a disk. The disk must match every hint that is set.
type RootDevice struct {
	DeviceName   string `json:"deviceName,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	// Model may be a part of the disk's model, and Vendor of its vendor.
	Model        string `json:"model,omitempty"`
	MinSizeBytes int64  `json:"minSizeBytes,omitempty"`
	// HCTL is the SCSI address HOST:CHANNEL:TARGET:LUN.
	HCTL   string `json:"hctl,omitempty"`
	Vendor string `json:"vendor,omitempty"`
	// WWNWithExtension is the WWN with the vendor's extension, and WWNVendorExtension the extension alone.
	WWNWithExtension   string `json:"wwnWithExtension,omitempty"`
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`
	// Rotational is "true" or "false"; empty: either.
	Rotational string `json:"rotational,omitempty"`
}

// Hint is a hint of RootDevice by its name in Metal3's spec.rootDeviceHints.
type Hint string

// Hints.
const (
	HintDeviceName         Hint = "deviceName"
	HintSerialNumber       Hint = "serialNumber"
	HintWWN                Hint = "wwn"
	HintModel              Hint = "model"
	HintMinSize            Hint = "minSizeGigabytes"
	HintHCTL               Hint = "hctl"
	HintVendor             Hint = "vendor"
	HintWWNWithExtension   Hint = "wwnWithExtension"
	HintWWNVendorExtension Hint = "wwnVendorExtension"
	HintRotational         Hint = "rotational"
)

// AllHints returns every hint.
func AllHints() []Hint {
	return append(AgentHints(), HintHCTL, HintVendor, HintWWNWithExtension, HintWWNVendorExtension, HintRotational)
}

// AgentHints returns the hints that Ingot's own agent follows.
func AgentHints() []Hint {
	return []Hint{HintDeviceName, HintSerialNumber, HintWWN, HintModel, HintMinSize}
}

// HintsBeyond returns the names of the hints that are set and not among those that are supported, sorted.
func (d RootDevice) HintsBeyond(supported []Hint) []string {
	var beyond []string
	for hint, isSet := range map[Hint]bool{
		HintDeviceName: d.DeviceName != "", HintSerialNumber: d.SerialNumber != "", HintWWN: d.WWN != "", HintModel: d.Model != "", HintMinSize: d.MinSizeBytes > 0,
		HintHCTL: d.HCTL != "", HintVendor: d.Vendor != "", HintWWNWithExtension: d.WWNWithExtension != "", HintWWNVendorExtension: d.WWNVendorExtension != "",
		HintRotational: d.Rotational != "",
	} {
		if isSet && !slices.Contains(supported, hint) {
			beyond = append(beyond, string(hint))
		}
	}
	slices.Sort(beyond)
	return beyond
}

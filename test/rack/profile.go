package rack

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

//go:embed profiles.yaml
var profilesYAML []byte

// Profile describes a model of server.
type Profile struct {
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	BIOSVersion  string `json:"biosVersion"`
	CPUModel     string `json:"cpuModel"`
	CPUThreads   int    `json:"cpuThreads"`
	MemoryGiB    int64  `json:"memoryGiB"`
	// BMC names the personality of its BMC, see test/bmc/personalities.yaml; empty: generic.
	BMC    string            `json:"bmc"`
	Labels map[string]string `json:"labels"`
	PCI    []PCIGroup        `json:"pci"`
}

// PCIGroup is a number of equal PCI devices. The IDs are hexadecimal without 0x.
type PCIGroup struct {
	Count    int    `json:"count"`
	VendorID string `json:"vendorID"`
	DeviceID string `json:"deviceID"`
	Class    string `json:"class"`
	Model    string `json:"model"`
}

var profiles = sync.OnceValues(func() (map[string]Profile, error) {
	var all map[string]Profile
	if err := yaml.UnmarshalStrict(profilesYAML, &all); err != nil {
		return nil, fmt.Errorf("reading the rack's profiles: %w", err)
	}
	return all, nil
})

// ProfileNamed returns a profile that comes with the rack: hgx-h100, hgx-h200, hgx-a100, oam-mi300x, pcie-l40s, no-gpu.
func ProfileNamed(name string) (Profile, error) {
	all, err := profiles()
	if err != nil {
		return Profile{}, err
	}
	profile, ok := all[name]
	if !ok {
		return Profile{}, fmt.Errorf("no server profile %q: expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return profile, nil
}

// inventory returns the hardware of a server of the profile. Serial numbers, MACs and the DMI UUID follow from its name.
func (p Profile) inventory(name string, diskBytes int64, dataDisks int) hardware.Inventory {
	id := sha256.Sum256([]byte(name))
	mac := func(n int) string {
		// Locally administered addresses belong to no vendor.
		return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", id[0], id[1], id[2], id[3], n)
	}
	serial := strings.ToUpper(fmt.Sprintf("%x", id[4:9]))
	out := hardware.Inventory{
		Manufacturer: p.Manufacturer, Model: p.Model, SerialNumber: serial, SystemUUID: formatUUID([16]byte(id[:16])), BIOSVersion: p.BIOSVersion,
		Architecture: "amd64", CPUModel: p.CPUModel, CPUThreads: p.CPUThreads, MemoryBytes: p.MemoryGiB << 30,
		NICs: []hardware.NIC{{Name: "eno1", MAC: mac(0), SpeedMbps: 10000, Up: true}, {Name: "eno2", MAC: mac(1), SpeedMbps: 10000}},
		Disks: []hardware.Disk{{
			Name: "/dev/nvme0n1", Model: "SAMSUNG MZQL2", SerialNumber: "S" + serial, WWN: fmt.Sprintf("eui.%x", id[8:16]), SizeBytes: diskBytes,
		}},
	}
	for n := 1; n <= dataDisks; n++ {
		out.Disks = append(out.Disks, hardware.Disk{
			Name: fmt.Sprintf("/dev/nvme%dn1", n), Model: "SAMSUNG MZQL2", SerialNumber: fmt.Sprintf("D%d%s", n, serial), SizeBytes: 2 * diskBytes,
		})
	}
	bus := 0x0f // the first bus behind the root ports
	for _, group := range p.PCI {
		for range group.Count {
			bus += 3
			device := hardware.PCIDevice{
				Address: fmt.Sprintf("0000:%02x:00.0", bus), VendorID: group.VendorID, DeviceID: group.DeviceID, Class: group.Class, Model: group.Model,
			}
			if isGPU(device) {
				device.LinkWidth, device.MaxLinkWidth = 16, 16
			}
			out.PCIDevices = append(out.PCIDevices, device)
		}
	}
	return out
}

// formatUUID formats the bytes as a UUID of version 8, whose content is free (RFC 9562 section 5.8).
func formatUUID(raw [16]byte) string {
	raw[6], raw[8] = raw[6]&0x0f|0x80, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

package ironic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAnInventoryOfIronicBecomesOurs(t *testing.T) {
	properties := map[string]any{"cpus": "64", "memory_mb": float64(1024), "cpu_arch": "aarch64", "local_gb": "10"}
	want := &hardware.Inventory{Architecture: "arm64", CPUThreads: 64, MemoryBytes: 1 << 30, NICs: []hardware.NIC{{MAC: "52:54:00:00:00:01"}}}
	if diff := cmp.Diff(want, inventoryOf(properties, nil, []string{"52:54:00:00:00:01"})); diff != "" {
		t.Errorf("without an inventory (-expected +seen):\n%s", diff)
	}

	var data nodes.InventoryData
	const stored = `{"inventory": {"cpu": {"architecture": "x86_64", "count": 192, "model_name": "AMD EPYC", "frequency": ""}, "memory": {"physical_mb": 2097152},
		"system_vendor": {"manufacturer": "Dell Inc.", "product_name": "XE9680", "serial_number": "SN1", "firmware": {"version": "2.1", "build_date": "01/02/2026"}},
		"interfaces": [{"name": "eno1", "mac_address": "52:54:00:00:00:01", "has_carrier": true, "speed_mbps": 25000, "vendor": "0x15b3", "product": "0x101f"},
			{"name": "eno2", "mac_address": "52:54:00:00:00:02", "has_carrier": false, "vendor": null, "product": null}],
		"disks": [{"name": "/dev/nvme0n1", "model": "PM9A3 ", "serial": "S1", "wwn": "eui.1", "size": 1000, "rotational": false}]},
		"plugin_data": {"pci_devices": [{"vendor_id": "10de", "product_id": "2330", "class": "030200", "bus": "0000:1b:00.0"}, {"vendor_id": "8086", "product_id": "7aa7", "class": "060000"}]}}`
	if err := json.Unmarshal([]byte(stored), &data); err != nil {
		t.Fatal(err)
	}
	want = &hardware.Inventory{
		Manufacturer: "Dell Inc.", Model: "XE9680", SerialNumber: "SN1", BIOSVersion: "2.1", BIOSDate: "01/02/2026", Architecture: "amd64", CPUModel: "AMD EPYC", CPUThreads: 192,
		MemoryBytes: 2 << 40, DeviceSource: hardware.DevicesByAgent,
		NICs: []hardware.NIC{
			{Name: "eno1", MAC: "52:54:00:00:00:01", SpeedMbps: 25000, Up: true, PCIID: "15b3:101f"}, {Name: "eno2", MAC: "52:54:00:00:00:02", NoLink: true},
		},
		Disks: []hardware.Disk{{Name: "/dev/nvme0n1", Model: "PM9A3", SerialNumber: "S1", WWN: "eui.1", SizeBytes: 1000}},
		PCIDevices: []hardware.PCIDevice{
			{Address: "0000:1b:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200"}, {VendorID: "8086", DeviceID: "7aa7", Class: "060000"},
		},
	}
	if diff := cmp.Diff(want, inventoryOf(properties, &data, []string{"52:54:00:00:00:01"})); diff != "" {
		t.Errorf("with an inventory (-expected +seen):\n%s", diff)
	}

	data.PluginData.RawMessage = nil
	if got := inventoryOf(nil, &data, nil); got.DeviceSource != "" || got.PCIDevices != nil {
		t.Errorf("without a scan of the PCI bus: devices %v by %q, expected them unknown", got.PCIDevices, got.DeviceSource)
	}
}

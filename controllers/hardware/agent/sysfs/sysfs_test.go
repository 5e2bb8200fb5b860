package sysfs

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, content := range files {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

func TestAnHGXServerIsReadFromItsFiles(t *testing.T) {
	root := tree(map[string]string{
		"sys/class/dmi/id/product_uuid": "4C4C4544-0042-3510-8052-B4C04F4E3432\n", "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
		"proc/cpuinfo":               "processor\t: 0\nmodel name\t: Xeon\nprocessor\t: 1\nmodel name\t: Xeon\n",
		"proc/meminfo":               "MemTotal:       2113541992 kB\nMemFree: 1 kB\n",
		"sys/class/net/eno1/address": "0C:42:A1:00:00:01\n", "sys/class/net/eno1/device/vendor": "", "sys/class/net/eno1/speed": "-1\n",
		"sys/class/net/lo/address": "00:00:00:00:00:00\n",
		"sys/block/nvme0n1/size":   "7501476528\n", "sys/block/nvme0n1/device/model": "SAMSUNG MZ   \n", "sys/block/nvme0n1/device/serial": "S64F\n",
		"sys/block/nvme0n1/wwid": "eui.3634463\n", "sys/block/nvme0n1/queue/logical_block_size": "512\n",
		"sys/block/sda/size": "1000\n", "sys/block/sda/device/model": "stick", "sys/block/sda/removable": "1\n",
		"sys/block/loop0/size": "1000\n", "sys/block/nvme1n1/size": "0\n", "sys/block/nvme1n1/device/model": "x",
		"sys/bus/pci/devices/0000:18:00.0/vendor": "0x10DE\n", "sys/bus/pci/devices/0000:18:00.0/device": "0x2330\n", "sys/bus/pci/devices/0000:18:00.0/class": "0x030200\n",
		"sys/bus/pci/devices/0000:18:00.0/subsystem_vendor": "0x10DE\n", "sys/bus/pci/devices/0000:18:00.0/subsystem_device": "0x16c1\n", "sys/bus/pci/devices/0000:18:00.0/numa_node": "1\n",
		"sys/class/net/eno1/device/subsystem_vendor": "0x15b3\n", "sys/class/net/eno1/device/subsystem_device": "0x0041\n", "sys/class/net/eno1/device/numa_node": "-1\n",
		"sys/block/nvme0n1/device/device/vendor": "0x144d\n", "sys/block/nvme0n1/device/device/device": "0xa80a\n", "sys/block/nvme0n1/device/device/numa_node": "0\n",
		"sys/block/nvme0n1/device/device/subsystem_vendor": "0x0000\n", "sys/block/nvme0n1/device/device/subsystem_device": "0x0000\n",
	})
	got, err := ReadInventory(root)
	if err != nil {
		t.Fatal(err)
	}
	want := hardware.Inventory{
		Manufacturer: "Dell Inc.", SystemUUID: "4c4c4544-0042-3510-8052-b4c04f4e3432", Architecture: architecture(),
		CPUModel: "Xeon", CPUThreads: 2, MemoryBytes: 2113541992 << 10,
		NICs:       []hardware.NIC{{Name: "eno1", MAC: "0c:42:a1:00:00:01", SubsystemID: "15b3:0041"}},
		Disks:      []hardware.Disk{{Name: "/dev/nvme0n1", Model: "SAMSUNG MZ", SerialNumber: "S64F", WWN: "eui.3634463", SizeBytes: 7501476528 * 512, Transport: "nvme", PCIID: "144d:a80a", NUMANode: "0"}},
		PCIDevices: []hardware.PCIDevice{{Address: "0000:18:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200", SubsystemID: "10de:16c1", NUMANode: "1"}}, DeviceSource: hardware.DevicesByAgent,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAServerThatTellsNothingStillHasAnInventory(t *testing.T) {
	got, err := ReadInventory(tree(nil))
	if err == nil || got.Architecture == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

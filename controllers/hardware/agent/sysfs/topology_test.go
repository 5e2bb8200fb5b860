package sysfs

import (
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
)

func TestAServerWithTwoProcessorsIsCounted(t *testing.T) {
	// Two processors of two cores with two threads each. The ids have gaps, and the second processor repeats the core ids of the first.
	files := map[string]string{
		"sys/devices/system/cpu/cpufreq/policy0/x": "", "sys/devices/system/cpu/cpu8/online": "0\n",
		"sys/devices/system/node/node0/cpulist": "", "sys/devices/system/node/node1/cpulist": "", "sys/devices/system/node/possible": "0-1\n",
		"sys/class/tpm/tpm0/tpm_version_major": "2\n", "sys/class/dmi/id/bios_date": "03/14/2025\n",
		"sys/bus/pci/devices/0000:18:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:18:00.0/current_link_width": "8\n", "sys/bus/pci/devices/0000:18:00.0/max_link_width": "16\n",
		"sys/bus/pci/devices/0000:19:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:19:00.0/current_link_width": "255\n", "sys/bus/pci/devices/0000:19:00.0/max_link_width": "255\n",
		"sys/class/net/eno1/address": "0c:42:a1:00:00:01\n", "sys/class/net/eno1/device/vendor": "",
	}
	for cpu, ids := range [][2]string{{"0", "0"}, {"0", "4"}, {"1", "0"}, {"1", "4"}, {"0", "0"}, {"0", "4"}, {"1", "0"}, {"1", "4"}} {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu)
		files[dir+"physical_package_id"], files[dir+"core_id"], files[dir+"die_id"] = ids[0]+"\n", ids[1]+"\n", "0\n"
	}
	root := tree(files)
	root["sys/class/net/eno1/device/driver"] = &fstest.MapFile{Data: []byte("../../../bus/pci/drivers/mlx5_core"), Mode: fs.ModeSymlink}
	got, _ := ReadInventory(root)
	if got.CPUSockets != 2 || got.CPUCores != 4 || got.NUMANodes != 2 || got.TPMVersion != "2" || got.BIOSDate != "03/14/2025" || got.NICs[0].Driver != "mlx5_core" {
		t.Errorf("%+v", got)
	}
	if a, b := got.PCIDevices[0], got.PCIDevices[1]; a.LinkWidth != 8 || a.MaxLinkWidth != 16 || b.LinkWidth != 0 || b.MaxLinkWidth != 0 {
		t.Errorf("%+v", got.PCIDevices)
	}
}

func TestWhatTheKernelDoesNotTellIsUnknown(t *testing.T) {
	got, _ := ReadInventory(tree(map[string]string{
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": "-1\n", "sys/devices/system/cpu/cpu0/topology/core_id": "0\n",
	}))
	if got.CPUSockets != 0 || got.CPUCores != 0 || got.NUMANodes != 0 || got.TPMVersion != "" {
		t.Errorf("%+v", got)
	}
}

func TestThisMachineIsRead(t *testing.T) {
	got, _ := ReadInventory(os.DirFS("/"))
	if got.CPUSockets > got.CPUCores || got.CPUCores > got.CPUThreads {
		t.Errorf("%d processors, %d cores, %d threads", got.CPUSockets, got.CPUCores, got.CPUThreads)
	}
}

func FuzzInventory(f *testing.F) {
	f.Add("0\n", "16\n")
	f.Add("-1", "99999999999999999999")
	f.Add("0x10de", "0x16c1")
	f.Add("007", "0x")
	f.Fuzz(func(t *testing.T, id, width string) {
		got, _ := ReadInventory(tree(map[string]string{
			"sys/devices/system/cpu/cpu0/topology/physical_package_id": id, "sys/devices/system/cpu/cpu0/topology/core_id": id,
			"sys/bus/pci/devices/0000:18:00.0/current_link_width": width, "sys/bus/pci/devices/0000:18:00.0/max_link_width": width,
			"sys/bus/pci/devices/0000:18:00.0/numa_node": id, "sys/bus/pci/devices/0000:18:00.0/subsystem_vendor": id, "sys/bus/pci/devices/0000:18:00.0/subsystem_device": width,
		}))
		if d := got.PCIDevices[0]; got.CPUCores > 1 || d.LinkWidth < 0 || d.LinkWidth > 32 || len(d.NUMANode) > 10 || d.SubsystemID != "" && len(d.SubsystemID) != len("10de:16c1") {
			t.Errorf("%+v", got)
		}
	})
}

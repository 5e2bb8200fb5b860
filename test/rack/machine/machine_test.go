package machine

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/pci"
)

// script boots a machine whose first boot runs the script.
func script(t *testing.T, cpu, arguments, text string) (*Machine, error) {
	t.Helper()
	m, err := Boot(Options{
		Image: machineos.Image{Kernel: "6.12.0", KernelArguments: strings.Fields(arguments)}, CPU: cpu, Owner: "server", Boot: "1",
		Devices: []hardware.PCIDevice{{Address: "0000:12:00.0", VendorID: "10de", DeviceID: "2236", Class: "030200"}, {Address: "0000:15:00.0", VendorID: "1002", DeviceID: "74a1", Class: "120000"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, m.runShell(m.System, text, nil, nil)
}

func TestScriptsSeeProcessorsMemoryAndTheAddress(t *testing.T) {
	m, err := Boot(Options{
		Image: machineos.Image{Kernel: "6.12.0"}, CPU: "Xeon", Owner: "server", Boot: "1", CPUs: 3, MemoryBytes: 64 << 20, NUMANodes: 2, Address: "198.18.1.2",
	})
	if err != nil {
		t.Fatal(err)
	}
	const look = `set -eu
n=0
for node in /sys/devices/system/node/node[0-9]*; do [ ! -d "$node" ] || n=$((n + 1)); done
while read -r name number _; do [ "$name" != MemTotal: ] || memory=$number; done < /proc/meminfo
echo $(grep -c '^processor' < /proc/cpuinfo) $n $memory $(ip -o address show to 198.18.0.0/15 scope global)$(ip -o address show to 10.0.0.0/8) > /seen
`
	if err := m.runShell(m.System, look, nil, nil); err != nil {
		t.Fatal(err)
	}
	const want = "3 2 65536 2: eth0 inet 198.18.1.2/32 scope global eth0\n"
	if got, _ := m.ReadFile("/seen"); string(got) != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestAGPUIsHeldByWhatTheScriptSaysAndOnlyWithAnIOMMU(t *testing.T) {
	const bind = "set -eu\nmodprobe vfio-pci\nd=/sys/bus/pci/devices/0000:12:00.0\necho vfio-pci >$d/driver_override\n" +
		"if [ -e $d/driver ]; then echo 0000:12:00.0 >$d/driver/unbind; fi\necho 0000:12:00.0 >/sys/bus/pci/drivers_probe\nreadlink $d/driver\n"
	for arguments, holds := range map[string]string{
		"modprobe.blacklist=nouveau intel_iommu=on": pci.VFIO, "intel_iommu=on": pci.VFIO, "modprobe.blacklist=nouveau": "",
	} {
		m, err := script(t, "Intel", arguments, bind)
		if got := m.Bus.Find("0000:12:00.0").Driver; got != holds || (err == nil) != (holds != "") {
			t.Errorf("%s: held by %q: %v", arguments, got, err)
		}
	}
	if m, err := script(t, "AMD EPYC", "quiet", bind); err != nil || m.Bus.Find("0000:12:00.0").Driver != pci.VFIO {
		t.Errorf("with a CPU that has it on: %v", err)
	}
}

func TestPartitionsOfMemoryWaitForTheDriver(t *testing.T) {
	const set = "d=/sys/bus/pci/devices/0000:15:00.0\necho NPS4 >$d/current_memory_partition\n"
	m, err := script(t, "", "", set)
	if compute, memory := m.Bus.Find("0000:15:00.0").Partition(); err != nil || compute != "SPX" || memory != "NPS1" {
		t.Errorf("%s %s: %v", compute, memory, err)
	}
	m, err = script(t, "", "", set+"modprobe -r amdgpu\nmodprobe amdgpu\necho CPX >$d/current_compute_partition\n[ $(cat $d/current_memory_partition) = NPS4 ]\n")
	if d := m.Bus.Find("0000:15:00.0"); err != nil || d.PartitionCount() != 8 {
		t.Errorf("%d parts: %v", d.PartitionCount(), err)
	}
	if _, err = script(t, "", "", "set -e\necho CPX >/sys/bus/pci/devices/0000:15:00.0/current_compute_partition\necho DPX >/sys/bus/pci/devices/0000:15:00.0/current_memory_partition\n"); err == nil {
		t.Error("a partition that does not exist is taken")
	}
}

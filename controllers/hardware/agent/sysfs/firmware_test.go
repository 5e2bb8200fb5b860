package sysfs

import (
	"encoding/binary"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestFirmwareLinksAndTransportsAreRead(t *testing.T) {
	ata := make([]byte, 572)
	ata[1] = 0x89
	copy(ata[60+46:], "XD2A041B") // "DXA2 40B1" with the characters of each word exchanged
	root := tree(map[string]string{
		"sys/class/net/eth0/address": "aa:bb:cc:00:00:99", "sys/class/net/eth0/bonding_slave/perm_hwaddr": "0C:42:A1:00:00:01", "sys/class/net/eth0/carrier": "1",
		"sys/class/net/eth0/speed": "400000", "sys/class/net/eth0/device/vendor": "0x15b3\n", "sys/class/net/eth0/device/device": "0x1021\n",
		"sys/class/net/eth0/device/infiniband/mlx5_0/fw_ver": "28.39.1002\n",
		"sys/class/net/eth1/address":                         "0c:42:a1:00:00:02", "sys/class/net/eth1/carrier": "0\n", "sys/class/net/eth1/device/vendor": "0x8086", "sys/class/net/eth1/device/device": "15",
		"sys/class/net/eth2/address": "0c:42:a1:00:00:03", "sys/class/net/eth2/device/vendor": "0x8086", // down: the kernel does not tell the carrier

		"sys/bus/pci/devices/0000:18:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:18:00.0/max_link_speed": "32.0 GT/s PCIe\n",
		"sys/bus/pci/devices/0000:17:01.0/vendor": "0x1000\n", "sys/bus/pci/devices/0000:17:01.0/max_link_speed": "16.0 GT/s PCIe\n",
		"sys/bus/pci/devices/0000:00:1f.0/max_link_speed": "Unknown\n",
	})
	link := func(name, target string) { root[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink} }
	devices := "sys/devices/pci0000:16/"
	root["sys/devices/pci0000:16/0000:17:01.0/0000:18:00.0/max_link_speed"] = root["sys/bus/pci/devices/0000:18:00.0/max_link_speed"]
	root["sys/devices/pci0000:16/0000:17:01.0/0000:18:00.0/vendor"] = root["sys/bus/pci/devices/0000:18:00.0/vendor"]
	delete(root, "sys/bus/pci/devices/0000:18:00.0/max_link_speed")
	delete(root, "sys/bus/pci/devices/0000:18:00.0/vendor")
	link("sys/bus/pci/devices/0000:18:00.0", "../../../devices/pci0000:16/0000:17:01.0/0000:18:00.0")
	for name, disk := range map[string]map[string]string{
		"nvme0n1":                        {"device/firmware_rev": "GDC7502Q\n"},
		"host0/end_device-0:0/0/sdsas":   {"device/vendor": "SEAGATE", "device/rev": "0007"},
		"ata1/host1/sdata":               {"device/vendor": "ATA", "device/rev": "04B1", "device/vpd_pg89": string(ata)},
		"host0/end_device-0:1/0/sdold":   {"device/vendor": "ATA", "device/rev": "04B1"},
		"usb1/1-1/host9/sdusb":           {"device/vendor": "Generic", "device/rev": "1.00"},
		"0000:00:05.0/virtio2/block/vda": {"device/vendor": "0x1af4"},
	} {
		last := name[strings.LastIndex(name, "/")+1:]
		disk["size"] = "1000"
		for attribute, value := range disk {
			root[devices+name+"/"+attribute] = &fstest.MapFile{Data: []byte(value)}
		}
		link("sys/block/"+last, "../devices/pci0000:16/"+name)
	}
	got, err := ReadInventory(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []hardware.NIC{
		{Name: "eth0", MAC: "0c:42:a1:00:00:01", SpeedMbps: 400000, Up: true, Firmware: "28.39.1002", PCIID: "15b3:1021"},
		{Name: "eth1", MAC: "0c:42:a1:00:00:02", NoLink: true}, {Name: "eth2", MAC: "0c:42:a1:00:00:03"},
	}
	for i, nic := range got.NICs {
		if nic != want[i] {
			t.Errorf("%+v, expected %+v", nic, want[i])
		}
	}
	disks := map[string][2]string{
		"/dev/nvme0n1": {"nvme", "GDC7502Q"}, "/dev/sdsas": {"sas", "0007"}, "/dev/sdata": {"sata", "DXA240B1"}, "/dev/sdold": {"sata", ""},
		"/dev/sdusb": {"usb", "1.00"}, "/dev/vda": {"virtio", ""},
	}
	if len(got.Disks) != len(disks) {
		t.Errorf("%+v", got.Disks)
	}
	for _, d := range got.Disks {
		if want := disks[d.Name]; d.Transport != want[0] || d.Firmware != want[1] {
			t.Errorf("%+v, expected %q", d, want)
		}
	}
	speeds := map[string][2]int{"0000:18:00.0": {32000, 16000}, "0000:17:01.0": {16000, 0}, "0000:00:1f.0": {0, 0}}
	for _, d := range got.PCIDevices {
		if want := speeds[d.Address]; d.MaxLinkSpeed != want[0] || d.PortMaxLinkSpeed != want[1] {
			t.Errorf("%+v, expected %v", d, want)
		}
	}
}

// memoryDevice returns a structure of the type Memory Device with the size in its field of 16 bits, and the extended size.
func memoryDevice(size uint16, extended uint32, kind byte, texts ...string) []byte {
	area := make([]byte, 0x28)
	area[0], area[1], area[0x12] = typeMemory, byte(len(area)), kind
	binary.LittleEndian.PutUint16(area[0x0c:], size)
	binary.LittleEndian.PutUint32(area[0x1c:], extended)
	binary.LittleEndian.PutUint16(area[0x20:], 4800)
	area[0x10], area[0x17], area[0x18], area[0x1a] = 1, 2, 3, 4
	return append(append(area, strings.Join(texts, "\x00")...), 0, 0)
}

func TestMemoryModulesAreReadFromDMI(t *testing.T) {
	texts := []string{"DIMM_A1", "Samsung", "4A1B ", "M321R8GA0BB0"}
	const ddr5, lost = 0x22, 0xffff
	end := []byte{typeEnd, 4, 0, 0, 0, 0}
	bios := append([]byte{0, 0x1a}, append(make([]byte, 0x18), "AMI\x002.1\x00\x00"...)...)
	whole := func(parts ...[]byte) []byte {
		out := append([]byte(nil), bios...)
		for _, p := range parts {
			out = append(out, p...)
		}
		return append(out, end...)
	}
	for name, c := range map[string]struct {
		table []byte
		sizes []int64
	}{
		"64 GiB by the extended size":     {whole(memoryDevice(0x7fff, 65536, ddr5, texts...)), []int64{64 << 30}},
		"16 GiB in MiB, 512 MiB in KiB":   {whole(memoryDevice(16384, 0, ddr5, texts...), memoryDevice(0x8000|0x4000, 0, ddr5, texts...)), []int64{16 << 30, 16 << 20}},
		"an empty slot":                   {whole(memoryDevice(0, 0, ddr5, texts...), memoryDevice(1024, 0, ddr5, texts...)), []int64{1 << 30}},
		"memory that keeps its content":   {whole(memoryDevice(1024, 0, 0x1f, texts...)), nil},
		"a module of unknown size":        {whole(memoryDevice(1024, 0, ddr5, texts...), memoryDevice(lost, 0, ddr5, texts...)), nil},
		"no table":                        {nil, nil},
		"a table that is cut":             {whole(memoryDevice(1024, 0, ddr5, texts...))[:40], nil},
		"a structure longer than its end": {[]byte{typeMemory, 200, 0, 0, 0, 0}, nil},
		"nothing after the end":           {append(whole(), memoryDevice(1024, 0, ddr5, texts...)...), nil},
	} {
		root := tree(map[string]string{"sys/firmware/dmi/tables/DMI": string(c.table)})
		got := readMemoryModules(root)
		if len(got) != len(c.sizes) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, m := range got {
			want := hardware.MemoryModule{Slot: "DIMM_A1", Manufacturer: "Samsung", SerialNumber: "4A1B", PartNumber: "M321R8GA0BB0", SpeedMTs: 4800, SizeBytes: c.sizes[i]}
			if m != want {
				t.Errorf("%s: %+v, expected %+v", name, m, want)
			}
		}
	}
}

func FuzzDMI(f *testing.F) {
	f.Add(memoryDevice(0x7fff, 65536, 0x22, "A", "B", "C", "D"))
	f.Add([]byte{17, 4, 0, 0})
	f.Fuzz(func(t *testing.T, table []byte) {
		modules, _ := parseMemoryModules(table)
		for _, m := range modules {
			if m.SizeBytes < 0 || len(modules) > maxModules {
				t.Errorf("%+v", m)
			}
		}
		_ = parseATAFirmware(table)
	})
}

package sysfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// server is a folder with the attributes of a server's devices, as in /sys.
type server struct {
	t    *testing.T
	root string
}

func newServer(t *testing.T) server { return server{t, t.TempDir()} }

// set writes attributes: "name=value".
func (s server) set(dir string, attributes ...string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.root, dir), 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, attribute := range attributes {
		name, value, _ := strings.Cut(attribute, "=")
		name = filepath.Join(s.root, dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(value+"\n"), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// block adds a block device with hardware, which /sys/block links to as the kernel does.
func (s server) block(device, name string, attributes ...string) {
	s.t.Helper()
	dir := filepath.Join("sys/devices", device, "block", name)
	s.set(dir, attributes...)
	s.set(filepath.Join(dir, "device"))
	s.set("sys/block")
	if err := os.Symlink(filepath.Join("../..", dir), filepath.Join(s.root, "sys/block", name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) readDisks() ([]Disk, []hardware.UnusableDisk) {
	s.t.Helper()
	disks, unusable, err := ReadDisks(os.DirFS(s.root))
	if err != nil {
		s.t.Fatal(err)
	}
	return disks, unusable
}

func TestADiskOfEachKindIsReadWithItsIdentity(t *testing.T) {
	s := newServer(t)
	s.block("pci0/nvme", "nvme0n1", "size=2048", "device/serial=S64F1   ", "device/model=MZ QL2  ", "wwid=eui.0025385b71b02a33", "queue/logical_block_size=4096", "queue/rotational=0")
	s.block("pci0/ata1", "sda", "size=4096", "device/model=ST1000", "device/wwid=naa.5000c500a1b2c3d4", "queue/rotational=1", "ro=1")
	s.set("sys/block/sda/device", "vpd_pg80=\x00\x80\x00\x10        WD-12345\x00\x00")
	s.block("virtio1", "vda", "size=8", "serial=root")
	s.block("pci0/cciss", "cciss!c0d0", "size=8")
	disks, unusable := s.readDisks()
	if len(disks) != 4 || len(unusable) != 0 {
		t.Fatalf("%+v, unusable %+v", disks, unusable)
	}
	for _, want := range []Disk{
		{Disk: hardware.Disk{Name: "/dev/nvme0n1", Model: "MZ QL2", SerialNumber: "S64F1", WWN: "eui.0025385b71b02a33", SizeBytes: 2048 * 512, Transport: "nvme"}, SectorSize: 4096},
		{Disk: hardware.Disk{Name: "/dev/sda", Model: "ST1000", SerialNumber: "WD-12345", WWN: "5000c500a1b2c3d4", SizeBytes: 4096 * 512, Rotational: true}, SectorSize: 512, ReadOnly: true},
		{Disk: hardware.Disk{Name: "/dev/vda", SerialNumber: "root", SizeBytes: 8 * 512, Transport: "virtio"}, SectorSize: 512},
		{Disk: hardware.Disk{Name: "/dev/cciss/c0d0", SizeBytes: 8 * 512}, SectorSize: 512},
	} {
		found := false
		for _, got := range disks {
			found = found || got == want
		}
		if !found {
			t.Errorf("lacks %+v in %+v", want, disks)
		}
	}
}

func TestWhatMayHideDataIsNamedAsUnusable(t *testing.T) {
	for _, c := range []struct {
		name       string
		add        func(server)
		disk, says string
		hasContent bool
	}{
		{"a stick", func(s server) {
			s.block("pci0/usb1/1-1", "sdb", "size=800", "removable=1", "device/vendor=SanDisk", "device/model=Ultra", "device/serial=STICK")
		}, "STICK", "removable", true},
		{"a drive without a medium", func(s server) { s.block("pci0/usb1/1-2", "sdc", "size=0", "removable=1") }, "/dev/sdc", "no size", false},
		{"a drive that failed", func(s server) { s.block("pci0/nvme", "nvme1n1", "size=0", "device/serial=DEAD1") }, "DEAD1", "no size", false},
		{"a controller without a driver", func(s server) {
			s.set("sys/bus/pci/devices/0000:65:00.0", "class=0x010400", "vendor=0x1000", "device=0x10e2")
		}, "0000:65:00.0", "no driver", false},
		{"an NVMe drive whose controller is dead", func(s server) { s.set("sys/class/nvme/nvme3", "state=dead", "serial=DEAD2", "model=MZ") }, "DEAD2", "does not answer", false},
	} {
		s := newServer(t)
		s.block("pci0/nvme0", "nvme0n1", "size=2048", "device/serial=GOOD")
		c.add(s)
		disks, unusable := s.readDisks()
		if len(disks) != 1 || disks[0].SerialNumber != "GOOD" || len(unusable) != 1 {
			t.Errorf("%s: disks %+v, unusable %+v", c.name, disks, unusable)
			continue
		}
		if u := unusable[0]; !strings.Contains(u.String(), c.disk) || !strings.Contains(u.Why, c.says) || u.HasContent != c.hasContent {
			t.Errorf("%s: %s %s, has content: %t", c.name, u, u.Why, u.HasContent)
		}
	}
}

func TestWhatIsNoDiskOfTheServerIsLeftOut(t *testing.T) {
	s := newServer(t)
	s.set("sys/block/loop0", "size=800")
	s.set("sys/block/dm-0", "size=800")
	s.block("pci0/nvme", "nvme0c0n1", "size=800", "hidden=1")
	s.block("pci0/ata2", "sr0", "size=800", "device/type=5", "removable=1")
	s.block("platform/flash", "mtdblock0", "size=800")
	s.block("pci0/usb1/1-1", "sdd", "size=800", "removable=1", "device/vendor=AMI", "device/model=Virtual HDisk0")
	s.block("pci0/usb1/1-2", "sde", "size=0", "removable=1", "device/vendor=iDRAC", "device/model=LCDRIVE")
	// A virtual function and a controller with a driver hide nothing.
	s.set("sys/bus/pci/devices/0000:65:00.1", "class=0x010802", "physfn/class=0x010802")
	s.set("sys/bus/pci/devices/0000:65:00.2", "class=0x010802", "driver/name=nvme")
	s.set("sys/bus/pci/devices/0000:18:00.0", "class=0x030200")
	s.set("sys/class/nvme/nvme0", "state=live", "serial=GOOD")
	if disks, unusable := s.readDisks(); len(disks)+len(unusable) != 0 {
		t.Errorf("disks %+v, unusable %+v", disks, unusable)
	}
	// A disk that only says that it is virtual, and is not connected by USB, is a disk.
	s.block("pci0/raid", "sdf", "size=800", "device/vendor=DELL", "device/model=Virtual Disk")
	if disks, _ := s.readDisks(); len(disks) != 1 {
		t.Errorf("disks %+v, expected the one of the RAID controller", disks)
	}
}

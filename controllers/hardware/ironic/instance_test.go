package ironic

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

const gib = int64(1) << 30

// disks are those of a server, as Ironic's agent reports them.
const disks = `[
{"name": "/dev/sda", "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "model": "ST4000NM", "vendor": "ATA", "serial": "ZC1", "size": 4000787030016, "rotational": true,
 "wwn": "0x5000c500a1b2c3d4", "wwn_with_extension": "0x5000c500a1b2c3d4", "wwn_vendor_extension": null, "hctl": "0:0:0:0"},
{"name": "/dev/sdb", "by_path": "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0", "model": "PERC H755 Front", "vendor": "DELL", "serial": "6f4ee08", "size": 479559942144, "rotational": false,
 "wwn": "0x6f4ee08017f9ce00", "wwn_with_extension": "0x6f4ee08017f9ce002b1c2d3e4f506172", "wwn_vendor_extension": "0x2b1c2d3e4f506172", "hctl": "1:2:0:0"},
{"name": "/dev/sdc", "by_path": "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:1:0", "model": "PERC H755 Front", "vendor": "DELL", "serial": "6f4ee09", "size": 479559942144, "rotational": false,
 "wwn": "0x6f4ee08017f9ce00", "wwn_with_extension": "0x6f4ee08017f9ce002b1c2d3e4f506173", "wwn_vendor_extension": "0x2b1c2d3e4f506173", "hctl": "1:2:1:0"},
{"name": "/dev/nvme0n1", "by_path": "/dev/disk/by-path/pci-0000:5e:00.0-nvme-1", "model": "SAMSUNG MZQL23T8HCLS-00A07", "vendor": null, "serial": "S64HNE0T500123 ", "size": 3840755982336,
 "rotational": false, "wwn": "eui.36344830545001230025384500000001", "wwn_with_extension": null, "wwn_vendor_extension": null, "hctl": null}]`

func TestRootDeviceHintsSelectInIronicWhatTheySay(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	cases := map[string]struct {
		spec hardware.InstallSpec
		want string
	}{
		"a device":                  {hintOf(hardware.RootDevice{DeviceName: "/dev/sdb"}), "/dev/sdb"},
		"a path of the bus":         {hintOf(hardware.RootDevice{DeviceName: "/dev/disk/by-path/pci-0000:5e:00.0-nvme-1"}), "/dev/nvme0n1"},
		"a serial number":           {hintOf(hardware.RootDevice{SerialNumber: "s64hne0t500123"}), "/dev/nvme0n1"},
		"a part of the model":       {hintOf(hardware.RootDevice{Model: "H755 Front"}), "/dev/sdb /dev/sdc"},
		"a vendor":                  {hintOf(hardware.RootDevice{Vendor: "ata"}), "/dev/sda"},
		"an SCSI address":           {hintOf(hardware.RootDevice{HCTL: "1:2:1:0"}), "/dev/sdc"},
		"a disk that rotates":       {hintOf(hardware.RootDevice{Rotational: "true"}), "/dev/sda"},
		"disks that do not":         {hintOf(hardware.RootDevice{Rotational: "false"}), "/dev/sdb /dev/sdc /dev/nvme0n1"},
		"a size":                    {hintOf(hardware.RootDevice{MinSizeBytes: 3577 * gib}), "/dev/sda"},
		"a size that all have":      {hintOf(hardware.RootDevice{MinSizeBytes: gib / 2}), "/dev/sda /dev/sdb /dev/sdc /dev/nvme0n1"},
		"a WWN":                     {hintOf(hardware.RootDevice{WWN: "0x5000C500A1B2C3D4"}), "/dev/sda"},
		"a WWN with what follows":   {hintOf(hardware.RootDevice{WWNWithExtension: "0x6f4ee08017f9ce002b1c2d3e4f506173"}), "/dev/sdc"},
		"what follows a WWN":        {hintOf(hardware.RootDevice{WWNVendorExtension: "0x2b1c2d3e4f506172"}), "/dev/sdb"},
		"the WWN of the inventory":  {hintOf(hardware.RootDevice{WWN: "0x6f4ee08017f9ce002b1c2d3e4f506172"}), "/dev/sdb"},
		"the WWN of Ingot's agent":  {hintOf(hardware.RootDevice{WWN: "naa.6f4ee08017f9ce002b1c2d3e4f506172"}), "/dev/sdb"},
		"two hints":                 {hintOf(hardware.RootDevice{Vendor: "DELL", HCTL: "1:2:1:0"}), "/dev/sdc"},
		"hints that exclude all":    {hintOf(hardware.RootDevice{Vendor: "DELL", Rotational: "true"}), ""},
		"the disk before":           {hardware.InstallSpec{PreviousRootDisk: hardware.Disk{WWN: "0x6f4ee08017f9ce002b1c2d3e4f506173", SerialNumber: "other"}}, "/dev/sdc"},
		"the disk before by serial": {hardware.InstallSpec{PreviousRootDisk: hardware.Disk{SerialNumber: "ZC1"}}, "/dev/sda"},
		"an accepted WWN":           {hardware.InstallSpec{AcceptedRootDisk: "eui.36344830545001230025384500000001", PreviousRootDisk: hardware.Disk{WWN: "0x1"}}, "/dev/nvme0n1"},
		"an accepted path":          {hardware.InstallSpec{AcceptedRootDisk: "/dev/sda", PreviousRootDisk: hardware.Disk{WWN: "0x1"}}, "/dev/sda"},
		"an accepted serial number": {hardware.InstallSpec{AcceptedRootDisk: "6F4EE09", PreviousRootDisk: hardware.Disk{WWN: "0x1"}}, "/dev/sdc"},
	}
	names := slices.Sorted(maps.Keys(cases))
	hints := make([]map[string]any, len(names))
	for i, name := range names {
		hints[i] = rootDevice(cases[name].spec)
	}
	for i, selected := range server.MatchDisks(t, disks, hints) {
		if got, want := strings.Join(selected, " "), cases[names[i]].want; got != want {
			t.Errorf("%s: the hints %v select %q, expected %q", names[i], hints[i], got, want)
		}
	}
}

func TestInstanceInfoIsWhatIronicNeedsOfAnImage(t *testing.T) {
	t.Parallel()
	host := hardware.Host{Namespace: "hall", Name: "a"}
	image := hardware.Image{URL: "http://images.example/a.qcow2", Checksum: "sha512:a1", Format: "qcow2"}
	plain := map[string]any{"image_source": image.URL, "image_os_hash_algo": "sha512", "image_os_hash_value": "a1", "image_disk_format": "qcow2"}
	hinted := map[string]any{"root_device": map[string]any{"serial": "s== S1"}}
	for name, value := range plain {
		hinted[name] = value
	}
	for name, c := range map[string]struct {
		spec hardware.InstallSpec
		want map[string]any
	}{
		"without hints": {hardware.InstallSpec{Image: image}, plain},
		"a live ISO, whose disk and checksum nobody looks at": {
			hardware.InstallSpec{Image: hardware.Image{URL: "http://images.example/a.iso", Format: "live-iso", Checksum: "sha256:a1"}, RootDevice: hardware.RootDevice{SerialNumber: "S1"}},
			map[string]any{"boot_iso": "http://images.example/a.iso", "deploy_interface": "ramdisk"},
		},
		"with a hint": {hardware.InstallSpec{Image: image, RootDevice: hardware.RootDevice{SerialNumber: "S1"}}, hinted},
	} {
		got, err := instanceInfo(host, c.spec)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-expected +seen):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]struct {
		change func(*hardware.Image)
		kind   hardware.Kind
	}{
		"a compressed image":   {func(i *hardware.Image) { i.Format = "raw.zst" }, hardware.Unsupported},
		"no URL":               {func(i *hardware.Image) { i.URL = "" }, hardware.Invalid},
		"no checksum":          {func(i *hardware.Image) { i.Checksum = "" }, hardware.Invalid},
		"a checksum that ends": {func(i *hardware.Image) { i.Checksum = "md5:a1" }, hardware.Invalid},
	} {
		changed := image
		c.change(&changed)
		if _, err := instanceInfo(host, hardware.InstallSpec{Image: changed}); hardware.KindOf(err) != c.kind {
			t.Errorf("%s: expected %s, seen %v", name, c.kind, err)
		}
	}
}

func TestEveryHintOfAnInstallIsGivenToIronic(t *testing.T) {
	t.Parallel()
	hints := rootDevice(hintOf(hardware.RootDevice{
		DeviceName: "/dev/sda", SerialNumber: "S1", WWN: "0x1", Model: "M", MinSizeBytes: gib, HCTL: "0:0:0:0", Vendor: "V", WWNWithExtension: "0x12", WWNVendorExtension: "0x2", Rotational: "true",
	}))
	if promised := New(Options{}).Capabilities().RootDeviceHints; len(hints) != len(promised) {
		t.Errorf("%d hints of Ironic %v for %v that are promised", len(hints), hints, promised)
	}
}

func hintOf(device hardware.RootDevice) hardware.InstallSpec {
	return hardware.InstallSpec{RootDevice: device}
}

func TestANodeWhoseBMCIronicAloneKnowsIsToldNothingOfIt(t *testing.T) {
	options := Options{DeployKernel: "http://images/kernel", DeployRamdisk: "http://images/ramdisk", BMCCAPath: "/etc/ca.pem"}
	want := map[string]any{"deploy_kernel": options.DeployKernel, "deploy_ramdisk": options.DeployRamdisk}
	if got := driverOf(options, hardware.Host{InstallerNode: "node-7"}).info; !maps.Equal(got, want) {
		t.Errorf("driver_info %v, expected %v", got, want)
	}
	if got := driverOf(options, hardware.Host{BMC: hardware.Endpoint{Address: "https://10.0.0.7"}}).info; got["redfish_address"] != "https://10.0.0.7" || got["redfish_verify_ca"] != options.BMCCAPath {
		t.Errorf("of a host with a BMC: %v", got)
	}
}

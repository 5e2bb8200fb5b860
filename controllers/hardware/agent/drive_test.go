package agent_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/test/require"
)

var someDrive = hardware.ConfigDrive{
	UserData: []byte("#cloud-config\n# s3cr3t-user-data\n"), NetworkData: []byte(`{"links":[]}`), MetaData: []byte(`{"uuid":"x"}`),
}

// installed runs an installation with a config drive on the disk, which must succeed.
func installed(t *testing.T, image []byte, disks ...agent.Disk) *rig {
	t.Helper()
	r := newRig(t, compressed(t, image, "raw.zst"), "raw.zst", someDrive)
	r.change(hintOneMiB)
	exitAction, err := r.run(t.Context(), disks...)
	if err != nil || exitAction != agent.Reboot {
		t.Fatalf("outcome %s, error %v", exitAction, err)
	}
	return r
}

func TestAConfigDriveChangesOnlyThePartitionTableAndTheLastPartition(t *testing.T) {
	image := twoPartitions(16 * mib)
	disk := newMemoryDisk(40*mib+512*7, 0xFF)
	r := installed(t, image, disk)
	partitions := checkTables(t, disk.data)
	if len(partitions) != 3 || partitions[2].name != "config-2" {
		t.Fatalf("partitions: %v", partitions)
	}
	for _, p := range partitions[:2] {
		if !bytes.Equal(disk.data[p.first*512:(p.last+1)*512], image[p.first*512:(p.last+1)*512]) {
			t.Errorf("partition %s is not the image's", p.name)
		}
	}
	table := func(data []byte) []byte { // the image but for its tables
		out := bytes.Clone(data[:len(image)])
		clear(out[446:512])
		clear(out[512 : 34*512])
		return out
	}
	if !bytes.Equal(table(disk.data), table(image)) {
		t.Error("bytes of the image outside its table were changed")
	}
	drive := partitions[2]
	checkDrive(t, disk.data[drive.first*512:(drive.last+1)*512])
	if strings.Contains(r.log.String(), "s3cr3t") || strings.Contains(r.log.String(), "Bearer") {
		t.Error("the log holds user data or the token")
	}
}

// checkDrive reads the documents with a reader that is not ours.
func checkDrive(t *testing.T, volume []byte) {
	t.Helper()
	image, err := iso9660.OpenImage(bytes.NewReader(volume))
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.RootDir()
	for _, name := range []string{"openstack", "latest", "user_data"} {
		if err != nil {
			t.Fatal(err)
		}
		children, childErr := file.GetChildren()
		at := slices.IndexFunc(children, func(f *iso9660.File) bool { return f.Name() == name })
		if childErr != nil || at < 0 {
			t.Fatalf("%s: %v", name, childErr)
		}
		file = children[at]
	}
	data, err := io.ReadAll(file.Reader())
	if err != nil || !bytes.Equal(data, someDrive.UserData) {
		t.Errorf("user data: %q, %v", data, err)
	}
}

func TestSgdiskAndBlkidAgreeWithTheInstalledDisk(t *testing.T) {
	sgdisk := require.Tool(t, "sgdisk", "apt-get install gdisk")
	blkid := require.Tool(t, "blkid", "apt-get install util-linux")
	path := filepath.Join(t.TempDir(), "disk")
	disk, err := blockdev.OpenFile(path, hardware.Disk{Name: path, SizeBytes: 64 * mib})
	if err != nil {
		t.Fatal(err)
	}
	installed(t, twoPartitions(64*mib-8*mib), disk)
	out, err := exec.Command(sgdisk, "-v", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk -v: %v: %s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	partitions := checkTables(t, content)
	offset := strconv.FormatUint(partitions[len(partitions)-1].first*512, 10)
	out, err = exec.Command(blkid, "-p", "-O", offset, "-o", "value", "-s", "LABEL", path).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "config-2" {
		t.Errorf("blkid: %v: %s", err, out)
	}
}

func TestADiskThatAConfigDriveCannotBeReadFromIsNotTouched(t *testing.T) {
	disk := wideDisk{newMemoryDisk(32*mib, 0xFF)}
	r := newRig(t, compressed(t, twoPartitions(16*mib), "raw.zst"), "raw.zst", someDrive)
	r.change(hintOneMiB)
	_, err := r.run(t.Context(), disk)
	if session := r.session(); session.Reason != hardware.ReasonNoRootDevice || !strings.Contains(session.Message, "sectors of 4096 bytes") {
		t.Errorf("%s: %q (%v)", session.Reason, session.Message, err)
	}
	if !bytes.Equal(disk.data, bytes.Repeat([]byte{0xFF}, 32*mib)) {
		t.Error("the disk was written to")
	}
}

func TestAUSBDiskIsInstalledOnlyWhereHintsSelectIt(t *testing.T) {
	disk := newMemoryDisk(32*mib, 0xFF)
	disk.info.Name, disk.info.Transport, disk.info.SizeBytes = "/dev/sda", "usb", 8<<30
	r := newRig(t, compressed(t, twoPartitions(16*mib), "raw.zst"), "raw.zst", someDrive)
	_, err := r.run(t.Context(), disk)
	if session := r.session(); session.Reason != hardware.ReasonNoRootDevice || !strings.Contains(session.Message, "/dev/sda is a USB disk") {
		t.Errorf("%s: %q (%v)", session.Reason, session.Message, err)
	}
	disk.info.SizeBytes = 32 * mib
	installed(t, twoPartitions(16*mib), disk)
}

func TestTheRootDiskByAnotherPathKeepsItsConfigDrive(t *testing.T) {
	root := newMemoryDisk(24*mib, 0xFF)
	root.info.Name, root.info.WWN = "/dev/sda", "naa.5000c500a1b2c3d4"
	other := secondPath{root}
	installed(t, twoPartitions(16*mib), root)
	installed(t, twoPartitions(16*mib), root, other)
	partitions := checkTables(t, root.data)
	last := partitions[len(partitions)-1]
	checkDrive(t, root.data[last.first*512:(last.last+1)*512])
}

// secondPath is the same disk by another path.
type secondPath struct{ *memoryDisk }

func (d secondPath) Info() hardware.Disk {
	info := d.memoryDisk.Info()
	info.Name = "/dev/sdb"
	return info
}

func TestASecondInstallLeavesOneConfigDriveOnAllDisks(t *testing.T) {
	first, second := newMemoryDisk(24*mib, 0xFF), newMemoryDisk(32*mib, 0xFF)
	second.info.Name = "/dev/nvme1n1"
	installed(t, twoPartitions(16*mib), first)
	installed(t, twoPartitions(16*mib), second)
	// Once more to the first disk, with an image that brings a config drive itself, as one captured from a node does.
	image := gptImage(16*mib, partition{2048, 6143, "root"}, partition{8192, 10239, "config-2"})
	data := bytes.Clone(second.data[:8*mib])
	installed(t, image, first, second)
	count := 0
	for _, disk := range []*memoryDisk{first, second} {
		for _, p := range checkTables(t, disk.data) {
			if p.name == "config-2" && bytes.HasPrefix(disk.data[p.first*512+32768:], []byte("\x01CD001")) {
				count++
			}
		}
	}
	if count != 1 {
		t.Errorf("%d config drives, expected one", count)
	}
	if !bytes.Equal(data, second.data[:8*mib]) {
		t.Error("more than the config drive was cleared on the other disk")
	}
}

func TestAConfigDriveIsRefusedWhereItHasNoPlace(t *testing.T) {
	damaged := twoPartitions(16 * mib)
	damaged[1024+16] ^= 1
	for name, image := range map[string][]byte{
		"no partition table": plainImage(16 * mib), "damaged table": damaged, "under one MiB": plainImage(5000),
		"no room": gptImage(32*mib, partition{2048, 32*2048 - 40, "root"}),
	} {
		t.Run(name, func(t *testing.T) {
			disk := newMemoryDisk(32*mib, 0xFF)
			r := newRig(t, image, "raw", someDrive)
			r.change(hintOneMiB)
			_, err := r.run(t.Context(), disk)
			checkFailed(t, r, err, hardware.ReasonImageInvalid, disk)
		})
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/test/require"
)

// loopDevice makes a block device of 1 MiB and returns its name below /dev.
func loopDevice(t *testing.T, options ...string) string {
	t.Helper()
	losetup := require.Tool(t, "losetup", "apt-get install util-linux")
	path := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(losetup, append(options, "--find", "--show", path)...).CombinedOutput()
	if err != nil {
		require.Missing(t, "losetup as root", "run the tests as root on a machine with loop devices: "+string(out))
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detaching %s: %v: %s", device, err, out)
		}
	})
	return strings.TrimPrefix(device, "/dev/")
}

func TestADiskThatStaysReadOnlyIsNamedAndTheOthersAreOpened(t *testing.T) {
	good, protected := loopDevice(t), loopDevice(t, "--read-only")
	root := fstest.MapFS{}
	for name, readOnly := range map[string]string{good: "0", protected: "1"} {
		dir := "sys/block/" + name
		root[dir+"/size"] = &fstest.MapFile{Data: []byte("2048\n")}
		root[dir+"/ro"] = &fstest.MapFile{Data: []byte(readOnly + "\n")}
		root[dir+"/device/serial"] = &fstest.MapFile{Data: []byte("SERIAL-" + name + "\n")}
	}
	disks, unusable, err := openDisks(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, disk := range disks {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(disks) != 1 || disks[0].Info().Name != "/dev/"+good {
		t.Errorf("opened %+v", disks)
	}
	if len(unusable) != 1 || unusable[0].SerialNumber != "SERIAL-"+protected || !unusable[0].HasContent || !strings.Contains(unusable[0].Why, "read-only") {
		t.Errorf("unusable %+v", unusable)
	}
	// A disk that cannot be opened fails all: an erase that left it out would succeed.
	root["sys/block/missing/size"] = &fstest.MapFile{Data: []byte("2048\n")}
	root["sys/block/missing/device/serial"] = &fstest.MapFile{}
	if _, _, err := openDisks(root); err == nil || !strings.Contains(err.Error(), "/dev/missing") {
		t.Errorf("a disk that cannot be opened: %v", err)
	}
}

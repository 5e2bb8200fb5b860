package agent_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// erased runs an erase on the disks.
func erased(t *testing.T, mode hardware.EraseMode, disks ...agent.Disk) (*rig, error) {
	t.Helper()
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Operation, s.Erase = hardware.OpErase, mode })
	exitAction, err := r.run(t.Context(), disks...)
	if exitAction != agent.PowerOff {
		t.Errorf("outcome %s", exitAction)
	}
	return r, err
}

func TestAFullEraseClearsEveryByteOfEveryDisk(t *testing.T) {
	a, b := newMemoryDisk(3*mib+512, 0xFF), newMemoryDisk(9*mib, 0xFF)
	r, err := erased(t, hardware.EraseFull, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, disk := range []*memoryDisk{a, b} {
		if !bytes.Equal(disk.data, make([]byte, len(disk.data))) || len(disk.pending) > 0 {
			t.Error("a disk is not clear, or not synced")
		}
	}
	if s := r.session(); s.Step != hardware.StepFinishing || s.State != hardware.AttemptRunning {
		t.Errorf("session: %s %s", s.State, s.Step)
	}
}

func TestAMetadataEraseLeavesNoTableAndNoSignature(t *testing.T) {
	disk := newMemoryDisk(32*mib, 0)
	copy(disk.data, twoPartitions(32*mib))
	root := int(binary.LittleEndian.Uint64(disk.data[1024+128+32:])) * 512
	copy(disk.data[root+1080:], "\x53\xEF") // an ext4 superblock
	if _, err := erased(t, hardware.EraseMetadata, disk); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string][]byte{"start": disk.data[:mib], "end": disk.data[31*mib:], "root's start": disk.data[root : root+mib]} {
		if !bytes.Equal(part, make([]byte, mib)) {
			t.Errorf("%s is not clear", name)
		}
	}
	if bytes.Equal(disk.data, make([]byte, len(disk.data))) {
		t.Error("a metadata erase cleared everything")
	}
}

func TestAnEraseClearsEveryDiskWhateverTheRootDeviceHintsSay(t *testing.T) {
	for _, mode := range []hardware.EraseMode{hardware.EraseMetadata, hardware.EraseFull} {
		r := newRig(t, nil, "raw", hardware.ConfigDrive{})
		r.change(func(s *netboot.Session) {
			s.Operation, s.Erase, s.RootDevice = hardware.OpErase, mode, hardware.RootDevice{SerialNumber: "S0"}
		})
		disks := []*memoryDisk{named(4*mib, "nvme0n1", "S0"), named(4*mib, "nvme1n1", "S1")}
		if _, err := r.run(t.Context(), disks[0], disks[1]); err != nil {
			t.Fatal(err)
		}
		for _, disk := range disks {
			if !bytes.Equal(disk.data[:mib], make([]byte, mib)) {
				t.Errorf("%s: disk %s is not clear", mode, disk.info)
			}
		}
	}
}

func TestAnEraseOfOneBadDiskFailsAndStillClearsTheOthers(t *testing.T) {
	bad, good := newMemoryDisk(4*mib, 0xFF), newMemoryDisk(4*mib, 0xFF)
	bad.failAt = 1
	r, err := erased(t, hardware.EraseFull, bad, good)
	if err == nil || r.session().Reason != hardware.ReasonDiskError || r.session().State != hardware.AttemptFailed {
		t.Errorf("error %v, session %+v", err, r.session())
	}
	if !bytes.Equal(good.data, make([]byte, len(good.data))) {
		t.Error("the good disk is not clear")
	}
}

func TestAnEraseOfNothingAndAnInspectionTouchNoDisk(t *testing.T) {
	disk := newMemoryDisk(4*mib, 0xFF)
	if _, err := erased(t, hardware.EraseNone, disk); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Operation = hardware.OpInspect })
	exitAction, err := r.run(t.Context(), disk)
	if err != nil || exitAction != agent.PowerOff || r.session().Inventory.SystemUUID != "4c4c4544-0042" {
		t.Errorf("%s, %v, %+v", exitAction, err, r.session().Inventory)
	}
	if len(disk.trace) > 0 {
		t.Error("the disk was touched")
	}
}

// cachingDisk is a disk whose zeros reach a cache and not the medium.
type cachingDisk struct {
	*memoryDisk
	isCached bool
}

func (d *cachingDisk) ZeroRange(int64, int64) error { d.isCached = true; return nil }
func (d *cachingDisk) DropCache() error             { d.isCached = false; return nil }

func (d *cachingDisk) ReadAt(p []byte, off int64) (int, error) {
	if d.isCached {
		clear(p)
		return len(p), nil
	}
	return d.memoryDisk.ReadAt(p, off)
}

func TestWhatIsReadBackComesFromTheDiskAndFromNoCache(t *testing.T) {
	disk := &cachingDisk{memoryDisk: newMemoryDisk(8*mib, 0xFF)}
	r, err := erased(t, hardware.EraseFull, disk)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.session().Evidence.Disks[0]; !strings.Contains(e.Message, "still had content") || !bytes.Equal(disk.data, make([]byte, 8*mib)) {
		t.Errorf("evidence %+v, the disk is not zero", e)
	}
}

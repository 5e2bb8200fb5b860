package agent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// named returns a memory disk with an identity.
func named(size int64, name, serial string) *memoryDisk {
	disk := newMemoryDisk(size, 0xFF)
	disk.info.Name, disk.info.SerialNumber = "/dev/"+name, serial
	return disk
}

func TestAnEraseThatMissesADiskFailsByNameBeforeTheFirstByte(t *testing.T) {
	lost := hardware.Disk{Name: "/dev/nvme7n1", SerialNumber: "LOST7", SizeBytes: 7 * mib}
	for _, c := range []struct {
		name     string
		disks    int
		unusable []hardware.UnusableDisk
		known    *hardware.KnownDisks
		reason   hardware.Reason
		says     string
	}{
		{"no disk", 0, nil, nil, hardware.ReasonNoDisk, "no disk"},
		{"a disk of the record", 1, nil, &hardware.KnownDisks{Expected: []hardware.Disk{lost}}, hardware.ReasonDiskMissing, "LOST7, 7340032 bytes"},
		{"two disks of the record", 1, nil, &hardware.KnownDisks{Expected: []hardware.Disk{lost, {SerialNumber: "LOST8"}}}, hardware.ReasonDiskMissing, "ingot.dev/disk-gone: LOST7,LOST8"},
		{"a disk of the record, declared gone", 1, nil, &hardware.KnownDisks{Gone: []string{"LOST7"}}, "", ""},
		{"read-only", 1, []hardware.UnusableDisk{{Disk: lost, Why: "is read-only", HasContent: true}}, nil, hardware.ReasonDiskNotErasable, "LOST7"},
		{"read-only, declared gone", 1, []hardware.UnusableDisk{{Disk: lost, Why: "is read-only", HasContent: true}}, &hardware.KnownDisks{Gone: []string{"LOST7"}}, hardware.ReasonDiskNotErasable, "LOST7"},
		{"without size", 1, []hardware.UnusableDisk{{Disk: lost, Why: "has no size"}}, nil, hardware.ReasonDiskNotErasable, "has no size"},
		{"without size, declared gone", 1, []hardware.UnusableDisk{{Disk: lost, Why: "has no size"}}, &hardware.KnownDisks{Gone: []string{"lost7"}}, "", ""},
		{"without size, its path declared gone", 1, []hardware.UnusableDisk{{Disk: lost, Why: "has no size"}}, &hardware.KnownDisks{Gone: []string{lost.Name}}, hardware.ReasonDiskNotErasable, "has no size"},
		{"without size and serial number, its path declared gone", 1, []hardware.UnusableDisk{{Disk: hardware.Disk{Name: lost.Name}, Why: "has no size"}}, &hardware.KnownDisks{Gone: []string{lost.Name}}, "", ""},
	} {
		r := newRig(t, nil, "raw", hardware.ConfigDrive{})
		r.change(func(s *netboot.Session) {
			s.Operation, s.Erase, s.Disks = hardware.OpErase, hardware.EraseFull, c.known
		})
		disk := named(4*mib, "nvme0n1", "S0")
		config := r.config(r.boot())
		config.Disks = func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) {
			return []agent.Disk{disk}[:c.disks], c.unusable, nil
		}
		_, err := agent.Run(t.Context(), config)
		session := r.session()
		if c.reason == "" {
			if err != nil || session.Step != hardware.StepFinishing {
				t.Errorf("%s: %v, session %s %s", c.name, err, session.Reason, session.Message)
			}
			continue
		}
		if session.Reason != c.reason || !strings.Contains(session.Message, c.says) || len(disk.trace) > 0 {
			t.Errorf("%s: %s %q, want %s with %q and no write; %d steps", c.name, session.Reason, session.Message, c.reason, c.says, len(disk.trace))
		}
	}
}

func TestTheEvidenceSaysWhatWasDoneToEachDisk(t *testing.T) {
	a, b := named(4*mib, "nvme0n1", "S0"), named(8*mib, "nvme1n1", "S1")
	r, err := erased(t, hardware.EraseFull, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []*memoryDisk{a, b} {
		got := r.session().Evidence.Disks[i]
		if got.Disk != want.info || got.Method != hardware.MethodOverwrite || got.Bytes != want.info.SizeBytes || got.Result != hardware.DiskErased {
			t.Errorf("evidence %+v", got)
		}
	}
	bad := named(4*mib, "nvme0n1", "S0")
	bad.failAt = 1
	r, err = erased(t, hardware.EraseFull, bad, b)
	if err == nil || !strings.Contains(r.session().Message, "S0") || strings.Contains(r.session().Message, "S1") {
		t.Errorf("%v: %s", err, r.session().Message)
	}
	if got := r.session().Evidence.Disks; got[0].Result != hardware.DiskFailed || got[1].Result != hardware.DiskErased {
		t.Errorf("evidence %+v", got)
	}
}

// lyingDisk reports that a range is cleared and keeps its content.
type lyingDisk struct{ *memoryDisk }

func (d lyingDisk) ZeroRange(off, n int64) error { return d.step("zero") }

// keepingDisk keeps its content whatever is written.
type keepingDisk struct{ lyingDisk }

func (d keepingDisk) WriteAt(p []byte, off int64) (int, error) { return len(p), d.step("write") }

func TestADeviceThatKeepsItsContentIsOverwrittenOrFails(t *testing.T) {
	disk := lyingDisk{named(9*mib, "nvme0n1", "S0")}
	r, err := erased(t, hardware.EraseFull, disk)
	if err != nil || !bytes.Equal(disk.data, make([]byte, len(disk.data))) || !strings.Contains(r.session().Evidence.Disks[0].Message, "still had content") {
		t.Errorf("%v, evidence %+v", err, r.session().Evidence)
	}
	disk = lyingDisk{newMemoryDisk(24*mib, 0)}
	copy(disk.data, gptImage(24*mib, partition{2048, 40000, "data"}))
	r, err = erased(t, hardware.EraseMetadata, disk)
	if err != nil || !bytes.Equal(disk.data[:2*mib], make([]byte, 2*mib)) || !strings.Contains(r.session().Evidence.Disks[0].Message, "still had content") {
		t.Errorf("metadata: %v, evidence %+v", err, r.session().Evidence)
	}
	for _, mode := range []hardware.EraseMode{hardware.EraseFull, hardware.EraseMetadata} {
		r, err = erased(t, mode, keepingDisk{lyingDisk{named(9*mib, "nvme0n1", "S0")}})
		if err == nil || r.session().Reason != hardware.ReasonDiskError || !strings.Contains(r.session().Message, "does not store") {
			t.Errorf("%s: %v, session %s %s", mode, err, r.session().Reason, r.session().Message)
		}
	}
	disk = lyingDisk{newMemoryDisk(24*mib, 0)}
	copy(disk.data, gptImage(24*mib, partition{2048, 40000, "data"}))
	r, err = erased(t, hardware.EraseMetadata, keepingDisk{disk})
	if err == nil || !strings.Contains(r.session().Message, "does not store") {
		t.Errorf("metadata of partitions: %v, session %s", err, r.session().Message)
	}
}

func TestAMetadataEraseOverwritesADiskThatItCannotRead(t *testing.T) {
	disk := named(16*mib, "sda", "S0")
	r, err := erased(t, hardware.EraseMetadata, disk)
	if err != nil || !bytes.Equal(disk.data, make([]byte, len(disk.data))) {
		t.Fatalf("the disk is not clear: %v", err)
	}
	if got := r.session().Evidence.Disks[0]; got.Method != hardware.MethodOverwrite || got.Bytes != 16*mib || !strings.Contains(got.Message, "unknown content") {
		t.Errorf("evidence %+v", got)
	}
}

// signature is the mark of a format in a partition, from its start, or from its end when the offset is negative.
type signature struct {
	name, mark string
	offset     int
}

// signatures are from util-linux (libblkid/src/superblocks) and the documentation of the formats.
var signatures = []signature{
	{"ext4", "\x53\xEF", 1080}, {"XFS", "XFSB", 0}, {"btrfs", "_BHRfS_M", 65600}, {"the copy of btrfs", "_BHRfS_M", 64*mib + 64}, {"LVM", "LABELONE", 512},
	{"LUKS", "LUKS\xba\xbe", 0}, {"the second header of LUKS2 at 16 KiB", "SKUL\xba\xbe", 16 << 10}, {"at 4 MiB", "SKUL\xba\xbe", 4 * mib},
	{"a key slot of LUKS", "key material", 9 * mib},
	{"md 0.90", "\xfc\x4e\x2b\xa9", -(64 << 10)}, {"md 1.0", "\xfc\x4e\x2b\xa9", -(8 << 10)}, {"md 1.1", "\xfc\x4e\x2b\xa9", 0}, {"md 1.2", "\xfc\x4e\x2b\xa9", 4096},
	{"ZFS label 0", "\x0c\xb1\xba\x00", 128 << 10}, {"ZFS label 1", "\x0c\xb1\xba\x00", 384 << 10}, {"ZFS label 2", "\x0c\xb1\xba\x00", -(384 << 10)}, {"ZFS label 3", "\x0c\xb1\xba\x00", -(128 << 10)},
	{"VMFS", "\x0d\xd0\x01\xc0", mib}, {"VMFS volume", "\x5e\xf1\xab\x2f", 2 * mib}, {"swap", "SWAPSPACE2", 4086}, {"Intel RAID", "Intel Raid ISM Cfg Sig. ", -1024},
	{"Promise RAID", "Promise Technology, Inc.", -3087 * 512}, {"NTFS copy", "NTFS", -509}, {"DRBD", "\x83\x74\x02\x6b", -4036}, {"BlueStore", "bluestore block device", 0},
}

func TestAMetadataEraseClearsTheSignaturesOfEveryFormat(t *testing.T) {
	for _, s := range signatures {
		size := 24 * mib
		if s.offset > 16*mib {
			size = s.offset + 8*mib
		}
		first, last := uint64(2048), size/512-2049
		disk := newMemoryDisk(int64(size), 0)
		copy(disk.data, gptImage(size, partition{first, uint64(last), "data"}))
		clear(disk.data[mib : size-mib])
		at := mib + s.offset
		if s.offset < 0 {
			at = (last+1)*512 + s.offset
		}
		if strings.Contains(s.name, "key slot") {
			copy(disk.data[mib:], "LUKS\xba\xbe")
		}
		copy(disk.data[at:], s.mark)
		r, err := erased(t, hardware.EraseMetadata, disk)
		if err != nil || !bytes.Equal(disk.data[at:][:len(s.mark)], make([]byte, len(s.mark))) {
			t.Errorf("%s stays: %v", s.name, err)
			continue
		}
		if e := r.session().Evidence.Disks[0]; e.Method != hardware.MethodMetadata || e.Bytes <= 0 || e.Bytes >= int64(size) {
			t.Errorf("%s: evidence %+v", s.name, e)
		}
	}
}

// wideDisk is a memory disk with sectors of 4096 bytes.
type wideDisk struct{ *memoryDisk }

func (d wideDisk) SectorSize() int64 { return 4096 }

func TestAMetadataEraseFindsThePartitionsOfADiskWithLargeSectors(t *testing.T) {
	disk := wideDisk{newMemoryDisk(32*mib, 0)}
	// An MBR counts in the sectors of the disk. The partition begins at 8 MiB.
	disk.data[446+4] = 0x83
	binary.LittleEndian.PutUint32(disk.data[446+8:], 2048)
	binary.LittleEndian.PutUint32(disk.data[446+12:], 2048)
	copy(disk.data[510:], "\x55\xAA")
	copy(disk.data[8*mib+1080:], "\x53\xEF")
	copy(disk.data[16*mib-8192:], "\xfc\x4e\x2b\xa9")
	if _, err := erased(t, hardware.EraseMetadata, disk); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(disk.data, make([]byte, len(disk.data))) {
		t.Error("the partition's signatures stay")
	}
}

func TestADiskWhosePartitionTableCannotBeReadFailsTheErase(t *testing.T) {
	disk := unreadableDisk{named(8*mib, "sda", "S0")}
	r, err := erased(t, hardware.EraseMetadata, disk)
	if err == nil || r.session().Reason != hardware.ReasonDiskError {
		t.Errorf("%v, %s", err, r.session().Reason)
	}
}

// unreadableDisk takes writes and answers no read.
type unreadableDisk struct{ *memoryDisk }

func (d unreadableDisk) ReadAt([]byte, int64) (int, error) {
	return 0, errors.New("unrecovered read error")
}

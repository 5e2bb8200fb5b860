package agent_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

func TestARollIsWrittenToTheDiskOfTheInstallationBefore(t *testing.T) {
	image := plainImage(4 * mib)
	old := hardware.Disk{Name: "/dev/nvme0n1", SerialNumber: "OLD", WWN: "eui.0025385B71B02A33", SizeBytes: 16 * mib}
	for _, c := range []struct {
		name     string
		disks    []hardware.Disk
		unusable []hardware.UnusableDisk
		hints    hardware.RootDevice
		accepted string
		written  string   // the serial number of the disk that is written
		says     []string // in the message of the refusal
	}{
		{name: "under another path, beside a smaller one", written: "OLD",
			disks: []hardware.Disk{{Name: "/dev/nvme0n1", SerialNumber: "DATA", SizeBytes: 8 * mib}, {Name: "/dev/nvme1n1", SerialNumber: "OLD", SizeBytes: 16 * mib}}},
		{name: "known by its WWN in another notation", written: "SAME",
			disks: []hardware.Disk{{Name: "/dev/a", SerialNumber: "DATA", SizeBytes: 8 * mib}, {Name: "/dev/b", SerialNumber: "SAME", WWN: "0x0025385b71b02a33", SizeBytes: 16 * mib}}},
		{name: "not there, with a data disk", says: []string{"OLD", "DATA"},
			disks: []hardware.Disk{{Name: "/dev/nvme0n1", SerialNumber: "DATA", SizeBytes: 16 * mib}}},
		{name: "not there, the data disk is accepted", accepted: "data", written: "DATA",
			disks: []hardware.Disk{{Name: "/dev/nvme0n1", SerialNumber: "DATA", SizeBytes: 16 * mib}}},
		{name: "not there, nor is what is accepted", accepted: "NEW", says: []string{"OLD", "NEW", "DATA"},
			disks: []hardware.Disk{{Name: "/dev/nvme0n1", SerialNumber: "DATA", SizeBytes: 16 * mib}}},
		{name: "read-only", says: []string{"OLD", "is read-only"}, unusable: []hardware.UnusableDisk{{Disk: old, Why: "is read-only"}},
			disks: []hardware.Disk{{Name: "/dev/nvme1n1", SerialNumber: "DATA", SizeBytes: 16 * mib}}},
		{name: "excluded by the hints", hints: hardware.RootDevice{SerialNumber: "DATA"}, says: []string{"OLD", "DATA", "hints"},
			disks: []hardware.Disk{{Name: "/dev/a", SerialNumber: "DATA", SizeBytes: 16 * mib}, {Name: "/dev/b", SerialNumber: "OLD", SizeBytes: 16 * mib}}},
		{name: "accepted and excluded by the hints", accepted: "NEW", hints: hardware.RootDevice{SerialNumber: "DATA"}, says: []string{"OLD", "accepts disk /dev/b (serial number NEW", "DATA", "hints"},
			disks: []hardware.Disk{{Name: "/dev/a", SerialNumber: "DATA", SizeBytes: 16 * mib}, {Name: "/dev/b", SerialNumber: "NEW", SizeBytes: 16 * mib}}},
		{name: "the other namespace of its controller", says: []string{"OLD"},
			disks: []hardware.Disk{{Name: "/dev/nvme0n2", SerialNumber: "OLD", WWN: "eui.0025385B71B02A34", SizeBytes: 24 * mib}}},
	} {
		r := newRig(t, image, "raw", hardware.ConfigDrive{})
		r.change(func(s *netboot.Session) {
			s.RootDevice, s.PreviousRootDisk, s.AcceptedRootDisk = c.hints, old, c.accepted
		})
		var disks []agent.Disk
		for _, info := range c.disks {
			disk := newMemoryDisk(info.SizeBytes, 0xFF)
			disk.info = info
			disks = append(disks, disk)
		}
		config := r.config(r.boot())
		config.Disks = func(context.Context) ([]agent.Disk, []hardware.UnusableDisk, error) { return disks, c.unusable, nil }
		_, err := agent.Run(t.Context(), config)
		session := r.session()
		if (err == nil) != (c.written != "") || c.written != session.RootDisk.SerialNumber {
			t.Errorf("%s: %v, root disk %s, want %q", c.name, err, session.RootDisk, c.written)
		}
		if c.written == "" && session.Reason != hardware.ReasonRootDiskDiffers {
			t.Errorf("%s: reason %s", c.name, session.Reason)
		}
		for _, text := range c.says {
			if !strings.Contains(session.Message, text) {
				t.Errorf("%s: the message lacks %q: %s", c.name, text, session.Message)
			}
		}
		for _, disk := range disks {
			memory := disk.(*memoryDisk)
			if isWritten := bytes.HasPrefix(memory.data, image); isWritten != (memory.info.SerialNumber == c.written) || !isWritten && len(memory.trace) > 0 {
				t.Errorf("%s: disk %s written: %t, %d steps", c.name, memory.info, isWritten, len(memory.trace))
			}
		}
	}
}

func TestAChoiceAmongSeveralDisksIsReported(t *testing.T) {
	image := plainImage(4 * mib)
	small, large := named(8*mib, "nvme1n1", "SMALL"), named(16*mib, "nvme0n1", "LARGE")
	small.info.SizeBytes, large.info.SizeBytes = 5<<30, 6<<30 // beyond the minimum; nothing is written behind the image here
	r := newRig(t, image, "raw", hardware.ConfigDrive{})
	if _, err := r.run(t.Context(), sparse{large}, sparse{small}); err != nil {
		t.Fatal(err)
	}
	s := r.session()
	if s.RootDisk.SerialNumber != "SMALL" || !strings.Contains(s.Message, "SMALL") || !strings.Contains(s.Message, "LARGE") || !strings.Contains(s.Message, "rootDeviceHints") {
		t.Errorf("root disk %s, message %q", s.RootDisk, s.Message)
	}
	r = newRig(t, image, "raw", hardware.ConfigDrive{})
	if _, err := r.run(t.Context(), sparse{small}); err != nil || strings.Contains(r.session().Message, "rootDeviceHints") {
		t.Errorf("one disk: %v, message %q", err, r.session().Message)
	}
}

// sparse is a memory disk that is larger than its memory: it drops what is written behind that, and reads zeros there.
type sparse struct{ *memoryDisk }

func (d sparse) WriteAt(p []byte, off int64) (int, error) {
	if off >= int64(len(d.data)) {
		return len(p), nil
	}
	return d.memoryDisk.WriteAt(p, off)
}

func (d sparse) ZeroRange(off, n int64) error {
	_, err := d.WriteAt(make([]byte, min(n, max(int64(len(d.data))-off, 0))), off)
	return err
}

func (d sparse) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(d.data)) {
		clear(p)
		return len(p), nil
	}
	return d.memoryDisk.ReadAt(p, off)
}

package agent_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/require"
)

// guestDisks are the disks of the server, each with the arguments of its device, and how it is expected to be erased.
var guestDisks = []struct {
	serial, device string
	method         hardware.EraseMethod
	says           string
}{
	{"NVME1", "nvme", hardware.MethodFormat, "random marks"},
	// These texts are of the packages ata and scsi, so the disk has answered to their commands. QEMU has no sanitize and no security feature set.
	{"SATA1", "ide-hd,bus=ide.0", hardware.MethodOverwrite, "the disk has no command"},
	{"SCSI1", "scsi-hd,bus=hba.0", hardware.MethodOverwrite, "neither the disk nor its controller"},
	{"RAID1", "scsi-hd,bus=raid.0", hardware.MethodOverwrite, "neither the disk nor its controller"},
	{"VIRTIO1", "virtio-blk-pci", hardware.MethodOverwrite, "zeros were read"},
}

// TestTheAgentErasesTheDisksOfAVirtualServer runs the agent's ramdisk in QEMU, with the real kernel's interface to each kind of disk, and reads the
// disks from outside afterwards.
func TestTheAgentErasesTheDisksOfAVirtualServer(t *testing.T) {
	require.Deep(t)
	if testing.Short() {
		t.Skip("starts a virtual server")
	}
	qemu := require.Tool(t, "qemu-system-x86_64", "apt-get install qemu-system-x86")
	kernel, ramdisk := filepath.Join("../../../bin/boot", "vmlinuz"), filepath.Join("../../../bin/boot", "agent.cpio.zst")
	for _, file := range []string{kernel, ramdisk} {
		if _, err := os.Stat(file); err != nil {
			require.Missing(t, file, "make boot")
		}
	}
	const size = 16 * mib
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Operation, s.Erase = hardware.OpErase, hardware.EraseFull })
	line := cmdline.Arguments{URL: strings.Replace(r.service.URL, "127.0.0.1", "10.0.2.2", 1), Token: r.boot()}
	console := filepath.Join(t.TempDir(), "console.log")
	args := []string{
		"-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-cx16", "-m", "1024", "-machine", "q35", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:" + console, "-kernel", kernel, "-initrd", ramdisk, "-append", "console=ttyS0 " + strings.Join(line.Words(), " "),
		"-netdev", "user,id=net", "-device", "e1000e,netdev=net,mac=" + bootMAC, "-device", "virtio-scsi-pci,id=hba", "-device", "megasas,id=raid",
	}
	var files []string
	for _, disk := range guestDisks {
		file := filepath.Join(t.TempDir(), disk.serial)
		if err := os.WriteFile(file, bytes.Repeat([]byte{0xA5}, size), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		args = append(args, "-drive", "if=none,format=raw,discard=unmap,id="+disk.serial+",file="+file, "-device", disk.device+",drive="+disk.serial+",serial="+disk.serial)
	}
	// A server of which nothing is heard any more ends the test, not the machine that runs it.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, qemu, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, endOfFile(console))
	}
	if evidence := r.session().Evidence; evidence == nil || len(evidence.Disks) != len(guestDisks) {
		t.Fatalf("evidence %+v, session %+v, the end of the console:\n%s", evidence, r.session().AttemptStatus, endOfFile(console))
	}
	for i, disk := range guestDisks {
		got := evidenceOf(r.session(), disk.serial)
		if got.Result != hardware.DiskErased || got.Method != disk.method || got.Bytes != size || !strings.HasPrefix(got.Message, "verified: ") || !strings.Contains(got.Message, disk.says) {
			t.Errorf("%s: %+v", disk.serial, got)
		}
		if content, err := os.ReadFile(files[i]); err != nil || !bytes.Equal(content, make([]byte, size)) {
			t.Errorf("%s has content: %v", disk.serial, err)
		}
	}
}

func evidenceOf(session netboot.Session, serial string) hardware.DiskEvidence {
	for _, disk := range session.Evidence.Disks {
		if disk.SerialNumber == serial {
			return disk
		}
	}
	return hardware.DiskEvidence{}
}

// endOfFile returns the last part of a file.
func endOfFile(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

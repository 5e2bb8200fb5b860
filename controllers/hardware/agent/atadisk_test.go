package agent_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/ata"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// ataDisk is a disk in memory that gets ATA commands in SCSI commands. Its security states are those of ACS-4 figure 13 and its sanitize states
// those of section 4.18.
type ataDisk struct {
	*memoryDisk
	drive *ata.Drive
	// sanitizes is word 59, security the bits 0 and 5 of word 128 of the IDENTIFY DEVICE data.
	sanitizes, security uint16
	// password is that of the disk, nil for none.
	password         []byte
	isLocked, frozen bool
	wrongPasswords   int
	// isPrepared is true after SECURITY ERASE PREPARE until the next command.
	isPrepared bool
	// refuses are commands that the disk refuses; cutAt is the command at which the power goes.
	refuses []byte
	cutsAt  byte
	// failsLater is true where a sanitize begins and then fails.
	failsLater bool
	sanitizing bool
	failed     bool
	canLeave   bool
	polls      int
	commands   []byte
}

const (
	allSanitize  = 0xF000
	hasSecurity  = 0x01
	hasEnhanced  = 0x20
	setPassword  = 0xF1
	unlock       = 0xF2
	erasePrepare = 0xF3
	eraseUnit    = 0xF4
	disable      = 0xF6
	sanitize     = 0xB4
)

func newATADisk(sanitizes, security uint16) *ataDisk {
	d := &ataDisk{memoryDisk: named(9*mib, "sda", "S0"), sanitizes: sanitizes, security: security}
	d.drive = &ata.Drive{Send: d.send}
	return d
}

func (d *ataDisk) EraseDrive() selferase.Drive { return d.drive }
func (d *ataDisk) DropCache() error            { return nil }
func (d *ataDisk) Discard(int64, int64) error  { return errMedia }

func (d *ataDisk) refusesAccess() bool { return d.isLocked || d.sanitizing || d.failed }

func (d *ataDisk) ReadAt(p []byte, off int64) (int, error) {
	if d.refusesAccess() {
		return 0, errMedia
	}
	return d.memoryDisk.ReadAt(p, off)
}

func (d *ataDisk) WriteAt(p []byte, off int64) (int, error) {
	if d.refusesAccess() {
		return 0, errMedia
	}
	return d.memoryDisk.WriteAt(p, off)
}

func (d *ataDisk) ZeroRange(off, n int64) error {
	_, err := d.WriteAt(make([]byte, n), off)
	return err
}

// powerOn is a power cycle: a disk with a password is locked, and no longer frozen.
func (d *ataDisk) powerOn() {
	d.dead, d.isLocked, d.frozen, d.wrongPasswords, d.cutsAt = false, d.password != nil, false, 0, 0
}

// answer returns the registers of the disk as a SCSI error has them.
func answer(status, failure byte, count, lba uint16) error {
	return &scsi.Error{Opcode: 0x85, Status: 2, Sense: []byte{
		0x72, 1, 0, 0x1D, 0, 0, 0, 14, 9, 12, 1, failure, byte(count >> 8), byte(count), 0, byte(lba), 0, byte(lba >> 8), 0, 0, 0, status,
	}}
}

var errAborted = answer(0x51, 4, 0, 0)

// send carries out a command.
func (d *ataDisk) send(c scsi.Command) error {
	command, wasPrepared := c.CDB[14], d.isPrepared
	d.isPrepared = false
	switch {
	case d.dead:
		return errPower
	case c.CDB[0] != 0x85 || slices.Contains(d.refuses, command):
		return errAborted
	case command == 0xEC:
		d.identify(c.In)
		return nil
	}
	if isStatus := command == sanitize && c.CDB[4] == 0; !isStatus {
		d.commands = append(d.commands, command)
	}
	if command == d.cutsAt {
		d.cut()
		return errPower
	}
	if command == sanitize {
		return d.sanitize(c)
	}
	return d.secure(command, c.Out, wasPrepared)
}

func (d *ataDisk) identify(data []byte) {
	word := func(n int, value uint16) { binary.LittleEndian.PutUint16(data[2*n:], value) }
	state := d.security
	for bit, isSet := range map[int]bool{1: d.password != nil, 2: d.isLocked, 3: d.frozen, 4: d.wrongPasswords >= 5} {
		if isSet {
			state |= 1 << bit
		}
	}
	word(59, d.sanitizes)
	word(89, 10)
	word(128, state)
}

// secure carries out a security command.
func (d *ataDisk) secure(command byte, data []byte, wasPrepared bool) error {
	if d.security == 0 || d.frozen {
		return errAborted
	}
	if command == erasePrepare {
		d.isPrepared = true
		return nil
	}
	isRight := len(data) == 512 && bytes.Equal(data[2:34], d.password)
	switch {
	case command == setPassword && !d.isLocked:
		d.password = bytes.Clone(data[2:34])
	case command == unlock && isRight && d.wrongPasswords < 5:
		d.isLocked = false
	case command == disable && isRight && !d.isLocked:
		d.password = nil
	case command == eraseUnit && wasPrepared && isRight && (data[0]&2 == 0 || d.security&hasEnhanced != 0):
		clear(d.data)
		d.password, d.isLocked = nil, false
	default:
		if command == unlock {
			d.wrongPasswords++
		}
		return errAborted
	}
	return nil
}

// sanitize carries out a SANITIZE DEVICE command.
func (d *ataDisk) sanitize(c scsi.Command) error {
	if c.CDB[4] == 0 {
		return d.sanitizeStatus(c.CDB[6]&1 != 0)
	}
	keys := map[byte]string{0x11: "Cryp", 0x12: "BkEr"}
	lba := string([]byte{c.CDB[7], c.CDB[12], c.CDB[10], c.CDB[8]})
	isOverwrite := c.CDB[4] == 0x14 && c.CDB[11] == 'O' && c.CDB[9] == 'W' && c.CDB[6]&0xF != 0
	if d.sanitizing || d.failed || d.isLocked || !isOverwrite && (keys[c.CDB[4]] == "" || keys[c.CDB[4]] != lba) {
		return errAborted
	}
	d.sanitizing, d.polls, d.canLeave = true, 3, c.CDB[6]&0x10 != 0
	return nil
}

func (d *ataDisk) sanitizeStatus(clears bool) error {
	if d.failed && clears && d.canLeave {
		d.failed = false
	}
	if d.failed {
		return answer(0x51, 4, 0, 1)
	}
	if !d.sanitizing {
		return answer(0x50, 0, 0x8000, 0xFFFF)
	}
	if d.polls--; d.polls > 0 {
		return answer(0x50, 0, 0x4000, uint16(0x4000*(3-d.polls)))
	}
	if d.sanitizing = false; d.failsLater {
		d.failed = true
		return answer(0x51, 4, 0, 1)
	}
	clear(d.data)
	return answer(0x50, 0, 0x8000, 0xFFFF)
}

func TestAnATADiskErasesItselfByItsBestMethod(t *testing.T) {
	for name, c := range map[string]struct {
		sanitizes, security uint16
		refuses             []byte
		method              hardware.EraseMethod
		commands            []byte
	}{
		"sanitize":               {allSanitize, hasSecurity | hasEnhanced, nil, hardware.MethodSanitizeBlock, []byte{sanitize}},
		"sanitize, by overwrite": {0x5000, hasSecurity, nil, hardware.MethodSanitizeOverwrite, []byte{sanitize}},
		"enhanced erase":         {0, hasSecurity | hasEnhanced, nil, hardware.MethodSecureEraseEnhanced, []byte{setPassword, erasePrepare, eraseUnit}},
		"normal erase":           {0, hasSecurity, nil, hardware.MethodSecureErase, []byte{setPassword, erasePrepare, eraseUnit}},
	} {
		disk := newATADisk(c.sanitizes, c.security)
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != c.method || got.Bytes != disk.info.SizeBytes || !strings.HasPrefix(got.Message, "verified: ") || !bytes.Equal(disk.commands, c.commands) || disk.password != nil {
			t.Errorf("%s: %+v, commands %x", name, got, disk.commands)
		}
	}
}

func TestAnATADiskThatCannotEraseItselfIsOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*ataDisk)
		says     string
		commands []byte
	}{
		"its security is frozen":     {func(d *ataDisk) { d.sanitizes, d.frozen = 0, true }, "frozen", nil},
		"it has no method":           {func(d *ataDisk) { d.sanitizes, d.security = 0, 0 }, "no command by which", nil},
		"it refuses the erase":       {func(d *ataDisk) { d.sanitizes, d.refuses = 0, []byte{eraseUnit} }, "SecureErase failed", []byte{setPassword, erasePrepare, disable}},
		"its sanitize fails":         {func(d *ataDisk) { d.security, d.failsLater = 0, true }, "erase failed", []byte{sanitize, sanitize, sanitize}},
		"it does not take passwords": {func(d *ataDisk) { d.sanitizes, d.refuses = 0, []byte{setPassword} }, "SecureErase failed", nil},
	} {
		disk := newATADisk(allSanitize, hasSecurity)
		c.change(disk)
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != hardware.MethodOverwrite || !strings.Contains(got.Message, c.says) || !bytes.Equal(disk.commands, c.commands) || disk.password != nil {
			t.Errorf("%s: %+v, commands %x, password %q", name, got, disk.commands, disk.password)
		}
		if !bytes.Equal(disk.data, make([]byte, len(disk.data))) {
			t.Errorf("%s: the disk has content", name)
		}
	}
}

func TestADiskThatAPowerCutLeftLockedIsUnlockedAndErased(t *testing.T) {
	for _, mode := range []hardware.EraseMode{hardware.EraseFull, hardware.EraseMetadata} {
		for _, at := range []byte{erasePrepare, eraseUnit} {
			disk := newATADisk(0, hasSecurity)
			disk.cutsAt = at
			if _, err := erased(t, hardware.EraseFull, disk); err == nil || disk.password == nil {
				t.Fatalf("the power did not go: %v", err)
			}
			disk.powerOn()
			if !disk.isLocked {
				t.Fatal("the disk is not locked")
			}
			r, err := erased(t, mode, disk)
			if err != nil || r.session().Evidence.Disks[0].Result != hardware.DiskErased || disk.password != nil {
				t.Errorf("%s after a cut at %#x: %v, %+v, password %q", mode, at, err, r.session().Evidence, disk.password)
			}
		}
	}
}

func TestALockedDiskThatCannotBeUnlockedFailsAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ataDisk)
		says   string
	}{
		"another password": {func(d *ataDisk) { d.password = bytes.Repeat([]byte{'x'}, 32) }, "not Ingot's"},
		"frozen":           {func(d *ataDisk) { d.password, d.frozen = bytes.Repeat([]byte{'x'}, 32), true }, "frozen"},
		"too many tries":   {func(d *ataDisk) { d.password, d.wrongPasswords = bytes.Repeat([]byte{'x'}, 32), 5 }, "take its power away"},
	} {
		disk := newATADisk(allSanitize, hasSecurity)
		disk.isLocked = true
		c.change(disk)
		r, err := erased(t, hardware.EraseFull, disk)
		if err == nil || !strings.Contains(r.session().Message, c.says) && !strings.Contains(r.session().Evidence.Disks[0].Message, c.says) {
			t.Errorf("%s: %v, %+v", name, err, r.session().Evidence)
		}
	}
}

func TestAnATASanitizeThatAPowerCutInterruptedIsWaitedFor(t *testing.T) {
	for name, change := range map[string]func(*ataDisk){
		"it runs": func(d *ataDisk) { d.sanitizing, d.polls = true, 3 }, "it has failed": func(d *ataDisk) { d.failed, d.canLeave = true, true },
	} {
		disk := newATADisk(allSanitize, 0)
		change(disk)
		if r, err := erased(t, hardware.EraseFull, disk); err != nil || r.session().Evidence.Disks[0].Method != hardware.MethodSanitizeBlock {
			t.Errorf("%s: %v, %+v", name, err, r.session().Evidence)
		}
	}
}

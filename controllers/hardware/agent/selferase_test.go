package agent_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/nvme"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

// errStatus is what a controller answers to a command that it refuses.
var errStatus = errors.New("status 0x4002")

// nvmeDisk is a disk in memory with a controller that gets the bytes of admin commands.
type nvmeDisk struct {
	*memoryDisk
	drive nvme.Drive

	mu sync.Mutex
	// sanicap, oacs and fna are fields of its Identify Controller data structure.
	sanicap, oacs, fna byte
	// fails are the opcodes that are refused; failsLater is true where a sanitize begins and then fails.
	fails      []byte
	failsLater bool
	// keeps is true where an erase reports success and erases nothing.
	keeps bool
	// status is that of the last sanitize; polls is how often it is asked until one that runs has ended.
	status, polls int
	commands      []uint8
}

func newNVMeDisk(sanicap, oacs, fna byte) *nvmeDisk {
	d := &nvmeDisk{memoryDisk: named(9*mib, "nvme0n1", "S0"), sanicap: sanicap, oacs: oacs, fna: fna}
	d.drive = nvme.Drive{Namespace: 1, Admin: d.admin}
	return d
}

func (d *nvmeDisk) EraseDrive() selferase.Drive { return &d.drive }
func (d *nvmeDisk) DropCache() error            { return nil }
func (d *nvmeDisk) Discard(off, n int64) error  { return d.ZeroRange(off, n) }

// WriteAt fails while a sanitize runs or has failed, as a controller's writes do.
func (d *nvmeDisk) WriteAt(p []byte, off int64) (int, error) {
	if d.isSanitizing() {
		return 0, errStatus
	}
	return d.memoryDisk.WriteAt(p, off)
}

func (d *nvmeDisk) ZeroRange(off, n int64) error {
	_, err := d.WriteAt(make([]byte, n), off)
	return err
}

func (d *nvmeDisk) isSanitizing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status == 2 || d.status == 3
}

// admin carries out a command.
func (d *nvmeDisk) admin(c nvme.Command) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.fails, c.Opcode) {
		return errStatus
	}
	switch {
	case c.Opcode == 0x06 && c.CDW10 == 1:
		c.Data[256], c.Data[328], c.Data[524] = d.oacs, d.sanicap, d.fna
	case c.Opcode == 0x06 && c.CDW10 == 2:
		c.Data[0] = 1
	case c.Opcode == 0x02:
		if d.status == 2 {
			d.endSanitize()
		}
		binary.LittleEndian.PutUint16(c.Data, uint16(0x4000*(4-d.polls)))
		c.Data[2] = byte(d.status)
	case c.Opcode == 0x84 && c.CDW10&7 == 1:
		d.status, d.commands = 1, append(d.commands, 1)
	case c.Opcode == 0x84:
		d.status, d.polls, d.commands = 2, 3, append(d.commands, uint8(c.CDW10&7))
	case c.Opcode == 0x80:
		if d.status == 3 {
			return errStatus
		}
		d.commands = append(d.commands, 0x80)
		d.replaceContent(0)
	}
	return nil
}

// endSanitize lets the sanitize that runs come nearer to its end.
func (d *nvmeDisk) endSanitize() {
	if d.polls--; d.polls > 0 {
		return
	}
	if d.status = 1; d.failsLater {
		d.status = 3
		return
	}
	d.replaceContent(0xA5) // a new key makes something else of the data
}

func (d *nvmeDisk) replaceContent(mask byte) {
	if d.keeps {
		return
	}
	for i := range d.data {
		d.data[i] = (d.data[i] ^ mask) & mask
	}
}

func TestANVMeDiskErasesItselfByItsBestMethod(t *testing.T) {
	for name, c := range map[string]struct {
		sanicap, oacs, fna byte
		method             hardware.EraseMethod
		commands           []uint8
		says               string
	}{
		"block sanitize":   {0b11, 2, 4, hardware.MethodSanitizeBlock, []uint8{2}, "other content"},
		"crypto sanitize":  {0b01, 2, 4, hardware.MethodSanitizeCrypto, []uint8{4}, "other content"},
		"crypto format":    {0, 2, 4, hardware.MethodFormatCrypto, []uint8{0x80}, "zeros"},
		"user data format": {0, 2, 0, hardware.MethodFormat, []uint8{0x80}, "zeros"},
	} {
		disk := newNVMeDisk(c.sanicap, c.oacs, c.fna)
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != c.method || got.Bytes != disk.info.SizeBytes || !strings.Contains(got.Message, c.says) || !slices.Equal(disk.commands, c.commands) {
			t.Errorf("%s: %+v, commands %v", name, got, disk.commands)
		}
		if zeros := make([]byte, mib); !bytes.Equal(disk.data[:mib], zeros) || !bytes.Equal(disk.data[8*mib:], zeros) {
			t.Errorf("%s: an end of the disk has content that looks like anything", name)
		}
	}
}

func TestADiskThatCannotEraseItselfIsOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*nvmeDisk)
		says     string
		commands []uint8
	}{
		"it has no method":                  {func(d *nvmeDisk) { d.sanicap, d.oacs = 0, 0 }, "", nil},
		"every command is refused":          {func(d *nvmeDisk) { d.fails = []byte{0x06, 0x02} }, "what it can do", nil},
		"it keeps its content":              {func(d *nvmeDisk) { d.keeps = true }, "kept its content", []uint8{2, 4, 0x80, 0x80}},
		"its sanitize fails, format is not": {func(d *nvmeDisk) { d.failsLater, d.oacs = true, 0 }, "erase failed", []uint8{2, 1, 4, 1}},
	} {
		disk := newNVMeDisk(0b11, 2, 4)
		c.change(disk)
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != hardware.MethodOverwrite || !strings.Contains(got.Message, c.says) || !slices.Equal(disk.commands, c.commands) {
			t.Errorf("%s: %+v, commands %v", name, got, disk.commands)
		}
		if !bytes.Equal(disk.data, make([]byte, len(disk.data))) {
			t.Errorf("%s: the disk has content", name)
		}
	}
}

func TestAnEraseAfterAFailedSanitizeGoesOnWithTheNextMethod(t *testing.T) {
	disk := newNVMeDisk(0b11, 2, 4)
	disk.failsLater = true
	r, err := erased(t, hardware.EraseFull, disk)
	got := r.session().Evidence
	if err != nil || got.Disks[0].Method != hardware.MethodFormatCrypto || !slices.Equal(disk.commands, []uint8{2, 1, 4, 1, 0x80}) {
		t.Errorf("%v, %+v, commands %v", err, got, disk.commands)
	}
}

func TestASanitizeThatAPowerCutInterruptedIsWaitedFor(t *testing.T) {
	for status, commands := range map[int][]uint8{2: {2}, 3: {1, 2}} { // it runs, it has failed
		disk := newNVMeDisk(0b11, 2, 4)
		disk.status, disk.polls = status, 3
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil || r.session().Evidence.Disks[0].Method != hardware.MethodSanitizeBlock || !slices.Equal(disk.commands, commands) {
			t.Errorf("status %d: %v, %+v, commands %v", status, err, r.session().Evidence, disk.commands)
		}
	}
}

func TestAMetadataEraseUsesNoMethodOfTheDisk(t *testing.T) {
	disk := newNVMeDisk(0b11, 2, 4)
	copy(disk.data, gptImage(9*mib, partition{2048, 10000, "data"}))
	if r, err := erased(t, hardware.EraseMetadata, disk); err != nil || r.session().Evidence.Disks[0].Method != hardware.MethodMetadata || len(disk.commands) > 0 {
		t.Errorf("%v, %+v, commands %v", err, r.session().Evidence, disk.commands)
	}
}

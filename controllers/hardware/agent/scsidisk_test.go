package agent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// scsiDisk is a disk in memory that gets the bytes of SCSI commands and answers as SBC-4 section 4.11 says.
type scsiDisk struct {
	*memoryDisk
	drive *scsi.Drive

	mu sync.Mutex
	// has are the service actions of SANITIZE that the disk has.
	has []byte
	// zeros is byte 14 of the READ CAPACITY (16) data. ignoresAt is where the disk ignores a discard, -1 for nowhere.
	zeros     byte
	ignoresAt int64
	// failsLater is true where a sanitize begins and then fails; endless where it does not end.
	failsLater, endless bool
	// isSanitizing and hasFailed are the state, polls how often it is asked until the sanitize has ended.
	isSanitizing, hasFailed bool
	polls                   int
	actions                 []byte
	discards                int
}

func newSCSIDisk(product string, has ...byte) *scsiDisk {
	d := &scsiDisk{memoryDisk: named(9*mib, "sda", "S0"), has: has, ignoresAt: -1}
	d.drive = &scsi.Drive{Identity: scsi.Identity{Vendor: "V", Product: product}, Send: d.send}
	return d
}

func (d *scsiDisk) EraseDrive() selferase.Drive { return d.drive }
func (d *scsiDisk) DropCache() error            { return nil }

func (d *scsiDisk) Discard(off, n int64) error {
	d.discards++
	if off <= d.ignoresAt && d.ignoresAt < off+n {
		return nil
	}
	clear(d.data[off : off+n])
	return nil
}

func (d *scsiDisk) WriteAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	isBusy := d.isSanitizing || d.hasFailed
	d.mu.Unlock()
	if isBusy {
		return 0, errMedia
	}
	return d.memoryDisk.WriteAt(p, off)
}

func (d *scsiDisk) ZeroRange(off, n int64) error {
	_, err := d.WriteAt(make([]byte, n), off)
	return err
}

// sense returns sense data in fixed format.
func sense(key, code, qualifier byte, progress uint16) []byte {
	data := make([]byte, 18)
	data[0], data[2], data[7], data[12], data[13], data[15] = 0x70, key, 10, code, qualifier, 0x80
	binary.BigEndian.PutUint16(data[16:], progress)
	return data
}

// state returns the sense data of the disk's state.
func (d *scsiDisk) state() []byte {
	switch {
	case d.isSanitizing:
		return sense(2, 0x04, 0x1B, uint16(0x4000*(4-d.polls)))
	case d.hasFailed:
		return sense(3, 0x31, 0x03, 0)
	}
	return sense(0, 0, 0, 0)
}

// send carries out a command.
func (d *scsiDisk) send(c scsi.Command) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	refused := &scsi.Error{Opcode: c.CDB[0], Status: 2, Sense: sense(5, 0x20, 0, 0)}
	switch c.CDB[0] {
	case 0x03:
		if d.isSanitizing && !d.endless {
			d.approachEnd()
		}
		copy(c.In, d.state())
	case 0x00:
		if d.hasFailed || d.isSanitizing {
			return &scsi.Error{Status: 2, Sense: d.state()}
		}
	case 0xA3:
		c.In[1] = 0b001
		if slices.Contains(d.has, c.CDB[5]) {
			c.In[1] = 0b011
		}
	case 0x9E:
		c.In[14] = d.zeros
	case 0x48:
		return d.sanitize(c, refused)
	default:
		return refused
	}
	return nil
}

func (d *scsiDisk) sanitize(c scsi.Command, refused error) error {
	const immediate, allowExit, exit = 0x80, 0x20, 0x1F
	action := c.CDB[1] & 0x1F
	switch {
	case action == exit && d.hasFailed:
		d.hasFailed = false
	case d.hasFailed || d.isSanitizing || !slices.Contains(d.has, action) || c.CDB[1]&(immediate|allowExit) != immediate|allowExit:
		return refused
	case action == 1 && (len(c.Out) != 8 || c.Out[0]&0x1F == 0 || binary.BigEndian.Uint16(c.CDB[7:]) != 8):
		return refused
	default:
		d.isSanitizing, d.polls = true, 3
	}
	d.actions = append(d.actions, action)
	return nil
}

func (d *scsiDisk) approachEnd() {
	if d.polls--; d.polls > 0 {
		return
	}
	if d.isSanitizing = false; d.failsLater {
		d.hasFailed = true
		return
	}
	if d.actions == nil || d.actions[len(d.actions)-1] == 1 {
		clear(d.data)
		return
	}
	for i := range d.data {
		d.data[i] ^= 0xA5
	}
}

func TestASCSIDiskErasesItselfByItsBestMethod(t *testing.T) {
	for name, c := range map[string]struct {
		has    []byte
		method hardware.EraseMethod
		says   string
	}{
		"block": {[]byte{1, 2, 3}, hardware.MethodSanitizeBlock, "other content"}, "crypto": {[]byte{1, 3}, hardware.MethodSanitizeCrypto, "other content"},
		"overwrite": {[]byte{1}, hardware.MethodSanitizeOverwrite, "zeros"},
	} {
		disk := newSCSIDisk("ST16000NM004J", c.has...)
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != c.method || got.Bytes != disk.info.SizeBytes || !strings.HasPrefix(got.Message, "verified: ") || !strings.Contains(got.Message, c.says) || len(disk.actions) != 1 {
			t.Errorf("%s: %+v, actions %v", name, got, disk.actions)
		}
	}
}

func TestAFailedSanitizeOfASCSIDiskIsLeftForTheNextWay(t *testing.T) {
	disk := newSCSIDisk("ST16000NM004J", 1, 3)
	disk.failsLater = true
	r, err := erased(t, hardware.EraseFull, disk)
	if err != nil {
		t.Fatal(err)
	}
	got := r.session().Evidence.Disks[0]
	if got.Method != hardware.MethodOverwrite || !bytes.Equal(disk.actions, []byte{3, 0x1F, 1, 0x1F}) || !bytes.Equal(disk.data, make([]byte, len(disk.data))) ||
		!strings.Contains(got.Message, "SanitizeCrypto failed") || !strings.Contains(got.Message, "SanitizeOverwrite failed") {
		t.Errorf("%+v, actions %v", got, disk.actions)
	}
}

func TestASCSISanitizeThatAPowerCutInterruptedIsWaitedFor(t *testing.T) {
	for _, mode := range []hardware.EraseMode{hardware.EraseFull, hardware.EraseMetadata} {
		disk := newSCSIDisk("ST16000NM004J", 1)
		disk.isSanitizing, disk.polls = true, 3
		if r, err := erased(t, mode, disk); err != nil || r.session().Evidence.Disks[0].Result != hardware.DiskErased {
			t.Errorf("%s: %v, %+v", mode, err, r.session().Evidence)
		}
	}
}

// hurriedClock sleeps a ten-thousandth of durations of some seconds.
type hurriedClock struct{ fastClock }

func (c hurriedClock) Sleep(ctx context.Context, d time.Duration) error {
	if 5*time.Second <= d && d <= time.Minute {
		d /= 100
	}
	return c.fastClock.Sleep(ctx, d)
}

func TestAnEraseThatDoesNotEndFailsAndSaysSo(t *testing.T) {
	disk := newSCSIDisk("ST16000NM004J", 2)
	disk.endless = true
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) { s.Operation, s.Erase = hardware.OpErase, hardware.EraseFull })
	config := r.config(r.boot(), disk)
	config.Clock = hurriedClock{}
	_, err := agent.Run(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "still erasing itself") || len(disk.actions) != 1 {
		t.Errorf("%v, actions %v", err, disk.actions)
	}
}

func TestAVirtualDriveIsOverwrittenAndTheEvidenceSaysSo(t *testing.T) {
	disk := newSCSIDisk("PERC H755 Front", 1, 2, 3)
	disk.zeros = 0xC0
	r, err := erased(t, hardware.EraseFull, disk)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.session().Evidence.Disks[0]; got.Method != hardware.MethodOverwrite || !strings.Contains(got.Message, "RAID controller") || len(disk.actions) > 0 || disk.discards > 0 {
		t.Errorf("%+v, actions %v, %d discards", got, disk.actions, disk.discards)
	}
}

func TestADiskThatIsSeenTwiceIsNotToldToEraseItself(t *testing.T) {
	disks := []*scsiDisk{newSCSIDisk("KPM61RUG960G", 2), newSCSIDisk("KPM61RUG960G", 2)}
	disks[1].info.Name = "/dev/sdb"
	disks[0].info.WWN, disks[1].info.WWN = "naa.5000", "naa.5000"
	r, err := erased(t, hardware.EraseFull, disks[0], disks[1])
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range r.session().Evidence.Disks {
		if got.Method != hardware.MethodOverwrite || !strings.Contains(got.Message, disks[1-i].info.Name) || len(disks[i].actions) > 0 {
			t.Errorf("%+v, actions %v", got, disks[i].actions)
		}
	}
}

func TestADiskIsDiscardedOnlyWhereZerosAreGuaranteedAndAllAreThere(t *testing.T) {
	for name, c := range map[string]struct {
		zeros     byte
		ignoresAt int64
		method    hardware.EraseMethod
		discards  int
	}{
		"guaranteed":             {0xC0, -1, hardware.MethodDiscard, 1},
		"not guaranteed":         {0x80, -1, hardware.MethodOverwrite, 0},
		"guaranteed and ignored": {0xC0, 5 * mib, hardware.MethodOverwrite, 1},
	} {
		disk := newSCSIDisk("SSD")
		disk.zeros, disk.ignoresAt = c.zeros, c.ignoresAt
		// One sector alone, between the samples.
		copy(disk.data[5*mib-65536/2:], "secret")
		r, err := erased(t, hardware.EraseFull, disk)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := r.session().Evidence.Disks[0]
		if got.Method != c.method || disk.discards != c.discards || !bytes.Equal(disk.data, make([]byte, len(disk.data))) {
			t.Errorf("%s: %+v, %d discards", name, got, disk.discards)
		}
	}
}

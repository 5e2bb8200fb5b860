package scsi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

func TestTheCommandsHaveTheBytesOfTheSpecification(t *testing.T) {
	for name, c := range map[string]struct {
		command Command
		cdb     string
		in      int
		out     string
	}{
		"inquiry":                     {inquiry(), "120000006000", 96, ""},
		"test unit ready":             {testUnitReady(), "000000000000", 0, ""},
		"request sense, fixed format": {requestSense(), "03000000fc00", 252, ""},
		"supported: block erase":      {supportedOperation(opSanitize, blockErase), "a30c02480002000000400000", 64, ""},
		"read capacity":               {readCapacity(), "9e100000000000000000000000200000", 32, ""},
		"block erase":                 {sanitize(blockErase), "48a20000000000000000", 0, ""},
		"crypto erase":                {sanitize(cryptoErase), "48a30000000000000000", 0, ""},
		"overwrite":                   {sanitize(overwrite), "48a10000000000000800", 0, "0100000400000000"},
		"exit failure mode":           {sanitize(exitFailure), "481f0000000000000000", 0, ""},
	} {
		if got := c.command; hex.EncodeToString(got.CDB) != c.cdb || len(got.In) != c.in || hex.EncodeToString(got.Out) != c.out || got.Timeout <= 0 {
			t.Errorf("%s: %x, in %d, out %x, expected %+v", name, got.CDB, len(got.In), got.Out, c)
		}
	}
}

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSenseDataIsReadInBothFormats(t *testing.T) {
	for name, c := range map[string]struct {
		data     string
		expected Sense
		state    selferase.State
	}{
		"nothing": {"", Sense{}, selferase.State{}},
		"sanitize in progress": {"70 00 02 00000000 0a 00000000 04 1b 00 80 4000", Sense{Key: 2, Code: 0x04, Qualifier: 0x1B, Progress: 0x4000, HasProgress: true},
			selferase.State{IsRunning: true, Done: 0x4000}},
		"the same without a progress": {"70 00 02 00000000 0a 00000000 04 1b 00 00 4000", Sense{Key: 2, Code: 0x04, Qualifier: 0x1B}, selferase.State{IsRunning: true}},
		"the same with descriptors": {"72 02 04 1b 000000 08 0206 0000 80 8000 00", Sense{Key: 2, Code: 0x04, Qualifier: 0x1B, Progress: 0x8000, HasProgress: true},
			selferase.State{IsRunning: true, Done: 0x8000}},
		"sanitize failed":            {"70 00 03 00000000 0a 00000000 31 03 00 000000", Sense{Key: 3, Code: 0x31, Qualifier: 0x03}, selferase.State{HasFailed: true}},
		"no key specific part":       {"70 00 05 00000000 0a 00000000 20 00 00 c0 0001", Sense{Key: 5, Code: 0x20}, selferase.State{}},
		"a descriptor that is cut":   {"72 02 04 1b 000000 08 09ff 0000 80 8000 00", Sense{Key: 2, Code: 0x04, Qualifier: 0x1B}, selferase.State{IsRunning: true}},
		"cut after the first bytes":  {"70 00 02 00000000 00", Sense{Key: 2}, selferase.State{}},
		"an unknown response format": {"7f 00 02 00000000 0a 00000000 04 1b 00 80 4000", Sense{}, selferase.State{}},
	} {
		got := ParseSense(fromHex(t, c.data))
		if got.Key != c.expected.Key || got.Code != c.expected.Code || got.Qualifier != c.expected.Qualifier || got.Progress != c.expected.Progress ||
			got.HasProgress != c.expected.HasProgress {
			t.Errorf("%s: %+v, expected %+v", name, got, c.expected)
		}
		if state, _ := got.state(); state != c.state {
			t.Errorf("%s: %+v, expected %+v", name, state, c.state)
		}
	}
	ata := fromHex(t, "72 01 00 1d 000000 0e 090c 01 00 40 00 00 34 00 12 00 00 e0 50")
	if got := ParseSense(ata); !bytes.Equal(got.ATA, ata[8:]) {
		t.Errorf("the ATA Status Return descriptor is %x", got.ATA)
	}
}

func inquiryData(kind byte, vendor, product string) []byte {
	data := bytes.Repeat([]byte{' '}, inquiryBytes)
	data[0] = kind
	copy(data[8:16], vendor)
	copy(data[16:32], product)
	return data
}

func TestADiskIsKnownByItsInquiryData(t *testing.T) {
	for _, c := range []struct {
		vendor, product string
		isATA, isRAID   bool
	}{
		{"ATA     ", "SAMSUNG MZ7LH960", true, false}, {"SEAGATE", "ST16000NM004J", false, false}, {"KIOXIA", "KPM61RUG960G", false, false},
		{"DELL", "PERC H755 Front", false, true}, {"AVAGO", "MR9361-8i", false, true}, {"BROADCOM", "MR9560-16i", false, true},
		{"HPE", "LOGICAL VOLUME", false, true}, {"Lenovo", "RAID 930-8i-2GB", false, true}, {"ASR8805", "LogicalDrv 0", false, true},
		{"QEMU\x00\x00\x00\x00", "QEMU HARDDISK", false, false},
	} {
		got, err := parseInquiry(inquiryData(0, c.vendor, c.product))
		if err != nil || got.IsATA() != c.isATA || got.IsVirtual() != c.isRAID {
			t.Errorf("%s %s: %+v, %v", c.vendor, c.product, got, err)
		}
	}
	if _, err := parseInquiry(inquiryData(5, "HL-DT-ST", "DVDRAM")); err == nil {
		t.Error("an optical drive counts as a disk")
	}
	if _, err := parseInquiry(make([]byte, 35)); err == nil {
		t.Error("data that is too short is read")
	}
}

func TestTheMethodThatProvesMostComesFirst(t *testing.T) {
	const block, crypto, over = hardware.MethodSanitizeBlock, hardware.MethodSanitizeCrypto, hardware.MethodSanitizeOverwrite
	for name, c := range map[string]struct {
		product string
		has     []sanitizeAction
		methods []hardware.EraseMethod
		says    string
	}{
		"everything":      {"KPM61RUG960G", []sanitizeAction{overwrite, cryptoErase, blockErase}, []hardware.EraseMethod{block, crypto, over}, ""},
		"a rotating disk": {"ST16000NM004J", []sanitizeAction{overwrite, cryptoErase}, []hardware.EraseMethod{crypto, over}, ""},
		"nothing":         {"QEMU HARDDISK", nil, nil, "neither the disk nor its controller"},
		"a virtual drive": {"PERC H755", []sanitizeAction{overwrite, cryptoErase, blockErase}, nil, "virtual drive of a RAID controller"},
	} {
		drive := &Drive{Identity: Identity{Vendor: "V", Product: c.product}, Send: func(command Command) error {
			if command.CDB[0] != opMaintenanceIn || command.CDB[3] != opSanitize {
				return &Error{Status: 2}
			}
			command.In[1] = 0b001
			if slices.Contains(c.has, sanitizeAction(command.CDB[5])) {
				command.In[1] = 0b011
			}
			return nil
		}}
		got, err := drive.Methods()
		if !slices.Equal(got, c.methods) || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestZerosAfterADiscardNeedBothBits(t *testing.T) {
	for flags, expected := range map[byte]bool{0xC0: true, 0x80: false, 0x40: false, 0: false} {
		drive := &Drive{Send: func(command Command) error { command.In[14] = flags; return nil }}
		if got := drive.HasZerosAfterDiscard(); got != expected {
			t.Errorf("%#x: %v", flags, got)
		}
	}
	if (&Drive{Identity: Identity{Product: "PERC H755"}, Send: func(command Command) error { command.In[14] = 0xC0; return nil }}).HasZerosAfterDiscard() {
		t.Error("a virtual drive's promise counts")
	}
}

func TestTheReadinessTellsAFailedSanitizeAfterAReset(t *testing.T) {
	answers := [][]byte{fromHex(t, "70 00 06 00000000 0a 00000000 29 00 00 000000"), fromHex(t, "70 00 03 00000000 0a 00000000 31 03 00 000000")}
	drive := &Drive{Send: func(command Command) error {
		if command.CDB[0] == opRequestSense {
			return nil
		}
		sense := answers[0]
		answers = answers[1:]
		return &Error{Status: 2, Sense: sense}
	}}
	if state, err := drive.State(); err != nil || !state.HasFailed {
		t.Errorf("%+v, %v", state, err)
	}
	broken := errors.New("input/output error")
	drive.Send = func(Command) error { return broken }
	if _, err := drive.State(); !errors.Is(err, broken) {
		t.Errorf("an error of the kernel: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x72, 0x01, 0, 0x1D, 0, 0, 0, 0x0E, 9, 12, 1, 0, 0x40, 0})
	f.Add(inquiryData(0, "ATA", "X"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sense := ParseSense(data)
		if sense.Progress >= selferase.Parts || len(sense.ATA) != 0 && len(sense.ATA) != 14 {
			t.Errorf("%+v", sense)
		}
		_, _ = parseInquiry(data)
		_, _ = isSupported(data), hasZerosAfterUnmap(data)
	})
}

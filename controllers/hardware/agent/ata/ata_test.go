package ata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/scsi"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

func TestTheCommandsHaveTheBytesOfTheSpecification(t *testing.T) {
	for name, c := range map[string]struct {
		command scsi.Command
		cdb     string
		in, out int
	}{
		"identify":                {identify(), "85080e0000000100000000000000ec00", 512, 0},
		"set password":            {security(cmdSetPassword, 0, shortTimeout), "850a060000000100000000000000f100", 0, 512},
		"unlock":                  {security(cmdUnlock, 0, shortTimeout), "850a060000000100000000000000f200", 0, 512},
		"erase prepare":           {erasePrepare(), "85060000000000000000000000" + "00f300", 0, 0},
		"erase unit":              {eraseUnit(false, time.Hour), "850a060000000100000000000000f400", 0, 512},
		"disable password":        {security(cmdDisablePassword, 0, shortTimeout), "850a060000000100000000000000f600", 0, 512},
		"block erase":             {sanitize(sanitizeBlock), "85070000120010427200450" + "06b00b400", 0, 0},
		"crypto scramble":         {sanitize(sanitizeCrypto), "8507000011001043700079007200b400", 0, 0},
		"overwrite, one pass":     {sanitize(sanitizeOverwrite), "85070000140011000057004f0000b400", 0, 0},
		"sanitize status":         {readSanitizeStatus(false), "850720000000000000000000" + "0000b400", 0, 0},
		"sanitize status, clears": {readSanitizeStatus(true), "85072000000001" + "00000000000000b400", 0, 0},
	} {
		if got := c.command; hex.EncodeToString(got.CDB) != c.cdb || len(got.In) != c.in || len(got.Out) != c.out || got.Timeout <= 0 {
			t.Errorf("%s: %x, in %d, out %d, expected %s", name, got.CDB, len(got.In), len(got.Out), c.cdb)
		}
	}
	data := eraseUnit(true, time.Hour).Out
	if binary.LittleEndian.Uint16(data) != 0b10 || !bytes.Equal(data[2:34], append([]byte(Password), make([]byte, 32-len(Password))...)) || !bytes.Equal(data[34:], make([]byte, 478)) {
		t.Errorf("the data of an enhanced erase is %x", data[:40])
	}
}

// identifyData returns IDENTIFY DEVICE data with the words.
func identifyData(words map[int]uint16) []byte {
	data := make([]byte, sectorBytes)
	for n, word := range words {
		binary.LittleEndian.PutUint16(data[2*n:], word)
	}
	return data
}

func TestTheMethodThatProvesMostComesFirst(t *testing.T) {
	const (
		block, crypto, over = hardware.MethodSanitizeBlock, hardware.MethodSanitizeCrypto, hardware.MethodSanitizeOverwrite
		enhanced, normal    = hardware.MethodSecureEraseEnhanced, hardware.MethodSecureErase
	)
	for name, c := range map[string]struct {
		words   map[int]uint16
		methods []hardware.EraseMethod
		err     error
	}{
		"everything":                         {map[int]uint16{59: 0xF000, 128: 0x21}, []hardware.EraseMethod{block, crypto, over, enhanced, normal}, nil},
		"security only":                      {map[int]uint16{128: 0x01}, []hardware.EraseMethod{normal}, nil},
		"operations without the feature set": {map[int]uint16{59: 0xE000, 128: 0x21}, []hardware.EraseMethod{enhanced, normal}, nil},
		"frozen, with sanitize":              {map[int]uint16{59: 0x9000, 128: 0x29}, []hardware.EraseMethod{block}, nil},
		"frozen, without":                    {map[int]uint16{128: 0x29}, nil, errFrozen},
	} {
		drive := &Drive{Send: func(command scsi.Command) error { copy(command.In, identifyData(c.words)); return nil }}
		if got, err := drive.Methods(); !slices.Equal(got, c.methods) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := (Capabilities{}).methods(); len(got) > 0 || err == nil {
		t.Errorf("a disk without any: %v, %v", got, err)
	}
}

func TestTheDisksEstimateIsRead(t *testing.T) {
	for word, expected := range map[uint16]time.Duration{0: 0, 1: 2 * time.Minute, 254: 508 * time.Minute, 0x8000 | 1000: 2000 * time.Minute} {
		if got := parseEraseTime(word); got != expected {
			t.Errorf("%#x: %s, expected %s", word, got, expected)
		}
	}
}

func TestZerosAfterATrimNeedAllThreeBits(t *testing.T) {
	for _, c := range []struct {
		words    map[int]uint16
		expected bool
	}{
		{map[int]uint16{69: 1<<14 | 1<<5, 169: 1}, true}, {map[int]uint16{69: 1 << 5, 169: 1}, false},
		{map[int]uint16{69: 1 << 14, 169: 1}, false}, {map[int]uint16{69: 1<<14 | 1<<5}, false},
	} {
		if got, err := parseIdentify(identifyData(c.words)); err != nil || got.ZerosAfterTrim != c.expected {
			t.Errorf("%v: %+v, %v", c.words, got, err)
		}
	}
}

func TestTheStateOfASanitizeIsRead(t *testing.T) {
	descriptor := func(status, failure byte, count uint16, lba uint16) []byte {
		return []byte{9, 12, 1, failure, byte(count >> 8), byte(count), 0, byte(lba), 0, byte(lba >> 8), 0, 0, 0, status}
	}
	for name, c := range map[string]struct {
		descriptor []byte
		expected   selferase.State
		isError    bool
	}{
		"never begun":       {descriptor(0x50, 0, 0, 0xFFFF), selferase.State{}, false},
		"has ended":         {descriptor(0x50, 0, 0x8000, 0xFFFF), selferase.State{}, false},
		"runs":              {descriptor(0x50, 0, 0x4000, 0x1234), selferase.State{IsRunning: true, Done: 0x1234}, false},
		"has failed":        {descriptor(0x51, 4, 0, 0x0001), selferase.State{HasFailed: true}, false},
		"is refused":        {descriptor(0x51, 4, 0, 0x0003), selferase.State{}, true},
		"a device fault":    {descriptor(0x70, 0, 0, 0x0000), selferase.State{}, true},
		"without registers": {nil, selferase.State{}, true},
	} {
		drive := &Drive{Send: func(command scsi.Command) error {
			if command.CDB[14] == cmdIdentify {
				copy(command.In, identifyData(map[int]uint16{59: 0xF000}))
				return nil
			}
			sense := append([]byte{0x72, 1, 0, 0x1D, 0, 0, 0, byte(len(c.descriptor))}, c.descriptor...)
			return &scsi.Error{Status: 2, Sense: sense}
		}}
		if got, err := drive.State(); got != c.expected || (err != nil) != c.isError {
			t.Errorf("%s: %+v, %v, expected %+v", name, got, err, c.expected)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(identifyData(map[int]uint16{59: 0xF000, 128: 0x21}))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _ := parseIdentify(data)
		if methods, err := c.methods(); len(methods) > 5 || len(methods) == 0 && err == nil {
			t.Errorf("%v, %v", methods, err)
		}
		if answered, isKnown := parseRegisters(data); isKnown {
			if state, err := answered.sanitizeState(); err == nil && state.Done >= selferase.Parts {
				t.Errorf("%+v", state)
			}
		}
	})
}

package nvme

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/selferase"
)

func TestTheCommandsHaveTheBytesOfTheSpecification(t *testing.T) {
	layout, err := parseNamespace(namespaceData(0b0_01_1_0010, 0b0000_1_010))
	if err != nil || layout != (namespaceLayout{formatIndex: 18, isExtended: true, protection: 2, isProtectionFirst: true}) {
		t.Fatalf("%+v, %v", layout, err)
	}
	for name, c := range map[string]struct {
		command       Command
		opcode        uint8
		namespace     uint32
		cdw10         uint32
		responseBytes int
	}{
		"identify controller":        {identify(cnsController, 0), 0x06, 0, 1, 4096},
		"sanitize status":            {sanitizeLog(), 0x02, 0xFFFFFFFF, 0x007F0081, 512},
		"block erase":                {sanitize(blockErase), 0x84, 0, 0b1010, 0},
		"crypto erase":               {sanitize(cryptoErase), 0x84, 0, 0b1100, 0},
		"leave a failure":            {sanitize(exitFailure), 0x84, 0, 0b0001, 0},
		"format":                     {format(3, namespaceLayout{formatIndex: 1}, eraseUserData), 0x80, 3, 0x201, 0},
		"format keeps the layout":    {format(1, layout, eraseKey), 0x80, 1, 1<<12 | 2<<9 | 1<<8 | 2<<5 | 1<<4 | 2, 0},
		"identify active namespaces": {identify(cnsNamespaces, 0), 0x06, 0, 2, 4096},
	} {
		if got := c.command; got.Opcode != c.opcode || got.Namespace != c.namespace || got.CDW10 != c.cdw10 || len(got.Data) != c.responseBytes || got.Timeout <= 0 {
			t.Errorf("%s: %+v, expected %+v", name, got, c)
		}
	}
}

func namespaceData(flbas, dps byte) []byte {
	data := make([]byte, identifyBytes)
	data[26], data[29] = flbas, dps
	return data
}

func controllerData(cmic byte, oacs uint16, sanicap uint32, fna byte) []byte {
	data := make([]byte, identifyBytes)
	data[76], data[524] = cmic, fna
	binary.LittleEndian.PutUint16(data[256:], oacs)
	binary.LittleEndian.PutUint32(data[328:], sanicap)
	return data
}

func TestTheMethodThatProvesMostComesFirstAndNoneErasesAnotherNamespace(t *testing.T) {
	const block, crypto, formatCrypto, plain = hardware.MethodSanitizeBlock, hardware.MethodSanitizeCrypto, hardware.MethodFormatCrypto, hardware.MethodFormat
	for name, c := range map[string]struct {
		controller []byte
		namespaces int
		expected   []hardware.EraseMethod
	}{
		"everything":                           {controllerData(0, 2, 3, 0b111), 1, []hardware.EraseMethod{block, crypto, formatCrypto, plain}},
		"crypto sanitize only":                 {controllerData(0, 0, 1, 0), 1, []hardware.EraseMethod{crypto}},
		"overwrite sanitize only":              {controllerData(0, 0, 4, 0), 1, nil},
		"format only, as QEMU":                 {controllerData(0, 2, 0, 0), 1, []hardware.EraseMethod{plain}},
		"nothing":                              {controllerData(0, 0, 0, 0b111), 1, nil},
		"two namespaces, format for each":      {controllerData(0, 2, 3, 0b100), 2, []hardware.EraseMethod{formatCrypto, plain}},
		"two namespaces, format for all":       {controllerData(0, 2, 3, 0b001), 2, nil},
		"two namespaces, erase for all":        {controllerData(0, 2, 3, 0b010), 2, nil},
		"a second controller, format for each": {controllerData(2, 2, 3, 0), 1, []hardware.EraseMethod{plain}},
		"namespaces cannot be listed":          {controllerData(0, 2, 3, 0b111), -1, nil},
	} {
		drive := &Drive{Namespace: 1, Admin: func(command Command) error {
			switch {
			case command.CDW10 == cnsController:
				copy(command.Data, c.controller)
			case c.namespaces < 0:
				return errors.New("status 0x2")
			default:
				for i := range c.namespaces {
					binary.LittleEndian.PutUint32(command.Data[4*i:], uint32(i+1))
				}
			}
			return nil
		}}
		if got, err := drive.Methods(); err != nil || !slices.Equal(got, c.expected) {
			t.Errorf("%s: %v, %v, expected %v", name, got, err, c.expected)
		}
	}
}

func TestTheStateOfASanitizeIsRead(t *testing.T) {
	for status, expected := range map[uint16]selferase.State{
		0: {}, 1: {}, 2: {IsRunning: true, Done: 0x8000}, 3: {HasFailed: true}, 4: {}, 0x102: {IsRunning: true, Done: 0x8000},
	} {
		data := make([]byte, logBytes)
		binary.LittleEndian.PutUint16(data, 0x8000)
		binary.LittleEndian.PutUint16(data[2:], status)
		if got, err := parseSanitizeLog(data); err != nil || got != expected {
			t.Errorf("status %#x: %+v, %v, expected %+v", status, got, err, expected)
		}
	}
}

// estimating is a disk with these SANICAP and the Sanitize Status log page with estimates of 100, 200 and 300 seconds for overwrite, block erase and crypto
// erase, unless override is set for all.
func estimating(sanicap, override uint32) *Drive {
	return &Drive{Namespace: 1, Admin: func(command Command) error {
		switch {
		case command.Opcode == opGetLogPage && sanicap == 0:
			return errors.New("status 0x9: the disk has no such log page")
		case command.Opcode == opGetLogPage:
			for i, seconds := range []uint32{100, 200, 300} {
				binary.LittleEndian.PutUint32(command.Data[8+4*i:], cmp.Or(override, seconds))
			}
		case command.CDW10 == cnsController:
			copy(command.Data, controllerData(0, 2, sanicap, 0))
		}
		return nil
	}}
}

func TestTheDisksEstimateIsThatOfTheMethod(t *testing.T) {
	const block, crypto = hardware.MethodSanitizeBlock, hardware.MethodSanitizeCrypto
	for name, c := range map[string]struct {
		drive  *Drive
		method hardware.EraseMethod
		want   time.Duration
	}{
		"block erase":                  {estimating(3, 0), block, 200 * time.Second},
		"crypto erase":                 {estimating(3, 0), crypto, 300 * time.Second},
		"the disk does not say":        {estimating(3, 0xFFFFFFFF), block, 0},
		"a day and more":               {estimating(3, 100_000), crypto, 100_000 * time.Second},
		"a format ends when it began":  {estimating(3, 0), hardware.MethodFormat, 0},
		"a disk without sanitize":      {estimating(0, 0), block, 0},
		"a controller that is silent":  {&Drive{Admin: func(Command) error { return errors.New("no answer") }}, block, 0},
		"the overwrite has no meaning": {estimating(4, 0), block, 0},
	} {
		if got := c.drive.Estimate(c.method); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	if got := parseEstimate(make([]byte, 15), block); got != 0 {
		t.Errorf("a log page that is cut off: %s", got)
	}
}

// Without the check of both: a disk that keeps the old data of blocks, or ignores the request, counts as erased by a discard.
func TestADiscardProvesZerosOnlyWhereTheDiskSaysSo(t *testing.T) {
	const deallocates = 1 << 2
	for name, c := range map[string]struct {
		oncs   uint16
		dlfeat byte
		want   bool
	}{
		"deallocated blocks read as zeros":               {deallocates, 0b001, true},
		"and more features are there":                    {deallocates | 0b1001, 0b11_001, true},
		"the value is not said":                          {deallocates, 0b000, false},
		"deallocated blocks read as ones":                {deallocates, 0b010, false},
		"a reserved value":                               {deallocates, 0b011, false},
		"write zeroes deallocates, the value is unknown": {deallocates, 0b01_000, false},
		"the controller deallocates nothing":             {0b1, 0b001, false},
	} {
		drive := &Drive{Namespace: 7, Admin: func(command Command) error {
			if command.CDW10 == cnsController {
				binary.LittleEndian.PutUint16(command.Data[520:], c.oncs)
			} else if command.Namespace == 7 {
				command.Data[33] = c.dlfeat
			}
			return nil
		}}
		if got := drive.HasZerosAfterDiscard(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (&Drive{Admin: func(Command) error { return errors.New("no answer") }}).HasZerosAfterDiscard() {
		t.Error("a controller that does not answer proves zeros")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(controllerData(0, 2, 3, 7))
	f.Add(bytes.Repeat([]byte{0xFF}, identifyBytes))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _ := parseController(data)
		layout, _ := parseNamespace(data)
		_, _ = parseSanitizeLog(data)
		if len(c.Methods()) > 4 || countNamespaces(data) > len(data)/4 {
			t.Error("more than there can be")
		}
		// Whatever the controller says, the command sets no reserved bit of dword 10 (14 to 31).
		if command := format(1, layout, eraseKey); command.CDW10>>14 != 0 {
			t.Errorf("%#x", command.CDW10)
		}
	})
}

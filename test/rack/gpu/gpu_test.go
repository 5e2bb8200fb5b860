package gpu

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestALayoutFitsOnlyWhereTheGuideHasAPlaceForIt(t *testing.T) {
	const d, me = "1g.20gb", "1g.10gb+me"
	slots := map[string]string{"1": "1g.10gb", "2": "2g.20gb", "3": "3g.40gb", "4": "4g.40gb", "7": "7g.80gb", "d": d, "m": me}
	for layout, fits := range map[string]bool{
		"43": true, "33": true, "421": true, "4111": true, "322": true, "3211": true, "31111": true, "2221": true, "1111111": true, "dddd": true,
		"ddd1": true, "4dd": true, "3dd": true, "m111111": true, "7": true, "": true,
		"331": false, "341": false, "422": false, "71": false, "dddd1": false, "11111111": false, "mm": false, "44": false,
	} {
		wanted := map[string]int{}
		for _, r := range layout {
			wanted[slots[string(r)]]++
		}
		placed, err := models["2330"].Place(wanted)
		if (err == nil) != fits || err != nil && !errors.Is(err, errLayout) {
			t.Errorf("%s: %v", layout, err)
		}
		taken := uint(0)
		for _, instance := range placed {
			slots := (uint(1)<<instance.Profile.Slots - 1) << instance.Start
			if taken&slots != 0 || slots >= 1<<memorySlots {
				t.Errorf("%s: %+v", layout, placed)
			}
			taken |= slots
		}
		if err == nil && len(placed) != len(layout) {
			t.Errorf("%s: %d instances", layout, len(placed))
		}
	}
	if _, err := models["2335"].Place(map[string]int{"1g.10gb": 7}); err == nil || !strings.Contains(err.Error(), "1g.18gb") {
		t.Errorf("an H200 cut like an H100: %v", err)
	}
}

func discover(t *testing.T, id, boot string, rom InfoROM) []*GPU {
	t.Helper()
	gpus, err := Discover([]hardware.PCIDevice{
		{Address: "0000:12:00.0", VendorID: "10de", DeviceID: id, Class: "030200"}, {VendorID: "10de", DeviceID: "22a3", Class: "068000"},
		{Address: "0000:15:00.0", VendorID: "10de", DeviceID: id, Class: "030200"}, {VendorID: "1a03", DeviceID: "2000", Class: "030000"},
	}, "server", boot, rom)
	if err != nil || len(gpus) != 2 {
		t.Fatalf("%d GPUs: %v", len(gpus), err)
	}
	return gpus
}

func TestAmpereKeepsItsMIGModeAndNothingElseIsKept(t *testing.T) {
	for id, kept := range map[string]bool{"20b2": true, "20b0": true, "2330": false, "2335": false} {
		rom := InfoROM(filepath.Join(t.TempDir(), "inforom"))
		first := discover(t, id, "1", rom)[0]
		if first.MIG {
			t.Errorf("%s comes in MIG mode", id)
		}
		whole := map[string]int{first.Model.Profiles[0].Name: 7}
		if err := first.Partition(whole); err == nil {
			t.Errorf("%s is cut without MIG mode", id)
		}
		if err := errors.Join(first.SetMIG(true), first.Partition(whole)); err != nil || !reflect.DeepEqual(first.Layout(), whole) {
			t.Fatalf("%s: %v, %v", id, first.Layout(), err)
		}
		again := discover(t, id, "2", rom)
		if again[0].MIG != kept || len(again[0].Instances) != 0 || again[1].MIG || again[0].UUID != first.UUID || again[0].UUID == again[1].UUID {
			t.Errorf("%s after a reboot: %+v", id, again[0])
		}
		if err := errors.Join(again[0].SetMIG(true), again[0].Partition(whole)); err != nil || again[0].Instances[0].UUID == first.Instances[0].UUID {
			t.Errorf("%s: an instance has the UUID of one that is gone (%v)", id, err)
		}
		if err := again[0].SetMIG(false); err != nil || discover(t, id, "3", rom)[0].MIG {
			t.Errorf("%s is in MIG mode after it was turned off (%v)", id, err)
		}
	}
}

func TestAGPUInUseChangesNothing(t *testing.T) {
	g := discover(t, "2330", "1", "")[0]
	g.InUse = true
	if err := g.SetMIG(true); !errors.Is(err, errInUse) || g.MIG {
		t.Errorf("error %v", err)
	}
	if err := g.SetMIG(false); err != nil {
		t.Errorf("a mode that it has already: %v", err)
	}
}

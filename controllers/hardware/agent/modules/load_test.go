package modules_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/modules"
)

// disks is a ramdisk with the chain of sd_mod as Debian's kernel has it, and a server with a SCSI disk behind a controller.
func disks() fstest.MapFS {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"lib/modules/6.1/modules.dep": text(`kernel/drivers/scsi/sd_mod.ko: kernel/block/t10-pi.ko
kernel/block/t10-pi.ko: kernel/lib/crc-t10dif.ko
kernel/lib/crc-t10dif.ko:
kernel/arch/x86/crypto/crct10dif-pclmul.ko:
kernel/drivers/scsi/mpt3sas.ko:
`),
		"lib/modules/6.1/modules.alias": text(`alias scsi:t-0x00* sd_mod
alias crct10dif crct10dif-pclmul
alias pci:v00001000d* mpt3sas
`),
		"lib/modules/6.1/modules.softdep":        text("softdep crc-t10dif pre: crct10dif\n"),
		"sys/devices/pci0/0000:01:00.0/modalias": text("pci:v00001000d00000097sv*\n"),
	}
}

func newLoader(t *testing.T, root fs.FS, insert func(file string) error) *modules.Loader {
	t.Helper()
	index, err := modules.ReadIndex(root, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	return &modules.Loader{Root: root, Index: index, Insert: insert, Log: slog.New(slog.DiscardHandler)}
}

func TestWhatADeviceNeedsIsLoadedFirstAndDevicesBehindItAfterIt(t *testing.T) {
	root := disks()
	var inserted []string
	loader := newLoader(t, root, func(file string) error {
		inserted = append(inserted, file)
		if file == "lib/modules/6.1/kernel/drivers/scsi/mpt3sas.ko" {
			root["sys/devices/pci0/0000:01:00.0/host0/target0/modalias"] = &fstest.MapFile{Data: []byte("scsi:t-0x00\n")}
		}
		return nil
	})
	if n := loader.LoadForDevices(); n != 5 {
		t.Errorf("%d modules were loaded", n)
	}
	want := []string{"drivers/scsi/mpt3sas.ko", "arch/x86/crypto/crct10dif-pclmul.ko", "lib/crc-t10dif.ko", "block/t10-pi.ko", "drivers/scsi/sd_mod.ko"}
	for i := range want {
		want[i] = "lib/modules/6.1/kernel/" + want[i]
	}
	if !slices.Equal(inserted, want) {
		t.Errorf("loaded %v, expected %v", inserted, want)
	}
	if n := loader.LoadForDevices(); n != 0 {
		t.Errorf("a second look loads %d modules again", n)
	}
}

func TestADiskIsThereWithoutTheFasterChecksum(t *testing.T) {
	var inserted []string
	loader := newLoader(t, disks(), func(file string) error {
		if file == "lib/modules/6.1/kernel/arch/x86/crypto/crct10dif-pclmul.ko" {
			return errors.New("no such device")
		}
		inserted = append(inserted, file)
		return nil
	})
	if err := loader.LoadNamed("sd_mod"); err != nil {
		t.Error(err)
	}
	if want := "lib/modules/6.1/kernel/drivers/scsi/sd_mod.ko"; !slices.Contains(inserted, want) {
		t.Errorf("loaded %v without %s", inserted, want)
	}
}

func TestWhatAModuleAsksForAfterItIsLoadedAfterIt(t *testing.T) {
	root := disks()
	root["lib/modules/6.1/modules.softdep"] = &fstest.MapFile{Data: []byte("softdep mpt3sas pre: post: scsi:t-0x00 absent\nsoftdep sd_mod post: mpt3sas\n")}
	var inserted []string
	loader := newLoader(t, root, func(file string) error {
		inserted = append(inserted, path.Base(file))
		return nil
	})
	if err := loader.LoadNamed("mpt3sas"); err != nil {
		t.Error(err)
	}
	if want := []string{"mpt3sas.ko", "crc-t10dif.ko", "t10-pi.ko", "sd_mod.ko"}; !slices.Equal(inserted, want) {
		t.Errorf("loaded %v, expected %v", inserted, want)
	}
	loader = newLoader(t, root, func(file string) error {
		if path.Base(file) == "sd_mod.ko" {
			return errors.New("no such device")
		}
		return nil
	})
	if err := loader.LoadNamed("mpt3sas"); err != nil {
		t.Errorf("the module is loaded, and only what follows it is not: %v", err)
	}
}

func TestHyphensAndUnderscoresAreTheSameInAnAlias(t *testing.T) {
	root := disks()
	root["lib/modules/6.1/modules.alias"] = &fstest.MapFile{Data: []byte("alias net-pf_17 t10-pi\nalias x-[0-3]* sd_mod\n")}
	index, err := modules.ReadIndex(root, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	for alias, want := range map[string][]string{"net_pf-17": {"t10_pi"}, "x_2": {"sd_mod"}, "x-2": {"sd_mod"}, "x-4": nil} {
		if got := index.Serving(alias); !slices.Equal(got, want) {
			t.Errorf("%s is served by %v, expected %v", alias, got, want)
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("a.ko: b.ko", "alias x-[a-b]* a", "softdep a pre: b post: a", "x-a")
	f.Fuzz(func(t *testing.T, dep, alias, soft, wanted string) {
		text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
		loader := newLoader(t, fstest.MapFS{"lib/modules/6.1/modules.dep": text(dep), "lib/modules/6.1/modules.alias": text(alias),
			"lib/modules/6.1/modules.softdep": text(soft)}, func(string) error { return nil })
		_ = loader.LoadNamed(wanted) // It must end, whatever it finds.
	})
}

func TestAModuleThatIsNotThereIsNamed(t *testing.T) {
	loader := newLoader(t, disks(), func(string) error { return fs.ErrExist })
	if err := loader.LoadNamed("scsi:t-0x00"); err != nil {
		t.Errorf("a module that is loaded already: %v", err)
	}
	if err := loader.LoadNamed("nouveau"); err == nil {
		t.Error("a module that the ramdisk lacks is no error")
	}
	if _, err := modules.ReadIndex(disks(), "6.12"); err == nil {
		t.Error("modules of another kernel are no error")
	}
}

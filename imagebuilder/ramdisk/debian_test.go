package ramdisk_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/modules"
	"github.com/ingot-dev/ingot/imagebuilder/deb"
	"github.com/ingot-dev/ingot/imagebuilder/kernel"
	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
	"github.com/ingot-dev/ingot/test/require"
)

// debian returns the kernel of Debian's package that `make boot` downloads.
func debian(t *testing.T) *kernel.Kernel {
	t.Helper()
	if testing.Short() {
		t.Skip("unpacks a distribution's kernel")
	}
	found, err := filepath.Glob("../../bin/kernel/linux-image-*.deb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		require.Missing(t, "bin/kernel/linux-image-*.deb", "make boot")
	}
	return unpacked(t, found[0])
}

func unpacked(t *testing.T, packagePath string) *kernel.Kernel {
	t.Helper()
	dir := t.TempDir()
	isNeeded := func(name string) bool {
		return !strings.Contains(name, "/drivers/gpu/") && !strings.Contains(name, "/drivers/media/") && !strings.Contains(name, "/kernel/sound/")
	}
	if err := deb.UnpackFile(packagePath, dir, isNeeded); err != nil {
		t.Fatal(err)
	}
	k, err := kernel.Read(os.DirFS(dir), "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// allFirmware is a tree with every firmware file that a module of the kernel names.
func allFirmware(k *kernel.Kernel) fstest.MapFS {
	out := fstest.MapFS{}
	for _, m := range k.Modules {
		for _, name := range m.Firmware {
			out["lib/firmware/"+strings.ReplaceAll(name, "*", "any")] = &fstest.MapFile{Data: []byte(name)}
		}
	}
	return out
}

func TestDebiansKernelServesEveryDeviceThatIsClaimed(t *testing.T) {
	k := debian(t)
	files := map[string][]byte{}
	report, err := ramdisk.AddModules(files, k, ramdisk.Firmware{allFirmware(k)})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.MissingFirmware) > 0 {
		t.Errorf("a firmware tree with everything misses %v", report.MissingFirmware)
	}
	without, err := ramdisk.AddModules(map[string][]byte{}, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	initrd := fstest.MapFS{}
	for name, content := range files {
		initrd[name] = &fstest.MapFile{Data: content}
	}
	index, err := modules.ReadIndex(initrd, k.Release)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("claims", func(t *testing.T) { checkClaims(t, k, initrd, index, without) })
	t.Run("depmod", func(t *testing.T) { compareWithDepmod(t, k, initrd) })
}

// checkClaims resolves the modalias as the agent does, and looks for each module, what it depends on and its firmware in the ramdisk.
func checkClaims(t *testing.T, k *kernel.Kernel, initrd fstest.MapFS, index *modules.Index, without ramdisk.Report) {
	below := "lib/modules/" + k.Release + "/"
	for _, claim := range claims {
		if serving := index.Serving(claim.modalias); !slices.Contains(serving, claim.driver) {
			if !k.IsServedByImage(claim.modalias) && k.Builtin[claim.driver].Name == "" {
				t.Errorf("%s (%s): expected %s, served by %v", claim.device, claim.modalias, claim.driver, serving)
			}
			continue
		}
		order := index.Order(claim.driver)
		for _, needed := range append(k.Needed(claim.driver), k.Modules[claim.driver]) {
			if !slices.Contains(order, needed.Name) || initrd[below+needed.Path] == nil {
				t.Errorf("%s: %s needs %s, which is not loaded: %v", claim.device, claim.driver, needed.Name, order)
			}
			for _, name := range needed.Firmware {
				if initrd["lib/firmware/"+strings.ReplaceAll(name, "*", "any")] == nil {
					t.Errorf("%s: the firmware %s of %s is not in the ramdisk", claim.device, name, needed.Name)
				}
				if !slices.Contains(without.MissingFirmware[needed.Name], name) || ramdisk.FirmwarePackage(name) == "" {
					t.Errorf("%s: nobody says which package brings %s of %s", claim.device, name, needed.Name)
				}
			}
		}
	}
}

// compareWithDepmod writes the modules of the ramdisk to a directory and compares our indexes with those that depmod makes of it.
func compareWithDepmod(t *testing.T, k *kernel.Kernel, initrd fstest.MapFS) {
	depmod := require.Tool(t, "depmod", "apt-get install kmod")
	dir := t.TempDir()
	below := "lib/modules/" + k.Release + "/"
	ours := map[string]string{}
	for name, file := range initrd {
		if !strings.HasPrefix(name, below) {
			continue
		}
		if base := filepath.Base(name); strings.HasPrefix(base, "modules.") {
			ours[base] = string(file.Data)
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), depmod, "-b", dir, k.Release).CombinedOutput(); err != nil {
		t.Fatalf("depmod: %v\n%s", err, out)
	}
	for _, name := range []string{"modules.dep", "modules.alias", "modules.softdep"} {
		theirs, err := fs.ReadFile(os.DirFS(dir), below+name)
		if err != nil {
			t.Fatal(err)
		}
		want, got := normalizedIndex(string(theirs)), normalizedIndex(ours[name])
		for _, difference := range slices.Concat(onlyIn("depmod's", want, got), onlyIn("ours", got, want)) {
			t.Errorf("%s: %s", name, difference)
		}
	}
}

// normalizedIndex returns the lines without comments. The files that a module depends on are sorted: depmod's order is one of several that are right; that
// ours is right, TestNeededModulesComeBeforeWhatTheyNeedThemselves shows. Two lines of softdep for one module are one in ours.
func normalizedIndex(text string) []string {
	var out []string
	soft := map[string][]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "softdep":
			kind := "pre:"
			for _, word := range fields[2:] {
				if word == "pre:" || word == "post:" {
					kind = word
				} else {
					soft[fields[1]] = append(soft[fields[1]], kind+word)
				}
			}
		case strings.HasSuffix(fields[0], ":"):
			slices.Sort(fields[1:])
			out = append(out, strings.Join(fields, " "))
		default:
			out = append(out, strings.Join(fields, " "))
		}
	}
	for name, wanted := range soft {
		slices.Sort(wanted)
		out = append(out, fmt.Sprint(name, wanted))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// onlyIn returns the first lines that only the one list has.
func onlyIn(whose string, one, other []string) []string {
	var out []string
	for _, line := range one {
		if _, found := slices.BinarySearch(other, line); !found && len(out) < 10 {
			out = append(out, whose+" only: "+line)
		}
	}
	return out
}

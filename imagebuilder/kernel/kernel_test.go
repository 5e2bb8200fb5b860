package kernel_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ingot-dev/ingot/imagebuilder/kernel"
	"github.com/ingot-dev/ingot/test/kmodule"
)

func module(entries ...string) []byte { return kmodule.New(entries...) }

// images of kernels, as far as their headers go.
func imageAMD64() []byte {
	out := make([]byte, 0x240)
	copy(out[0x202:], "HdrS")
	out[0x236] = 1
	return out
}

func imageARM64() []byte {
	out := make([]byte, 64)
	copy(out[56:], "ARM\x64")
	return out
}

func efiProgram(machine uint16) []byte {
	out := make([]byte, 0x80)
	copy(out, "MZ\x00\x00zimg")
	out[0x3c] = 0x40
	copy(out[0x40:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(out[0x44:], machine)
	return out
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // A buffer takes everything.
	_ = w.Close()
	return b.Bytes()
}

func file(content []byte) *fstest.MapFile { return &fstest.MapFile{Data: content} }

// tree is a kernel with its modules compressed in every way.
func tree(t *testing.T) fstest.MapFS {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var x bytes.Buffer
	w, err := xz.NewWriter(&x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(module("alias=pci:v00001000d*", "depends=scsi-core,raid_class", "firmware=card/*.fw")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const below = "lib/modules/6.1/"
	return fstest.MapFS{
		"boot/vmlinuz-6.1":                     file(imageAMD64()),
		"boot/config-6.1":                      file([]byte("CONFIG_64BIT=y\nCONFIG_RD_ZSTD=y\n")),
		below + "modules.builtin":              file([]byte("kernel/drivers/scsi/scsi-core.ko\n")),
		below + "modules.builtin.modinfo":      file([]byte("scsi_core.alias=scsi:t-*\x00scsi_core.firmware=scsi.fw\x00")),
		below + "kernel/drivers/scsi/a.ko.xz":  file(x.Bytes()),
		below + "kernel/drivers/raid-class.ko": file(module("softdep=pre: crypto-sum post: late")),
		below + "kernel/crypto/sum.ko.zst":     file(z.EncodeAll(module("alias=crypto-sum", "depends="), nil)),
		below + "kernel/late.ko.gz":            file(gzipped(module("license=GPL"))),
	}
}

func read(t *testing.T, tree fstest.MapFS) *kernel.Kernel {
	t.Helper()
	k, err := kernel.Read(tree, "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestADeviceLeadsToItsModuleAndAllThatItNeeds(t *testing.T) {
	k := read(t, tree(t))
	serving := k.Serving("pci:v00001000d00000097sv0")
	if !slices.Equal(serving, []string{"a"}) {
		t.Fatalf("served by %v", serving)
	}
	names, err := k.Closure(serving)
	if err != nil || !slices.Equal(names, []string{"a", "late", "raid_class", "sum"}) {
		t.Errorf("needs %v, %v", names, err)
	}
	if k.Release != "6.1" || k.Architecture != "amd64" || !slices.Equal(k.Modules["a"].Firmware, []string{"card/*.fw"}) {
		t.Errorf("read %+v", k)
	}
	if !k.IsServedByImage("scsi:t-0x00") || k.IsServedByImage("pci:v00001000") || !slices.Equal(k.Builtin["scsi_core"].Firmware, []string{"scsi.fw"}) {
		t.Errorf("the image has %+v", k.Builtin)
	}
}

func TestWhatThePackageDoesNotSayIsBuiltInCountsAsBuiltIn(t *testing.T) {
	files := tree(t)
	delete(files, "lib/modules/6.1/modules.builtin")
	k := read(t, files)
	if names, err := k.Closure([]string{"a"}); err != nil || !k.BuiltinUnknown || len(names) != 4 {
		t.Errorf("needs %v, %v", names, err)
	}
}

func TestAPackageThatIsMissingIsAskedFor(t *testing.T) {
	files := tree(t)
	delete(files, "lib/modules/6.1/kernel/drivers/raid-class.ko")
	if _, err := read(t, files).Closure([]string{"a"}); err == nil || !strings.Contains(err.Error(), "raid_class") || !strings.Contains(err.Error(), "linux-modules-extra") {
		t.Errorf("%v", err)
	}
}

func TestAVendorsDriverReplacesTheKernelsOwn(t *testing.T) {
	files := tree(t)
	for _, path := range []string{"updates/dkms/a.ko", "weak-updates/late.ko"} {
		files["lib/modules/6.1/"+path] = file(module("alias=pci:v00002000d*"))
	}
	k := read(t, files)
	if m := k.Modules["a"]; m.Path != "updates/dkms/a.ko" || m.Replaces != "kernel/drivers/scsi/a.ko" {
		t.Errorf("a is %+v", m)
	}
	if m := k.Modules["late"]; m.Path != "kernel/late.ko" {
		t.Errorf("late is %+v", m)
	}
}

func TestNeededModulesComeBeforeWhatTheyNeedThemselves(t *testing.T) {
	files := tree(t)
	const below = "lib/modules/6.1/kernel/"
	files[below+"top.ko"] = file(module("depends=base,middle"))
	files[below+"middle.ko"] = file(module("depends=base,scsi_core"))
	files[below+"base.ko"] = file(module("depends="))
	var names []string
	for _, m := range read(t, files).Needed("top") {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, []string{"middle", "base"}) {
		t.Errorf("needs %v", names)
	}
}

func TestTheImageSaysItsArchitecture(t *testing.T) {
	for name, c := range map[string]struct {
		image []byte
		want  string
	}{
		"bzImage":           {imageAMD64(), "amd64"},
		"Image":             {imageARM64(), "arm64"},
		"Image.gz":          {gzipped(imageARM64()), "arm64"},
		"zboot":             {efiProgram(0xaa64), "arm64"},
		"EFI program":       {efiProgram(0x8664), "amd64"},
		"32 bits":           {slices.Concat(imageAMD64()[:0x236], make([]byte, 10)), ""},
		"another processor": {efiProgram(0x5064), ""},
		"a script":          {[]byte("#!/bin/sh\n"), ""},
		"a lying header":    {append([]byte("MZ"), bytes.Repeat([]byte{0xff}, 80)...), ""},
		"a broken gzip":     {[]byte("\x1f\x8b\x08"), ""},
		"nothing":           {nil, ""},
	} {
		files := tree(t)
		files["boot/vmlinuz-6.1"] = file(c.image)
		k, err := kernel.Read(files, "")
		if c.want == "" && err == nil || c.want != "" && (err != nil || k.Architecture != c.want) {
			t.Errorf("%s: %v, %+v", name, err, k)
		}
		if name == "Image.gz" && !bytes.Equal(k.Image(), imageARM64()) {
			t.Error("the image stays compressed: firmware cannot start it")
		}
	}
}

func TestAKernelThatCannotBeUsedIsRefused(t *testing.T) {
	for want, change := range map[string]func(fstest.MapFS){
		"CONFIG_RD_ZSTD":  func(f fstest.MapFS) { f["boot/config-6.1"] = file([]byte("# CONFIG_RD_ZSTD is not set\n")) },
		"has no image":    func(f fstest.MapFS) { delete(f, "boot/vmlinuz-6.1") },
		"several kernels": func(f fstest.MapFS) { f["lib/modules/6.2/kernel/a.ko"] = file(nil) },
		"without .modinfo": func(f fstest.MapFS) {
			f["lib/modules/6.1/kernel/a.ko"] = file(bytes.Replace(module(), []byte(".modinfo"), []byte(".another"), 1))
		},
		"a kernel module":      func(f fstest.MapFS) { f["lib/modules/6.1/kernel/a.ko"] = file([]byte("text")) },
		"lib/modules/6.1/kern": func(f fstest.MapFS) { f["lib/modules/6.1/kernel/a.ko.zst"] = file([]byte("text")) },
	} {
		files := tree(t)
		change(files)
		if _, err := kernel.Read(files, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, seen %v", want, err)
		}
	}
	if _, err := kernel.Read(tree(t), "6.12"); err == nil {
		t.Error("another release was found")
	}
}

func FuzzModule(f *testing.F) {
	f.Add(module("alias=pci:v*", "depends=a,b", "softdep=pre: a post: b"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, content []byte) {
		files := fstest.MapFS{"boot/vmlinuz-6.1": file(imageAMD64()), "lib/modules/6.1/kernel/a.ko": file(content)}
		if k, err := kernel.Read(files, ""); err == nil && k.Modules["a"].Name != "a" {
			t.Errorf("read %+v", k.Modules)
		}
	})
}

func FuzzImage(f *testing.F) {
	for _, image := range [][]byte{imageAMD64(), imageARM64(), gzipped(imageARM64()), efiProgram(0xaa64)} {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		files := fstest.MapFS{"boot/vmlinuz-6.1": file(content), "lib/modules/6.1/kernel/a.ko": file(module())}
		if k, err := kernel.Read(files, ""); err == nil && k.Architecture != "amd64" && k.Architecture != "arm64" {
			t.Errorf("architecture %q", k.Architecture)
		}
	})
}

func FuzzAlias(f *testing.F) {
	f.Add("pci:v*d[0-9a-f]*", "pci:v1d5")
	f.Add("a[", "a-[")
	f.Fuzz(func(t *testing.T, pattern, alias string) {
		if strings.ContainsAny(pattern+alias, "\x00") {
			return
		}
		files := fstest.MapFS{"boot/vmlinuz-6.1": file(imageAMD64()), "lib/modules/6.1/kernel/mod.ko": file(module("alias=" + pattern))}
		k, err := kernel.Read(files, "")
		if err != nil {
			t.Fatal(err)
		}
		k.Serving(alias)
		once := kernel.NormalizeAlias(alias)
		if len(once) != len(alias) {
			t.Errorf("%q became %q", alias, once)
		}
	})
}

// RHEL's packages have the image beside the modules, below /usr/lib, and modules as .ko.xz. Ubuntu's have it in /boot, and modules as .ko.zst.
func TestTheTreesOfOtherDistributionsAreRead(t *testing.T) {
	rhel, ubuntu := fstest.MapFS{}, fstest.MapFS{}
	for name, f := range tree(t) {
		rest, isModule := strings.CutPrefix(name, "lib/modules/6.1/")
		switch {
		case isModule:
			rhel["usr/lib/modules/5.14.0-427.el9.x86_64/"+rest] = f
			ubuntu["usr/lib/modules/6.8.0-45-generic/"+rest] = f
		case strings.HasPrefix(name, "boot/config-"):
			rhel["usr/lib/modules/5.14.0-427.el9.x86_64/config"] = f
			ubuntu["boot/config-6.8.0-45-generic"] = f
		default:
			rhel["usr/lib/modules/5.14.0-427.el9.x86_64/vmlinuz"] = f
			ubuntu["boot/vmlinuz-6.8.0-45-generic"] = f
		}
	}
	for release, files := range map[string]fstest.MapFS{"5.14.0-427.el9.x86_64": rhel, "6.8.0-45-generic": ubuntu} {
		k := read(t, files)
		if k.Release != release || k.Architecture != "amd64" || !bytes.Equal(k.Image(), imageAMD64()) {
			t.Errorf("%s: read as %s for %s", release, k.Release, k.Architecture)
		}
		needed, err := k.Closure(k.Serving("pci:v00001000d00000097sv0sd0bc01sc07i00"))
		if err != nil || !slices.Equal(needed, []string{"a", "late", "raid_class", "sum"}) {
			t.Errorf("%s: the device needs %v, %v", release, needed, err)
		}
	}
}

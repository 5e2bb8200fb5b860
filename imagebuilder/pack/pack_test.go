package pack_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/ext4"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/test/rack/machineos"
)

const manifest = `{
  "kernelArguments": ["modprobe.blacklist=nouveau"],
  "software": {"gpuDriver": {"vendor": "nvidia", "version": "550.163.01", "kernelModule": "Open"}, "containerd": "2.2.0", "kubelet": "1.37.0"}
}`

// system writes a small installed system and gives its directory. Later entries replace or, when empty, remove earlier ones.
func system(t *testing.T, changes map[string]string) string {
	t.Helper()
	files := map[string]string{
		"usr/lib/os-release":                               "ID=debian\nVERSION_ID=\"13\"\n",
		recipe.ManifestPath:                                manifest,
		"boot/efi/EFI/BOOT/BOOTX64.EFI":                    "loader",
		"boot/efi/EFI/debian/grub.cfg":                     "configfile",
		"usr/lib/modules/6.12.107+deb13-amd64/modules.dep": "none",
		"etc/hostname":                                     "image\n",
		"usr/bin/tool":                                     strings.Repeat("program", 100000),
	}
	for name, text := range changes {
		files[name] = text
	}
	dir := t.TempDir()
	for name, text := range files {
		if text == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"lib": "usr/lib", "etc/os-release": "/usr/lib/os-release"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(t *testing.T, dir string) pack.Options {
	return pack.Options{Dir: dir, Output: t.TempDir(), Name: "debian-13", URLBase: "https://images.example.com/", RootOwned: true}
}

func mustPack(t *testing.T, opts pack.Options) pack.Result {
	t.Helper()
	r, err := pack.Pack(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// unpack writes the raw disk and gives its path and its table.
func unpack(t *testing.T, r pack.Result) (string, *gpt.Table) {
	t.Helper()
	served, err := os.ReadFile(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(served)
	if want := "sha256:" + hex.EncodeToString(sum[:]); r.Checksum != want || r.OSImage.Spec.Checksum != want {
		t.Errorf("checksums %s and %s, but the file's is %s", r.Checksum, r.OSImage.Spec.Checksum, want)
	}
	if r.SizeBytes != int64(len(served)) {
		t.Errorf("SizeBytes is %d, the file has %d", r.SizeBytes, len(served))
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	raw, err := z.DecodeAll(served, nil)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(raw)) != r.DiskBytes {
		t.Errorf("the disk has %d bytes, DiskBytes says %d", len(raw), r.DiskBytes)
	}
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	table, err := gpt.Read(b, 512, 512)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Verify(b, uint64(len(raw))); err != nil {
		t.Errorf("partition table: %v", err)
	}
	return path, table
}

func TestAPackedDiskHoldsTheTree(t *testing.T) {
	r := mustPack(t, options(t, system(t, nil)))
	path, table := unpack(t, r)
	b, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	esp, root := table.Partitions[0], table.Partitions[1]
	if string(esp.Type) != recipe.TypeESP || string(root.Type) != recipe.TypeRootAMD64 || esp.Name != "esp" || root.Name != "root" {
		t.Errorf("partitions %v and %v, want esp and root", esp, root)
	}
	fat, err := fat32.Read(b, int64(esp.Size), int64(esp.Start*512), 512)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fat.ReadFile("EFI/BOOT/BOOTX64.EFI"); string(got) != "loader" {
		t.Errorf("the boot loader reads %q, %v", got, err)
	}
	main, err := ext4.Read(b, int64(root.Size), int64(root.Start*512), 512)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := main.ReadFile("usr/bin/tool"); string(got) != strings.Repeat("program", 100000) {
		t.Errorf("usr/bin/tool reads %d bytes, %v", len(got), err)
	}
	if entries, err := main.ReadDir("boot/efi"); err != nil || slicesLen(entries) != 0 {
		t.Errorf("boot/efi is no empty mount point: %v, %v", entries, err)
	}
	var said recipe.Manifest
	text, err := main.ReadFile(recipe.ManifestPath)
	if err != nil || json.Unmarshal(text, &said) != nil {
		t.Fatalf("manifest %q, %v", text, err)
	}
	if said.OS.ID != "debian" || said.OS.Version != "13" || said.OS.Kernel != "6.12.107+deb13-amd64" || said.Architecture != "amd64" {
		t.Errorf("the packed manifest is not complete: %s", text)
	}
	if said.Software.Kubelet != r.OSImage.Spec.Software.Kubelet || said.OS != r.OSImage.Spec.OS {
		t.Errorf("image and object disagree: %s", text)
	}
	checkWithTools(t, path, root)
}

func slicesLen(entries []fs.DirEntry) (n int) {
	for _, e := range entries {
		if e.Name() != "." && e.Name() != ".." {
			n++
		}
	}
	return n
}

// checkWithTools asks the tools of the field, where they are installed.
func checkWithTools(t *testing.T, path string, root *gpt.Partition) {
	t.Helper()
	if sgdisk, err := exec.LookPath("sgdisk"); err == nil {
		if out, err := exec.Command(sgdisk, "-v", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "No problems found") {
			t.Errorf("sgdisk: %v\n%s", err, out)
		}
	}
	e2fsck, err := exec.LookPath("e2fsck")
	if err != nil {
		return
	}
	disk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fs := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(fs, disk[root.Start*512:root.Start*512+root.Size], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(e2fsck, "-fn", fs).CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v\n%s", err, out)
	}
}

// The other half of the contract: a simulated server boots what is packed here, by its own reading of the disk.
func TestASimulatedServerBootsAPackedDisk(t *testing.T) {
	path, _ := unpack(t, mustPack(t, options(t, system(t, nil))))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	image, err := machineos.ReadImage(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if image.Kernel != "6.12.107+deb13-amd64" || image.OS.ID != "debian" || image.Software.Kubelet != "1.37.0" || image.Software.GPUDriver.Version != "550.163.01" {
		t.Errorf("the server reads %+v", image)
	}
}

func TestTheSameTreeGivesTheSameImageAndAnotherGivesAnother(t *testing.T) {
	first := mustPack(t, options(t, system(t, nil)))
	second := mustPack(t, options(t, system(t, nil)))
	other := mustPack(t, options(t, system(t, map[string]string{"etc/hostname": "amige\n"})))
	if filepath.Base(first.Path) != filepath.Base(second.Path) || first.Checksum != second.Checksum {
		t.Errorf("the same tree gave %s and %s", first.Checksum, second.Checksum)
	}
	if a, b := read(t, first.Path), read(t, second.Path); !bytes.Equal(a, b) {
		t.Error("the files differ")
	}
	if other.Checksum == first.Checksum {
		t.Error("another tree gave the same image")
	}
	_, a := unpack(t, first)
	_, b := unpack(t, other)
	if a.GUID == b.GUID || a.Partitions[1].GUID == b.Partitions[1].GUID {
		t.Error("two images have the same identity")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheObjectIsReadyToApply(t *testing.T) {
	r := mustPack(t, options(t, system(t, nil)))
	digest := strings.TrimPrefix(r.Checksum, "sha256:")
	wantFile := "debian-13-" + digest[:12] + ".raw.zst"
	if got := filepath.Base(r.Path); got != wantFile {
		t.Errorf("the file is %s, want %s", got, wantFile)
	}
	spec := r.OSImage.Spec
	got := []string{r.OSImage.APIVersion, r.OSImage.Kind, r.OSImage.Name, spec.URL, string(spec.Format), spec.Architecture, spec.Software.GPUDriver.Version}
	want := []string{"ingot.dev/v1alpha1", "OSImage", "debian-13", "https://images.example.com/" + wantFile, "raw.zst", "amd64", "550.163.01"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAnImageWithoutANameIsNamedAfterWhatItIs(t *testing.T) {
	opts := options(t, system(t, nil))
	opts.Name = ""
	r := mustPack(t, opts)
	digest := strings.TrimPrefix(r.Checksum, "sha256:")
	if want := "debian-13-" + digest[:12]; r.OSImage.Name != want || filepath.Base(r.Path) != want+".raw.zst" {
		t.Errorf("got %s and %s, want %s", r.OSImage.Name, r.Path, want)
	}
}

func TestTheSizeIsWhatWasAskedFor(t *testing.T) {
	opts := options(t, system(t, nil))
	opts.Size, opts.NoESP = 256<<20, true
	r := mustPack(t, opts)
	if r.DiskBytes != 256<<20 {
		t.Errorf("the disk has %d bytes, want 256 MiB", r.DiskBytes)
	}
	if r.SizeBytes > 1<<20 {
		t.Errorf("%d bytes served: free space does not compress away", r.SizeBytes)
	}
	path, table := unpack(t, r)
	if len(table.Partitions) != 1 {
		t.Errorf("%d partitions, want the root alone", len(table.Partitions))
	}
	checkWithTools(t, path, table.Partitions[0])
	opts.Size = 1 << 20
	if _, err := pack.Pack(context.Background(), opts); err == nil || !strings.Contains(err.Error(), "needs at least") {
		t.Errorf("a disk of 1 MiB: got %v, want the size that is needed", err)
	}
}

func TestWhatIsWrongWithATreeIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string]string
		want    []string
	}{
		"no os-release":      {map[string]string{"usr/lib/os-release": ""}, []string{"etc/os-release", "installed system"}},
		"no version":         {map[string]string{"usr/lib/os-release": "ID=debian\n"}, []string{"VERSION_ID", "os.version"}},
		"no manifest":        {map[string]string{recipe.ManifestPath: ""}, []string{recipe.ManifestPath, "kubelet"}},
		"a broken manifest":  {map[string]string{recipe.ManifestPath: "{"}, []string{recipe.ManifestPath, "JSON"}},
		"an unknown field":   {map[string]string{recipe.ManifestPath: `{"sofware": {}}`}, []string{"sofware"}},
		"no kubelet":         {map[string]string{recipe.ManifestPath: `{"software": {"containerd": "2.2.0"}}`}, []string{"software.kubelet", "seen none", "kubelet --version"}},
		"a leading v":        {map[string]string{recipe.ManifestPath: `{"software": {"kubelet": "v1.37.0"}}`}, []string{"without a leading v", `"v1.37.0"`}},
		"another system":     {map[string]string{recipe.ManifestPath: `{"os": {"id": "ubuntu"}, "software": {"kubelet": "1.37.0"}}`}, []string{"expected ubuntu", "seen ID=debian"}},
		"another kernel":     {map[string]string{recipe.ManifestPath: `{"os": {"kernel": "6.12.10"}, "software": {"kubelet": "1.37.0"}}`}, []string{"expected 6.12.10", "seen 6.12.107"}},
		"two kernels":        {map[string]string{"usr/lib/modules/6.1.0/modules.dep": "x"}, []string{"6.1.0, 6.12.107", "os.kernel"}},
		"no boot loader":     {map[string]string{"boot/efi/EFI/BOOT/BOOTX64.EFI": "", "boot/efi/EFI/debian/grubx64.efi": "x"}, []string{"BOOTX64.EFI", "seen EFI/debian/grubx64.efi", "--no-esp"}},
		"no boot/efi at all": {map[string]string{"boot/efi/EFI/BOOT/BOOTX64.EFI": "", "boot/efi/EFI/debian/grub.cfg": ""}, []string{"boot/efi", "no boot loader", "--no-esp"}},
		"another processor":  {map[string]string{recipe.ManifestPath: `{"architecture": "arm64", "software": {"kubelet": "1.37.0"}}`}, []string{"expected arm64", "seen amd64"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options(t, system(t, c.changes))
			_, err := pack.Pack(context.Background(), opts)
			var problem *recipe.Problem
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if left := count(t, opts.Output); left != 0 {
				t.Errorf("%d files are left behind", left)
			}
		})
	}
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestWhatIsNoTreeIsRefused(t *testing.T) {
	dir := system(t, nil)
	notADir := options(t, filepath.Join(dir, "etc/hostname"))
	missing := options(t, filepath.Join(dir, "nowhere"))
	inside := options(t, dir)
	inside.Output = filepath.Join(dir, "out")
	badName := options(t, dir)
	badName.Name = "Debian 13"
	for want, opts := range map[string]pack.Options{
		"seen a file": notADir, "no such file": missing, "lies in the tree": inside, "lower-case letters": badName,
	} {
		if _, err := pack.Pack(context.Background(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestALinkInPlaceOfTheManifestsDirectoryIsRefused(t *testing.T) {
	dir := system(t, map[string]string{recipe.ManifestPath: "", "usr/share/ingot/image.json": manifest})
	if err := os.Symlink("../share/ingot", filepath.Join(dir, "usr/lib/ingot")); err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Pack(context.Background(), options(t, dir)); err == nil || !strings.Contains(err.Error(), "usr/lib/ingot: expected a directory") {
		t.Errorf("got %v, want the link named", err)
	}
}

func TestAnUnreadableFileIsNamed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := system(t, nil)
	if err := os.Chmod(filepath.Join(dir, "etc/hostname"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Pack(context.Background(), options(t, dir)); err == nil || !strings.Contains(err.Error(), "etc/hostname") || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("got %v, want the file and what to do", err)
	}
}

func TestACancelledPackLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	opts := options(t, system(t, nil))
	if _, err := pack.Pack(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if left := count(t, opts.Output); left != 0 {
		t.Errorf("%d files are left behind", left)
	}
}

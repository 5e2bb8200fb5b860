package machineos_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/rootfs"
)

// read is what a server finds of a packed system on its disk.
func read(t *testing.T, system string, more map[string]string) machineos.Image {
	t.Helper()
	dir := t.TempDir()
	if err := rootfs.Write(dir, system, more); err != nil {
		t.Fatal(err)
	}
	packed, err := pack.Pack(t.Context(), pack.Options{Dir: dir, Output: t.TempDir(), Name: system, RootOwned: true})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(packed.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	disk, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	size, err := reader.WriteTo(disk)
	if err != nil {
		t.Fatal(err)
	}
	image, err := machineos.ReadImage(disk, size)
	if err != nil {
		t.Fatal(err)
	}
	if said := packed.OSImage.Spec.UserData == v1alpha1.UserDataIgnition; said != image.Ignition && system != "debian" {
		t.Errorf("the OSImage says %s, and the server has Ignition: %t", packed.OSImage.Spec.UserData, image.Ignition)
	}
	return image
}

func TestAnImageSaysByItsFilesWhoProvisionsIt(t *testing.T) {
	for _, system := range rootfs.Systems() {
		image := read(t, system, nil)
		if image.Ignition != (system != "debian") || image.OS.ID != system || image.Kernel != rootfs.Kernel {
			t.Errorf("%s: %+v", system, image)
		}
	}
	for variant, want := range map[string]bool{"coreos": true, "server": false} {
		release := "ID=fedora\nVERSION_ID=43\nVARIANT_ID=" + variant + "\n"
		if image := read(t, "debian", map[string]string{"usr/lib/os-release": release, "etc/os-release": release}); image.Ignition != want {
			t.Errorf("Fedora's variant %s has Ignition: %t", variant, image.Ignition)
		}
	}
	if image := read(t, "debian", map[string]string{"usr/lib/dracut/modules.d/30ignition/ignition": "simulated\n"}); !image.Ignition {
		t.Error("a system with Ignition's dracut module has Ignition, whatever it calls itself")
	}
}

func TestWhatIsBakedIntoAnImageConfiguresItsKernel(t *testing.T) {
	image := read(t, "debian", map[string]string{
		rootfs.Manifest:                   `{"kernelArguments": ["intel_iommu=on", "modprobe.blacklist=nouveau"], "software": {"kubelet": "1.37.0"}}`,
		"etc/modules-load.d/vfio.conf":    "vfio-pci\n",
		"usr/lib/modprobe.d/vfio.conf":    "options vfio-pci ids=10de:2330\n",
		"usr/lib/modprobe.d/ast.conf":     "blacklist ast\n",
		"usr/lib/modprobe.d/README":       "blacklist xfs\n",
		"usr/share/modprobe.d/other.conf": "blacklist ext4\n",
	})
	s, err := machineos.Boot(image, nil, nil, machineos.Machine{})
	if err != nil {
		t.Fatal(err)
	}
	if !s.IsModuleLoaded("vfio_pci") || s.ModuleOptions("vfio-pci")["ids"] != "10de:2330" {
		t.Errorf("vfio-pci: loaded %t, options %v", s.IsModuleLoaded("vfio_pci"), s.ModuleOptions("vfio-pci"))
	}
	for module, want := range map[string]bool{"nouveau": true, "ast": true, "xfs": false, "ext4": false} {
		if s.IsModuleBlacklisted(module) != want {
			t.Errorf("%s is blacklisted: %t", module, !want)
		}
	}
	if content, ok := s.File("/etc/modules-load.d/vfio.conf"); !ok || string(content) != "vfio-pci\n" {
		t.Errorf("the image's file: %q, %t", content, ok)
	}
	if _, err := s.ReadFile("/etc/shadow"); err == nil {
		t.Error("a file that is not known was read")
	}
	if rootfs.Write(t.TempDir(), "plan9", nil) == nil {
		t.Error("a system that is not known was written")
	}
}

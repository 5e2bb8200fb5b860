// Package rootfs writes the root directories of small installed systems, to be packed into the images of simulated
// servers: with the files by which each is known, what a node needs by its name, and no program that a processor could run.
package rootfs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Manifest is the path of the file that lists the software of a tree.
const Manifest = "usr/lib/ingot/image.json"

// Kernel is the release of every system's kernel.
const Kernel = "6.12.107"

// releases are the os-release files of the systems, by the name with which Write is called.
var releases = map[string]string{
	"debian":  "ID=debian\nVERSION_ID=\"13\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n",
	"fedora":  "ID=fedora\nVERSION_ID=43\nVARIANT_ID=coreos\nPRETTY_NAME=\"Fedora CoreOS 43\"\n",
	"flatcar": "ID=flatcar\nVERSION_ID=4459.2.0\nPRETTY_NAME=\"Flatcar Container Linux by Kinvolk 4459.2.0\"\n",
	"rhcos":   "ID=\"rhcos\"\nVARIANT_ID=coreos\nVERSION_ID=\"4.18\"\nPRETTY_NAME=\"Red Hat Enterprise Linux CoreOS 4.18\"\n",
}

// ignition is where Fedora and Red Hat keep Ignition; Flatcar's is only in its initial ramdisk.
const ignition = "usr/lib/dracut/modules.d/30ignition/ignition"

// Systems returns the names of the systems that Write can write.
func Systems() []string { return slices.Sorted(maps.Keys(releases)) }

// Write writes a system to dir. The files in more, by path without a leading slash, are added or replace its own.
func Write(dir, system string, more map[string]string) error {
	release, known := releases[system]
	if !known {
		return fmt.Errorf("write a root directory: no system is called %q, but %v are", system, Systems())
	}
	files := map[string]string{
		"usr/lib/os-release": release, "etc/os-release": release, "etc/machine-id": "", "usr/bin/kubelet": "simulated\n",
		"boot/efi/EFI/BOOT/BOOTX64.EFI": "simulated\n", "usr/lib/modules/" + Kernel + "/modules.dep": "simulated\n",
		Manifest: `{"software": {"containerd": "2.2.0", "kubelet": "1.37.0"}}`,
	}
	if system == "fedora" || system == "rhcos" {
		files[ignition] = "simulated\n"
	}
	if system != "debian" {
		// The platform whose images read a config drive.
		files[Manifest] = `{"kernelArguments": ["ignition.platform.id=openstack"], "software": {"containerd": "2.2.0", "kubelet": "1.37.0"}}`
	}
	maps.Copy(files, more)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write a root directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return fmt.Errorf("write a root directory: %w", err)
		}
	}
	return nil
}

package machineos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/filesystem/ext4"
	"github.com/diskfs/go-diskfs/filesystem/squashfs"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/ingot-dev/ingot/test/rack/machineos/kernel"
)

// ErrNotBootable is returned by ReadImage for a disk that the firmware cannot boot.
var ErrNotBootable = errors.New("the disk does not boot")

const (
	// ManifestPath is the path of the file that lists what an image contains.
	ManifestPath = "usr/lib/ingot/image.json"
	sectorSize   = 512
	// maxManifest is the largest size of a file that is read, in bytes.
	maxManifest = 1 << 20
)

// Image describes what an installed image contains.
type Image struct {
	OS              OS       `json:"os"`
	Kernel          string   `json:"kernel"`
	KernelArguments []string `json:"kernelArguments"`
	Software        Software `json:"software"`
	// Programs are the names of the optional programs that are in /usr/bin.
	Programs []string `json:"-"`
	// Ignition means that the image is provisioned by Ignition and not by cloud-init.
	Ignition bool `json:"-"`
	// Files are the files that configure kernel modules, by absolute path.
	Files map[string][]byte `json:"-"`
}

// optionalPrograms are programs that are found in the file system, whether or not the manifest lists them.
var optionalPrograms = []string{"nvidia-mig-parted", "nvidia-vgpu-dm"}

// OS is an operating system in the words of os-release.
type OS struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	// Kernel is what uname -r prints; some write it here and not beside os.
	Kernel string `json:"kernel"`
}

// Software is what is installed beside the kernel. Versions have no leading v; an empty version means that the software is
// not installed.
type Software struct {
	GPUDriver        *GPUDriver `json:"gpuDriver"`
	Containerd       string     `json:"containerd"`
	Kubelet          string     `json:"kubelet"`
	ContainerToolkit string     `json:"containerToolkit"`
	FabricManager    string     `json:"fabricManager"`
}

// GPUDriver is an installed GPU driver.
type GPUDriver struct {
	Vendor       string `json:"vendor"`
	Version      string `json:"version"`
	KernelModule string `json:"kernelModule"`
	// Kind of driver: GPU, VGPUManager, VGPUGuest; empty: GPU.
	Kind string `json:"kind"`
}

// ReadImage reads the description of the image on a disk, as far as the firmware and the root file system give it. Every
// error is an ErrNotBootable.
func ReadImage(disk io.ReaderAt, size int64) (Image, error) {
	store := newStorage(disk, size)
	table, err := readTable(store)
	if err != nil {
		return Image{}, err
	}
	for _, partition := range table.Partitions {
		if partition.Type == gpt.Unused {
			continue
		}
		root, err := openRoot(store, partition.GetStart(), partition.GetSize())
		if err != nil || root == nil {
			continue // not a root file system; whether there is one is told at the end
		}
		manifest, err := readAll(root, ManifestPath, maxManifest)
		if errors.Is(err, fs.ErrNotExist) || len(manifest) == 0 {
			continue
		}
		var image Image
		if err := json.Unmarshal(manifest, &image); err != nil {
			return Image{}, fmt.Errorf("%w: /%s: %w", ErrNotBootable, ManifestPath, err)
		}
		for _, name := range optionalPrograms {
			if file, err := root.Open("usr/bin/" + name); err == nil {
				image.Programs = append(image.Programs, name)
				_ = file.Close() // it was only looked at
			}
		}
		image.Kernel = kernelRelease(root, cmp.Or(image.Kernel, image.OS.Kernel))
		image.Files, image.Ignition = moduleConfiguration(root), hasIgnition(root, image.OS.ID)
		return image, nil
	}
	return Image{}, fmt.Errorf("%w: no ext4 or squashfs partition holds /%s", ErrNotBootable, ManifestPath)
}

// readTable reads the partition table as UEFI firmware does (UEFI section 5.3): without a protective MBR the disk has no
// table.
func readTable(store backend.Storage) (*gpt.Table, error) {
	mbr := make([]byte, sectorSize)
	if _, err := store.ReadAt(mbr, 0); err != nil {
		return nil, fmt.Errorf("%w: reading the first block: %w", ErrNotBootable, err)
	}
	protective := false
	for at := 446; at < 510; at += 16 {
		protective = protective || mbr[at+4] == 0xEE
	}
	if mbr[510] != 0x55 || mbr[511] != 0xAA || !protective {
		return nil, fmt.Errorf("%w: no protective MBR in the first block", ErrNotBootable)
	}
	table, err := gpt.Read(store, sectorSize, sectorSize)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBootable, err)
	}
	return table, nil
}

// openRoot opens the file system at the offset. It returns nil when it is neither ext4 nor squashfs.
func openRoot(store backend.Storage, start, size int64) (fs.FS, error) {
	var head [1024 + 64]byte
	if _, err := store.ReadAt(head[:], start); err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(head[1024+56:1024+58], []byte{0x53, 0xEF}):
		return ext4.Read(store, size, start, sectorSize)
	case string(head[:4]) == "hsqs":
		return squashfs.Read(store, size, start, 0)
	}
	return nil, nil
}

// kernelRelease returns what uname -r prints: the name of the only directory of kernel modules, or else the release in the
// manifest.
func kernelRelease(root fs.FS, manifest string) string {
	for _, path := range []string{"usr/lib/modules", "lib/modules"} {
		if kernels, err := fs.ReadDir(root, path); err == nil && len(kernels) == 1 {
			return kernels[0].Name()
		}
	}
	return manifest
}

// hasIgnition reports whether the image is provisioned by Ignition: it has Ignition's dracut module, or its os-release
// names a system that has only Ignition. Without os-release the manifest's id counts.
func hasIgnition(root fs.FS, id string) bool {
	if file, err := root.Open("usr/lib/dracut/modules.d/30ignition"); err == nil {
		_ = file.Close() // it was only looked at
		return true
	}
	release := map[string]string{}
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		text, err := readAll(root, path, maxManifest)
		if err != nil {
			continue // a link that leads nowhere, or no such file
		}
		for line := range strings.Lines(string(text)) {
			setVariable(release, strings.TrimSpace(line))
		}
	}
	id = cmp.Or(release["ID"], id)
	return slices.Contains([]string{"flatcar", "fcos", "fedora-coreos", "rhcos", "scos"}, id) || release["VARIANT_ID"] == "coreos"
}

// moduleConfiguration reads the files that configure kernel modules. Files that cannot be read are left out.
func moduleConfiguration(root fs.FS) map[string][]byte {
	out := map[string][]byte{}
	for _, folder := range slices.Concat(kernel.Directories("modprobe.d"), kernel.Directories("modules-load.d")) {
		entries, err := fs.ReadDir(root, folder[1:])
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if content, err := readAll(root, folder[1:]+"/"+entry.Name(), maxManifest); err == nil {
				out[folder+"/"+entry.Name()] = content
			}
		}
	}
	return out
}

func readAll(root fs.FS, path string, limit int64) ([]byte, error) {
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit))
	return data, errors.Join(err, file.Close())
}

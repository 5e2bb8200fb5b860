package recipe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// ManifestPath is the path of the manifest in a tree, and of the completed manifest in a packed root file system.
const ManifestPath = "usr/lib/ingot/image.json"

// Manifest describes the content of an image. Its fields are those of OSImage.spec with the same names.
type Manifest struct {
	Architecture    string             `json:"architecture,omitempty"`
	OS              v1alpha1.OSImageOS `json:"os"`
	KernelArguments []string           `json:"kernelArguments,omitempty"`
	// UserData is derived from os-release when it is not set; empty means cloud-init.
	UserData v1alpha1.UserDataKind    `json:"userData,omitempty"`
	Software v1alpha1.OSImageSoftware `json:"software"`
}

// Facts are the observations of a tree that a manifest is completed from.
type Facts struct {
	// OSRelease is the content of os-release; nil when there is none.
	OSRelease []byte
	// Manifest is the content of the file at ManifestPath; nil when there is none.
	Manifest []byte
	// Kernels are the names of the directories in lib/modules.
	Kernels []string
	// ESP is true when the image gets an EFI system partition.
	ESP bool
	// Loaders are the paths below boot/efi that end in .efi, in any case.
	Loaders []string
}

// Problem is a defect of a tree and its remedy.
type Problem struct {
	// Path is the path in the tree.
	Path                    string
	Expected, Found, Remedy string
}

// Error returns what was expected, what was found and the remedy.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s: expected %s, seen %s: %s", p.Path, p.Expected, p.Found, p.Remedy)
}

// removableLoaders are the boot loaders that firmware without boot entries starts (UEFI specification, table 3-2), with their architectures.
var removableLoaders = map[string]string{"EFI/BOOT/BOOTX64.EFI": "amd64", "EFI/BOOT/BOOTAA64.EFI": "arm64"}

// CompleteManifest completes the manifest of the tree with the facts. It refuses contradictions between them. The error is a *Problem.
func CompleteManifest(f Facts) (Manifest, error) {
	m, err := parseManifest(f.Manifest)
	if err != nil {
		return m, err
	}
	for _, complete := range []func(*Manifest, Facts) error{completeOS, completeKernel, completeArchitecture, completeUserData, checkSoftware} {
		if err := complete(&m, f); err != nil {
			return m, err
		}
	}
	return m, nil
}

// JSON returns the manifest as it is stored in the packed root file system.
func (m Manifest) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

func parseManifest(raw []byte) (Manifest, error) {
	var m Manifest
	if raw == nil {
		return m, &Problem{ManifestPath, "the versions of what is baked in", "no such file",
			`write one, at least {"software": {"kubelet": "1.37.0"}}; gpuDriver, containerd and containerToolkit belong there too`}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(&m)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		return m, &Problem{ManifestPath, "JSON with architecture, os, userData, kernelArguments and software as in OSImage.spec", err.Error(), "correct the file"}
	}
	return m, nil
}

func completeOS(m *Manifest, f Facts) error {
	const file = "etc/os-release"
	if f.OSRelease == nil {
		return &Problem{file, "the operating system's name and version, here or in usr/lib/os-release", "no such file",
			"pack the root directory of an installed system"}
	}
	values := osRelease(f.OSRelease)
	for _, k := range []struct {
		key   string
		value *string
	}{{"ID", &m.OS.ID}, {"VERSION_ID", &m.OS.Version}} {
		found := values[k.key]
		switch {
		case found == "" && *k.value == "":
			return &Problem{file, "a line " + k.key + "=", "none",
				"add it, or say os.id and os.version in " + ManifestPath + " (rolling distributions have no VERSION_ID)"}
		case found != "" && *k.value != "" && found != *k.value:
			return contradictionProblem(file, k.key+"="+found, *k.value)
		case *k.value == "":
			*k.value = found
		}
	}
	return nil
}

// osRelease returns the assignments in os-release(5). Their values may be quoted as in a shell.
func osRelease(raw []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			out[key] = strings.Trim(value, `"'`)
		}
	}
	return out
}

func completeKernel(m *Manifest, f Facts) error {
	const dir = "usr/lib/modules"
	switch {
	case m.OS.Kernel == "" && len(f.Kernels) > 1:
		return &Problem{dir, "one kernel", strings.Join(f.Kernels, ", "), "say in os.kernel of " + ManifestPath + " which one boots, or remove the others"}
	case m.OS.Kernel == "" && len(f.Kernels) == 1:
		m.OS.Kernel = f.Kernels[0]
	case m.OS.Kernel != "" && len(f.Kernels) > 0 && !slices.ContainsFunc(f.Kernels, func(k string) bool { return isRelease(k, m.OS.Kernel) }):
		return contradictionProblem(dir, strings.Join(f.Kernels, ", "), m.OS.Kernel)
	}
	return nil
}

// isRelease reports whether the full release of a kernel has the given version: 6.12.107+deb13-amd64 has 6.12.107, and not 6.12.10.
func isRelease(full, given string) bool {
	rest, ok := strings.CutPrefix(full, given)
	return ok && (rest == "" || !strings.ContainsRune("0123456789", rune(rest[0])))
}

func completeArchitecture(m *Manifest, f Facts) error {
	if !f.ESP {
		return nil
	}
	var found []string
	for _, l := range f.Loaders {
		if arch, ok := removableLoaders[strings.ToUpper(path.Clean(l))]; ok {
			found = append(found, arch)
		}
	}
	slices.Sort(found)
	switch {
	case len(found) == 0:
		listed := "no boot loader"
		if len(f.Loaders) > 0 {
			listed = strings.Join(f.Loaders, ", ")
		}
		return &Problem{"boot/efi", "EFI/BOOT/BOOTX64.EFI or EFI/BOOT/BOOTAA64.EFI, which a server starts that has no boot entry for a new disk", listed,
			"install the boot loader to the removable path (grub-install --removable), or pack with --no-esp a disk that brings its own way to boot"}
	case m.Architecture == "" && len(found) > 1:
		return &Problem{"boot/efi", "the boot loader of one architecture", strings.Join(found, ", "), "say architecture in " + ManifestPath}
	case m.Architecture == "":
		m.Architecture = found[0]
	case !slices.Contains(found, m.Architecture):
		return contradictionProblem("boot/efi/EFI/BOOT", strings.Join(found, ", "), m.Architecture)
	}
	return nil
}

// ignitionSystems are the IDs in os-release of the systems that use Ignition instead of cloud-init. Others have VARIANT_ID=coreos.
var ignitionSystems = []string{"flatcar", "rhcos", "scos"}

func completeUserData(m *Manifest, f Facts) error {
	release := osRelease(f.OSRelease)
	switch m.UserData {
	case "":
		if slices.Contains(ignitionSystems, release["ID"]) || release["VARIANT_ID"] == "coreos" {
			m.UserData = v1alpha1.UserDataIgnition
		}
	case v1alpha1.UserDataCloudInit, v1alpha1.UserDataIgnition:
	default:
		return &Problem{ManifestPath, "userData CloudInit or Ignition", string(m.UserData), "correct it, or remove it: it is found by os-release"}
	}
	return nil
}

// platformArguments are the kernel arguments that set the platform of Ignition.
var platformArguments = []string{"ignition.platform.id", "flatcar.oem.id", "coreos.oem.id"}

// ignitionPlatform returns the platform from the kernel arguments. When it is empty, it must be added to the OSImage by hand.
func (m Manifest) ignitionPlatform() string {
	for _, argument := range m.KernelArguments {
		if key, value, _ := strings.Cut(argument, "="); m.UserData == v1alpha1.UserDataIgnition && slices.Contains(platformArguments, key) {
			return value
		}
	}
	return ""
}

// versionPattern matches the versions that the API accepts.
var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+].*)?$`)

func checkSoftware(m *Manifest, _ Facts) error {
	if m.Architecture != "" && m.Architecture != "amd64" && m.Architecture != "arm64" {
		return &Problem{ManifestPath, "architecture amd64 or arm64", m.Architecture, "correct it"}
	}
	if !versionPattern.MatchString(m.Software.Kubelet) {
		found := fmt.Sprintf("%q", m.Software.Kubelet)
		if m.Software.Kubelet == "" {
			found = "none"
		}
		return &Problem{ManifestPath, "software.kubelet, a version such as 1.37.0 without a leading v", found,
			"add what `kubelet --version` prints in the image; a node cannot join without a kubelet"}
	}
	return checkDriver(m.Software.GPUDriver)
}

func checkDriver(d *v1alpha1.GPUDriverSoftware) error {
	if d == nil {
		return nil
	}
	if d.Version == "" || d.Vendor != v1alpha1.VendorNVIDIA && d.Vendor != v1alpha1.VendorAMD {
		return &Problem{ManifestPath, "software.gpuDriver with vendor nvidia or amd and a version", fmt.Sprintf("vendor %q, version %q", d.Vendor, d.Version), "correct it"}
	}
	if d.KernelModule != "" && d.KernelModule != "Open" && d.KernelModule != "Proprietary" {
		return &Problem{ManifestPath, "software.gpuDriver.kernelModule Open or Proprietary", d.KernelModule, "correct it"}
	}
	return nil
}

func contradictionProblem(where, tree, manifest string) error {
	return &Problem{where, manifest + " as " + ManifestPath + " says", tree, "correct the one that is wrong"}
}

// PlaceholderServer is the server in the URL of an OSImage when no server is given.
const PlaceholderServer = "https://set-the-url.invalid"

// Name returns the default name of the image: the operating system and its version.
func (m Manifest) Name() string {
	return strings.Trim(invalidNameChars.ReplaceAllString(strings.ToLower(m.OS.ID+"-"+m.OS.Version), "-"), "-.")
}

var (
	invalidNameChars = regexp.MustCompile(`[^a-z0-9.-]+`)
	namePattern      = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
)

// IsValidName reports whether the name, followed by 12 digits, is valid for an OSImage and for a file.
func IsValidName(name string) bool { return len(name) <= 200 && namePattern.MatchString(name) }

// FileName returns the name of the image file. It contains the digest, so that the content of a served file never changes.
func FileName(name, sha256 string) string { return name + "-" + sha256[:12] + ".raw.zst" }

// OSImage returns the object to apply. PlaceholderServer is used for an empty urlBase.
func (m Manifest) OSImage(name, urlBase, file, sha256 string) v1alpha1.OSImage {
	if urlBase == "" {
		urlBase = PlaceholderServer
	}
	return v1alpha1.OSImage{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "OSImage"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OSImageSpec{
			URL: strings.TrimSuffix(urlBase, "/") + "/" + file, Checksum: "sha256:" + sha256, Format: v1alpha1.FormatRawZstd,
			Architecture: m.Architecture, OS: m.OS,
			UserData: cmp.Or(m.UserData, v1alpha1.UserDataCloudInit), IgnitionPlatform: m.ignitionPlatform(),
			KernelArguments: m.KernelArguments, Software: m.Software,
		},
	}
}

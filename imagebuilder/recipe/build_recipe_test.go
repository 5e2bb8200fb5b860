package recipe_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// smallest is a recipe with the fields that are needed.
const smallest = `
debian:
  repositories:
  - {url: "http://deb.debian.org/debian", suite: bookworm, components: [main], keyFile: /usr/share/keyrings/debian-archive-keyring.gpg}
kernel:
  package: linux-image-amd64
`

func mustParse(t *testing.T, text string) recipe.Recipe {
	t.Helper()
	r, err := recipe.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheRecipesOfTheProjectAreRead(t *testing.T) {
	files, err := filepath.Glob("../../config/images/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := mustParse(t, string(text))
		software, err := r.FindSoftware(nil)
		if err != nil || software.Kubelet == "" {
			t.Errorf("%s: %v: an image without a kubelet joins nothing", file, err)
		}
		if slices.Contains(r.Units.Enable, "kubelet.service") {
			t.Errorf("%s enables kubelet, which user data starts", file)
		}
	}
}

func TestAWrongRecipeNamesTheField(t *testing.T) {
	mustParse(t, smallest)
	for change, want := range map[string]string{
		"packges: []": `unknown field "packges"`,
		"kernel: {package: linux-image-amd64, argument: []}":                     `unknown field "argument"`,
		"architecture: s390x":                                                    "architecture",
		"name: Debian":                                                           "name",
		"size: big":                                                              "size",
		"size: -1Gi":                                                             "size",
		"files: [{path: etc/x, content: a}]":                                     "files[0].path",
		"files: [{path: /etc/../x, content: a}]":                                 "files[0].path",
		"files: [{path: /boot/efi/EFI/x, content: a}]":                           "files[0].path",
		"files: [{path: /etc/x}]":                                                "files[0]: expected exactly one",
		"files: [{path: /etc/x, content: a, link: b}]":                           "files[0]: expected exactly one",
		"files: [{path: /etc/x, content: a, mode: \"0999\"}]":                    "files[0].mode",
		"files: [{path: /etc/x, content: a, mode: 0644}]":                        "files",
		"files: [{path: /etc/x, content: a, owner: root}]":                       "files[0].owner",
		"programs: [{path: /x, module: a.b/c, version: v1}]":                     "programs[0].version",
		"programs: [{path: /x, module: a.b/c, version: v1.0.0, package: a.b/d}]": "programs[0].package",
		"programs: [{path: /x, module: a.b/c, version: v1.0.0, linkerFlags: [-extld=/bin/x]}]": "programs[0].linkerFlags[0]",
		"programs: [{path: /x, module: -modfile, version: v1.0.0}]":                            "programs[0].module",
		"units: {enable: [kubelet]}":                                                   "units.enable[0]",
		"units: {mask: [../x.service]}":                                                "units.mask[0]",
		"kernel: {package: \"-o x\"}":                                                  "kernel.package",
		"debian: {repositories: []}":                                                   "debian.repositories",
		"debian: {packages: [\"-oX\"]}":                                                "debian.packages[0]",
		"debian: {localPackages: [a.rpm]}":                                             "debian.localPackages[0]",
		"debian: {repositories: [{url: \"http://u:p@x/\", suite: a, key: k}]}":         "debian.repositories[0].url",
		"debian: {repositories: [{url: \"http://x/\", suite: a}]}":                     "debian.repositories[0].key",
		"debian: {repositories: [{url: \"http://x/\", suite: \"a b\", key: k}]}":       "debian.repositories[0].suite",
		"kernel: {package: linux-image-amd64, arguments: [\"a b\"]}":                   "kernel.arguments[0]",
		"kernel: {package: linux-image-amd64, arguments: [\"a;halt\"]}":                "kernel.arguments[0]",
		"kernel: {package: linux-image-amd64, arguments: [\"console=ttyS0\", \"$x\"]}": "kernel.arguments[1]",
	} {
		text := smallest
		key, _, _ := strings.Cut(change, ":")
		if at := strings.Index(smallest, "\n"+key+":"); at >= 0 {
			// The change replaces the whole member.
			rest := smallest[at+1:]
			end := strings.Index(rest, "\nkernel:")
			if end < 0 {
				end = len(rest)
			}
			text = smallest[:at+1] + rest[end:]
		}
		if _, err := recipe.Parse([]byte(text + "\n" + change + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected an error with %q", change, err, want)
		}
	}
}

func TestAllFaultsAreSaidAtOnce(t *testing.T) {
	_, err := recipe.Parse([]byte(smallest + "name: A\nsize: x\n"))
	if err == nil || !strings.Contains(err.Error(), "name:") || !strings.Contains(err.Error(), "size:") {
		t.Errorf("%v", err)
	}
}

func TestMmdebstrapGetsTheRepositoriesWithTheirKeysOnly(t *testing.T) {
	r := mustParse(t, smallest+`
  arguments: [console=ttyS0]
files:
- {path: /etc/modprobe.d/x.conf, content: blacklist nouveau}
`)
	r.Debian.Packages, r.Debian.LocalPackages = []string{"cloud-init"}, []string{"it's.deb"}
	r.Debian.Repositories = append(r.Debian.Repositories, recipe.Repository{URL: "http://snapshot.debian.org/x", Suite: "sid", Snapshot: &time.Time{}})
	args := r.BootstrapArguments(recipe.BootstrapInputs{Archive: "/o/root.tar", Keys: []string{"/k/0.gpg", "/k/1.asc"}, Initramfs: "/k/i.tar", LocalPackages: r.Debian.LocalPackages})
	for _, want := range []string{
		"--mode=unshare", "--architectures=amd64", "deb [signed-by=/k/0.gpg] http://deb.debian.org/debian bookworm main",
		"deb [signed-by=/k/1.asc check-valid-until=no] http://snapshot.debian.org/x sid", "--essential-hook=tar-in '/k/i.tar' /",
		`--customize-hook=copy-in 'it'\''s.deb' /var/cache/apt/archives/image`,
	} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in %q", want, args)
		}
	}
	include := args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--include=") })]
	for _, p := range []string{"linux-image-amd64", "cloud-init", "shim-signed", "grub-efi-amd64-signed", "systemd-sysv"} {
		if !strings.Contains(include, p) {
			t.Errorf("%s is not installed: %s", p, include)
		}
	}
	if !r.Files[0].IsForInitramfs() || (recipe.File{Path: "/etc/hosts"}).IsForInitramfs() {
		t.Error("the initial ramdisk is made with other files")
	}
}

// TestAListThatWasNotValidAtTheTimeOfTheSnapshotIsRefused runs the commands as mmdebstrap does.
func TestAListThatWasNotValidAtTheTimeOfTheSnapshotIsRefused(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r := recipe.Repository{URL: "http://snapshot.debian.org/archive/de_bian~x/20261101T000000Z/", Suite: "stable/updates", Snapshot: &at}
	const name = "snapshot.debian.org_archive_de%5fbian%7ex_20261101T000000Z_dists_stable_updates"
	for _, c := range []struct {
		name, file, text string
		isValid          bool
	}{
		{"of the day", "_InRelease", "Date: Sat, 31 Oct 2026 20:00:00 UTC\nValid-Until: Sat, 07 Nov 2026 20:00:00 UTC\n", true},
		{"with a signature of its own", "_Release", "Date: Sat, 31 Oct 2026 20:00:00 UTC\nValid-Until: Sat, 07 Nov 2026 20:00:00 UTC\n", true},
		{"without an end", "_InRelease", "Date: Sat, 31 Jan 2026 20:00:00 UTC\n", true},
		{"expired before", "_InRelease", "Date: Sat, 24 Oct 2026 20:00:00 UTC\nValid-Until: Sat, 31 Oct 2026 20:00:00 UTC\n", false},
		{"made after", "_InRelease", "Date: Sun, 01 Nov 2026 00:00:01 UTC\nValid-Until: Sat, 07 Nov 2026 20:00:00 UTC\n", false},
		{"without a date", "_InRelease", "Valid-Until: Sat, 07 Nov 2026 20:00:00 UTC\n", false},
		{"with a date that is none", "_InRelease", "Date: $(true)\n", false},
		{"not there", "_Other", "Date: Sat, 31 Oct 2026 20:00:00 UTC\n", false},
	} {
		root := t.TempDir()
		lists := filepath.Join(root, "var/lib/apt/lists")
		if err := errors.Join(os.MkdirAll(lists, 0o700), os.WriteFile(filepath.Join(lists, name+c.file), []byte("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n"+c.text), 0o600)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("sh", "-c", r.SnapshotHook(), "exec", root).CombinedOutput()
		if (err == nil) != c.isValid || err != nil && !strings.Contains(string(out), "expected a list that was valid at 2026-11-01T00:00:00Z") {
			t.Errorf("a list %s: %v, %s", c.name, err, out)
		}
	}
	if hook := (recipe.Repository{URL: "http://deb.debian.org/debian", Suite: "sid"}).SnapshotHook(); hook != "" {
		t.Errorf("apt itself judges a list of now: %s", hook)
	}
}

func TestGRUBStartsTheKernelOfItsOwnDisk(t *testing.T) {
	id := recipe.NewIdentity([32]byte{1})
	text := string(recipe.GRUBConfig("6.1.0-1-amd64", []string{"console=ttyS0"}, id))
	for _, want := range []string{
		"root=PARTUUID=" + strings.ToLower(id.RootGUID) + " rw console=ttyS0\n", "/boot/initrd.img-6.1.0-1-amd64", `"$cmdpath"`, "--fs-uuid",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestUnitsAreEnabledAsTheirFilesSay(t *testing.T) {
	links, err := recipe.UnitLinks("a@b.service", []byte("[Unit]\nWantedBy=no.target\n[Install]\nWantedBy=multi-user.target x.target\nRequiredBy=y.target\nAlias=z.service\n"))
	want := []string{"multi-user.target.wants/a@b.service", "x.target.wants/a@b.service", "y.target.requires/a@b.service", "z.service"}
	if err != nil || !slices.Equal(links, want) {
		t.Errorf("%v, %v", links, err)
	}
	if _, err := recipe.UnitLinks("a.service", []byte("[Unit]\n")); err == nil || !strings.Contains(err.Error(), "a.service") {
		t.Errorf("a unit without Install: %v", err)
	}
	if got := recipe.UnitFile("a@b.service") + recipe.UnitFile("c.timer"); got != "a@.servicec.timer" {
		t.Error(got)
	}
}

const status = `Package: containerd
Status: install ok installed
Architecture: amd64
Version: 1.6.20~ds1-1+deb12u3
Description: runtime
 Version: 9

Package: gone
Status: deinstall ok config-files
Version: 1.0

Package: adduser
Status: install ok installed
Architecture: all
Version: 1:3.134
`

func TestTheSoftwareIsWhatIsInTheImage(t *testing.T) {
	packages := recipe.ParsePackages([]byte(status))
	if len(packages) != 2 || packages[0].Version != "1.6.20~ds1-1+deb12u3" || packages[1].Name != "adduser" {
		t.Fatalf("%+v", packages)
	}
	r := mustParse(t, smallest+"programs: [{path: /usr/bin/kubelet, module: k8s.io/kubernetes, version: v1.37.0}]\n")
	got, err := r.FindSoftware(packages)
	if want := (v1alpha1.OSImageSoftware{Kubelet: "1.37.0", Containerd: "1.6.20"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	r.Software.Kubelet = "1.36.0"
	if _, err := r.FindSoftware(packages); err == nil || !strings.Contains(err.Error(), "1.36.0") {
		t.Errorf("a contradiction: %v", err)
	}
	without := mustParse(t, smallest+"software: {kubelet: 1.37.0}\n")
	if _, err := without.FindSoftware(packages); err == nil {
		t.Error("a kubelet that is not there was believed")
	}
	without.Files = []recipe.File{{Path: "/usr/bin/kubelet", From: "kubelet"}}
	if got, err := without.FindSoftware(packages); err != nil || got.Kubelet != "1.37.0" {
		t.Errorf("%+v, %v", got, err)
	}
}

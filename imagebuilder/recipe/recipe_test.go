package recipe_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

const mib = 1 << 20

func facts(change func(*recipe.Facts)) recipe.Facts {
	f := recipe.Facts{
		OSRelease: []byte("# comment\nNAME=\"Debian\"\nID=debian\nVERSION_ID='13'\n"),
		Manifest:  []byte(`{"kernelArguments": ["quiet"], "software": {"kubelet": "1.37.0"}}`),
		Kernels:   []string{"6.12.107+deb13-amd64"},
		ESP:       true,
		Loaders:   []string{"efi/boot/bootx64.efi"},
	}
	if change != nil {
		change(&f)
	}
	return f
}

func TestATreeIsCompletedFromWhatItShows(t *testing.T) {
	got, err := recipe.CompleteManifest(facts(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := recipe.Manifest{
		Architecture:    "amd64",
		OS:              v1alpha1.OSImageOS{ID: "debian", Version: "13", Kernel: "6.12.107+deb13-amd64"},
		KernelArguments: []string{"quiet"},
		Software:        v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	text, err := got.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := recipe.CompleteManifest(facts(func(f *recipe.Facts) { f.Manifest = text }))
	if d := cmp.Diff(got, again); err != nil || d != "" {
		t.Errorf("the packed manifest describes another image: %v %s", err, d)
	}
}

func TestAKernelIsNamedByItsLeadingNumbers(t *testing.T) {
	for given, ok := range map[string]bool{"6.12.107": true, "6.12.107+deb13-amd64": true, "6.12": true, "6.12.10": false, "6.1": false, "6.13": false} {
		text, err := json.Marshal(map[string]any{"os": map[string]string{"kernel": given}, "software": map[string]string{"kubelet": "1.37.0"}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := recipe.CompleteManifest(facts(func(f *recipe.Facts) { f.Manifest = text }))
		if (err == nil) != ok {
			t.Errorf("kernel %s: got %v", given, err)
		}
		if ok && m.OS.Kernel != given {
			t.Errorf("kernel %s became %s", given, m.OS.Kernel)
		}
	}
}

func TestWhoReadsTheUserDataIsFoundInTheTree(t *testing.T) {
	for release, want := range map[string]v1alpha1.UserDataKind{
		"ID=debian\nVERSION_ID=13\n": v1alpha1.UserDataCloudInit, "ID=flatcar\nVERSION_ID=4459.2.0\n": v1alpha1.UserDataIgnition,
		"ID=fedora\nVERSION_ID=43\nVARIANT_ID=coreos\n": v1alpha1.UserDataIgnition, "ID=fedora\nVERSION_ID=43\nVARIANT_ID=server\n": v1alpha1.UserDataCloudInit,
	} {
		for argument, platform := range map[string]string{"ignition.platform.id=openstack": "openstack", "flatcar.oem.id=metal": "metal", "quiet": ""} {
			if want == v1alpha1.UserDataCloudInit {
				platform = ""
			}
			m, err := recipe.CompleteManifest(recipe.Facts{OSRelease: []byte(release), Manifest: []byte(`{"kernelArguments": ["` + argument + `"], "software": {"kubelet": "1.37.0"}}`)})
			spec := m.OSImage("x", "", "x", "x").Spec
			if err != nil || spec.UserData != want || spec.IgnitionPlatform != platform {
				t.Errorf("%q with %s: %s on %q, want %s on %q: %v", release, argument, spec.UserData, spec.IgnitionPlatform, want, platform, err)
			}
		}
	}
	said := recipe.Facts{OSRelease: []byte("ID=fedora\nVERSION_ID=43\n"), Manifest: []byte(`{"userData": "Ignition", "software": {"kubelet": "1.37.0"}}`)}
	if m, err := recipe.CompleteManifest(said); err != nil || m.UserData != v1alpha1.UserDataIgnition {
		t.Errorf("what the tree says became %q: %v", m.UserData, err)
	}
	said.Manifest = []byte(`{"userData": "ignition", "software": {"kubelet": "1.37.0"}}`)
	if _, err := recipe.CompleteManifest(said); err == nil {
		t.Error("a kind that is none was taken")
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	for want, change := range map[string]func(*recipe.Facts){
		"say architecture":         func(f *recipe.Facts) { f.Loaders = []string{"EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/BOOTAA64.EFI"} },
		"grub-install --removable": func(f *recipe.Facts) { f.Loaders = nil },
		"more than one JSON value": func(f *recipe.Facts) { f.Manifest = append(f.Manifest, '{') },
		"architecture amd64 or": func(f *recipe.Facts) {
			f.ESP = false
			f.Manifest = []byte(`{"architecture": "riscv64", "software": {"kubelet": "1.37.0"}}`)
		},
		"vendor nvidia or amd": func(f *recipe.Facts) {
			f.Manifest = []byte(`{"software": {"kubelet": "1.37.0", "gpuDriver": {"vendor": "NVIDIA", "version": "1"}}}`)
		},
		"kernelModule Open or": func(f *recipe.Facts) {
			f.Manifest = []byte(`{"software": {"kubelet": "1.37.0", "gpuDriver": {"vendor": "nvidia", "version": "1", "kernelModule": "open"}}}`)
		},
		"pack the root directory of": func(f *recipe.Facts) { f.OSRelease = nil },
	} {
		_, err := recipe.CompleteManifest(facts(change))
		var p *recipe.Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a problem that says %q", err, want)
		}
	}
}

func TestPartitionsFillTheDiskWithoutTouching(t *testing.T) {
	id := recipe.NewIdentity([32]byte{1})
	for _, c := range []struct {
		need recipe.PartitionSizes
		size int64
		want int64
	}{
		{recipe.PartitionSizes{ESP: 64 * mib, Root: 100*mib + 1}, 0, 167 * mib},
		{recipe.PartitionSizes{Root: 100 * mib}, 0, 102 * mib},
		{recipe.PartitionSizes{ESP: 64 * mib, Root: 100 * mib}, 4096*mib + 5, 4096 * mib},
	} {
		d, err := recipe.NewDisk(c.need, c.size, "arm64", id)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(mib)
		if (d.ESP != nil) != (c.need.ESP > 0) {
			t.Errorf("%+v: the EFI system partition is wrong", c)
		}
		if d.ESP != nil {
			if d.ESP.Start != at || d.ESP.Size < c.need.ESP {
				t.Errorf("%+v: esp at %d with %d", c, d.ESP.Start, d.ESP.Size)
			}
			at += d.ESP.Size
		}
		if d.Size != c.want || d.Root.Start != at || d.Root.Size < c.need.Root || d.Root.Start+d.Root.Size != d.Size-mib {
			t.Errorf("%+v: disk of %d, root at %d with %d", c, d.Size, d.Root.Start, d.Root.Size)
		}
		if d.Root.Type != recipe.TypeRootARM64 {
			t.Errorf("root has type %s", d.Root.Type)
		}
	}
	if _, err := recipe.NewDisk(recipe.PartitionSizes{Root: 100 * mib}, 50*mib, "amd64", id); err == nil || !strings.Contains(err.Error(), "at least 102 MiB") {
		t.Errorf("too small a disk: got %v", err)
	}
}

// A changed rule would give known content other identifiers, and every image other bytes.
func TestIdentitiesFollowFromTheContentAlone(t *testing.T) {
	a, b := recipe.NewIdentity([32]byte{1}), recipe.NewIdentity([32]byte{2})
	if a.DiskGUID != "E3BFE3B3-9992-8035-94AB-FADA3021EB8D" {
		t.Errorf("the disk is %s", a.DiskGUID)
	}
	parts := map[string]bool{}
	for _, g := range []string{a.DiskGUID, a.ESPGUID, a.RootGUID, b.DiskGUID, b.ESPGUID, b.RootGUID} {
		parts[g] = true
	}
	if len(parts) != 6 || a.RootUUID == b.RootUUID || a.HashSeed == b.HashSeed || a.VolumeID == b.VolumeID {
		t.Errorf("identifiers repeat: %+v %+v", a, b)
	}
}

func TestNamesAreWhatTheAPITakes(t *testing.T) {
	for name, ok := range map[string]bool{"debian-13": true, "a": true, "Debian": false, "": false, "-a": false, "a_b": false, strings.Repeat("a", 201): false} {
		if recipe.IsValidName(name) != ok {
			t.Errorf("%q: want %v", name, ok)
		}
	}
	m := recipe.Manifest{OS: v1alpha1.OSImageOS{ID: "Rocky_Linux", Version: "9.5 (Blue Onyx)"}}
	if got := m.Name(); got != "rocky-linux-9.5-blue-onyx" || !recipe.IsValidName(got) {
		t.Errorf("got %q", got)
	}
	if got := m.OSImage("x", "", "x-0.raw.zst", "00").Spec.URL; got != recipe.PlaceholderServer+"/x-0.raw.zst" {
		t.Errorf("an image of no server has the URL %s", got)
	}
}

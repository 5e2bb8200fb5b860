package containerd

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func contents(n Node) map[string]string {
	out := map[string]string{}
	for _, f := range Files(n) {
		out[f.Path] = f.Content
	}
	return out
}

func TestMirrorsAreAskedInTheirOrderAndThenTheRegistry(t *testing.T) {
	files := contents(whole())
	want := `# Written by Ingot.

[host.'https://registry.example.com/v2/docker-hub']
  capabilities = ['pull', 'resolve']
  override_path = true
  ca = '/etc/containerd/certs.d/docker.io/ca.crt'

[host.'http://10.0.0.1:5000']
  capabilities = ['pull', 'resolve']
`
	if got := files["/etc/containerd/certs.d/docker.io/hosts.toml"]; got != want {
		t.Errorf("%s", got)
	}
	if files["/etc/containerd/certs.d/docker.io/ca.crt"] == "" {
		t.Error("the certificates are missing")
	}
	if got := files["/etc/containerd/certs.d/10.0.0.2:5000/hosts.toml"]; !strings.Contains(got, "[host.'https://registry.example.com']\n") || strings.Contains(got, "override_path") {
		t.Errorf("%s", got)
	}
}

func TestWhatContainerdNeedsFollowsFromTheGPUs(t *testing.T) {
	nvidia := func(p v1alpha1.Presentation) *v1alpha1.GPUSpec {
		return &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Presentation: p}
	}
	pass := v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadContainer}}
	toolkit := v1alpha1.OSImageSoftware{Containerd: "2.2.0", ContainerToolkit: "1.18.0"}
	packages := nvidia(pass)
	packages.Driver = v1alpha1.GPUDriver{Source: v1alpha1.DriverFromPackages, Packages: []string{"nvidia-open-570", "nvidia-container-toolkit=1.18.0-1"}}
	for name, c := range map[string]struct {
		software     v1alpha1.OSImageSoftware
		gpu          *v1alpha1.GPUSpec
		runtime, cdi bool
	}{
		"no GPUs":                        {toolkit, nil, false, false},
		"whole GPUs":                     {toolkit, nvidia(pass), true, true},
		"the toolkit is a package":       {v1alpha1.OSImageSoftware{Containerd: "2.0.0"}, packages, true, true},
		"containerd 1":                   {v1alpha1.OSImageSoftware{Containerd: "1.7.23", ContainerToolkit: "1.18.0"}, nvidia(pass), true, false},
		"the operator's toolkit":         {v1alpha1.OSImageSoftware{Containerd: "2.2.0"}, nvidia(pass), false, false},
		"claims":                         {toolkit, nvidia(v1alpha1.Presentation{Mode: v1alpha1.ModeDRA}), false, true},
		"instances by claims":            {toolkit, nvidia(v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Advertise: v1alpha1.AdvertiseDRA}}), false, true},
		"claims of another vendor":       {v1alpha1.OSImageSoftware{Containerd: "1.7.0"}, &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorAMD, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModeDRA}}, false, true},
		"another vendor's device plugin": {toolkit, &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorAMD, Presentation: pass}, false, false},
		"virtual machines":               {toolkit, nvidia(v1alpha1.Presentation{Passthrough: &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadVM}}), false, false},
		"a host of virtual GPUs":         {toolkit, nvidia(v1alpha1.Presentation{VGPU: &v1alpha1.VGPUSpec{Role: "Host"}}), false, false},
		"a guest with virtual GPUs":      {toolkit, nvidia(v1alpha1.Presentation{VGPU: &v1alpha1.VGPUSpec{Role: "Guest"}}), true, true},
	} {
		n := NodeOf(c.software, c.gpu, nil)
		if n.Runtime != c.runtime || n.CDI != c.cdi {
			t.Errorf("%s: %+v", name, n)
		}
		_, hasDropIn := contents(n)[pathDropIn]
		if want := (c.runtime || c.cdi) && c.software.Containerd[0] == '2'; hasDropIn != want {
			t.Errorf("%s: there is a drop-in: %v, want %v", name, hasDropIn, want)
		}
		if len(Units(n)) == 0 == (c.runtime || c.cdi) {
			t.Errorf("%s: units %v", name, Units(n))
		}
	}
}

// TestContainerd1HasNoDropIn: it would replace the image's whole section, and one whose version is unknown may be such a containerd.
func TestContainerd1HasNoDropIn(t *testing.T) {
	for _, version := range []string{"1.7.23", "1.6.20", "", "unknown"} {
		n := whole()
		n.Version = version
		files := contents(n)
		if _, isThere := files[pathDropIn]; isThere || files["/etc/containerd/certs.d/docker.io/hosts.toml"] == "" || !strings.Contains(files[checkProgramPath], "has sandbox-image") {
			t.Errorf("version %q: a drop-in %v, or mirrors or checks are missing", version, isThere)
		}
	}
}

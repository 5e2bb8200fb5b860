package ignition

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var versions = map[Variant]string{
	FCOS: "variant: fcos\nversion: 1.4.0\n", Flatcar: "variant: flatcar\nversion: 1.0.0\n",
	OpenShift: "variant: openshift\nversion: 4.14.0\nmetadata:\n  name: team\n  labels:\n    machineconfiguration.openshift.io/role: worker\n",
}

func node(v Variant) Config {
	c := Config{
		Variant: v, Hostname: "training-7xk2p", SSHKeys: []string{"ssh-ed25519 AAAA ops"},
		KernelArguments: []string{"modprobe.blacklist=nouveau", "iommu=pt"}, Baked: []string{"iommu=pt"},
		Files: []v1alpha1.NodeFile{
			{Path: "/usr/local/sbin/ingot-gpu-mode", Mode: "0755", Content: "#!/bin/sh\necho /usr/local/sbin/ingot-gpu-mode\n"},
			{Path: "/etc/kubernetes/kubelet.yaml", Mode: "0644", Content: "kind: KubeletConfiguration\n"},
		},
		Units: []v1alpha1.SystemdUnit{
			{Name: "ingot-gpu-mode.service", Content: "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/ingot-gpu-mode\n[Install]\nRequiredBy=kubelet.service\n"},
			{Name: "kubelet.service"},
		},
		Reserved: []string{"/var/lib/kubelet/kubeconfig", "/etc/systemd/system/kubelet.service.d/90-ingot.conf"},
		Secret:   []v1alpha1.NodeFile{{Path: "/etc/kubernetes/bootstrap-kubeconfig", Mode: "0600", Content: "token: abcdef.0123456789abcdef\n"}},
		Layers: []Layer{{Name: "NodeType h100", Text: versions[v] + "storage:\n  files:\n  - path: /etc/motd\n    mode: 0644\n    overwrite: true\n    contents:\n      inline: hello\n" +
			"systemd:\n  units:\n  - name: team.service\n    enabled: true\n    contents: |\n      [Service]\n      ExecStart=/bin/true\n      [Install]\n      WantedBy=multi-user.target\n" +
			"passwd:\n  users:\n  - name: core\n    ssh_authorized_keys: [ssh-ed25519 BBBB team]\n"}},
	}
	if v == OpenShift {
		c.Baked = c.KernelArguments
	}
	return c
}

// read is what Ignition's own parser and validator make of a configuration.
func read(t *testing.T, text []byte) types.Config {
	t.Helper()
	c, said, err := v3_4.Parse(text)
	if err != nil || len(said.Entries) > 0 {
		t.Fatalf("Ignition says: %v %s", err, said.String())
	}
	return c
}

func TestEveryVariantHasWhatTheNodeNeeds(t *testing.T) {
	for _, v := range []Variant{FCOS, Flatcar, OpenShift} {
		t.Run(string(v), func(t *testing.T) {
			text, err := Render(node(v))
			if err != nil {
				t.Fatal(err)
			}
			c := read(t, text)
			contents := map[string]string{}
			for _, f := range c.Storage.Files {
				u, err := dataurl.DecodeString(*f.Contents.Source)
				if err != nil || f.Mode == nil || f.Overwrite == nil || !*f.Overwrite {
					t.Fatalf("%s: %v", f.Path, err)
				}
				contents[f.Path] = string(u.Data)
			}
			program := "/usr/local/sbin/ingot-gpu-mode"
			if v == Flatcar {
				program = "/opt/bin/ingot-gpu-mode"
			}
			for path, want := range map[string]string{
				"/etc/hostname": "training-7xk2p\n", program: "#!/bin/sh\necho " + program + "\n", "/etc/motd": "hello",
				"/etc/kubernetes/kubelet.yaml": "kind: KubeletConfiguration\n", "/etc/kubernetes/bootstrap-kubeconfig": "token: abcdef.0123456789abcdef\n",
			} {
				if contents[path] != want {
					t.Errorf("%s is %q, want %q", path, contents[path], want)
				}
			}
			for _, u := range c.Systemd.Units {
				if u.Enabled == nil || !*u.Enabled {
					t.Errorf("%s is not enabled", u.Name)
				}
				if u.Name == "ingot-gpu-mode.service" && !strings.Contains(*u.Contents, "ExecStart="+program+"\n") {
					t.Errorf("the unit starts something else:\n%s", *u.Contents)
				}
			}
			if len(c.Systemd.Units) != 3 || len(c.Passwd.Users) != 1 || len(c.Passwd.Users[0].SSHAuthorizedKeys) != 2 {
				t.Errorf("units %v, users %+v", c.Systemd.Units, c.Passwd.Users)
			}
			want := 1
			if v == OpenShift {
				want = 0
			}
			if len(c.KernelArguments.ShouldExist) != want || want == 1 && c.KernelArguments.ShouldExist[0] != "modprobe.blacklist=nouveau" {
				t.Errorf("the kernel arguments are %v: those that the image has need not be set", c.KernelArguments.ShouldExist)
			}
		})
	}
}

func TestTheSameNodeHasTheSameBytes(t *testing.T) {
	first, err := Render(node(FCOS))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, err := Render(node(FCOS)); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("%v: the same input gave other bytes", err)
		}
	}
}

func TestWhatAVariantLacksIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		variant Variant
		change  func(*Config)
		says    string
	}{
		"packages on fcos":                {FCOS, func(c *Config) { c.Packages = []string{"chrony"} }, "chrony"},
		"packages on flatcar":             {Flatcar, func(c *Config) { c.Packages = []string{"chrony"} }, "chrony"},
		"packages on openshift":           {OpenShift, func(c *Config) { c.Packages = []string{"chrony"} }, "chrony"},
		"kernel arguments on openshift":   {OpenShift, func(c *Config) { c.Baked = nil }, "modprobe.blacklist=nouveau"},
		"files of /usr on fcos":           {FCOS, func(c *Config) { c.Files[0].Path = "/usr/lib/x" }, "/usr/lib/x"},
		"files of /usr/local on flatcar":  {Flatcar, func(c *Config) { c.Files[0].Path = "/usr/local/share/x" }, "/usr/local/share/x"},
		"a mode that openshift knows not": {OpenShift, func(c *Config) { c.Files[0].Mode = "4755" }, "special mode bits"},
	} {
		c := node(test.variant)
		test.change(&c)
		var lacks *Unsupported
		if _, err := Render(c); !errors.As(err, &lacks) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want *Unsupported that says %s", sentence, err, test.says)
		}
	}
	for id, want := range map[string]Variant{"fedora": FCOS, "flatcar": Flatcar, "rhcos": OpenShift, "Fedora-CoreOS": FCOS} {
		if got, err := VariantOf(id); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", id, got, err, want)
		}
	}
	var lacks *Unsupported
	if _, err := VariantOf("debian"); !errors.As(err, &lacks) {
		t.Errorf("error %v, want *Unsupported", err)
	}
}

func TestLayersThatFightAreNamedByPath(t *testing.T) {
	const files = "storage:\n  files:\n  - path: /etc/motd\n  - path: "
	for sentence, test := range map[string]struct{ text, path string }{
		"kubelet's configuration":   {files + "/etc/kubernetes/kubelet.yaml\n", "storage.files[1].path"},
		"the secret's file":         {files + "/var/lib/kubelet/kubeconfig\n", "storage.files[1].path"},
		"the host's name":           {files + "/etc/hostname\n", "storage.files[1].path"},
		"a file where we need a":    {files + "/etc/kubernetes\n", "storage.files[1].path"},
		"the unit as a file":        {files + "/etc/systemd/system/ingot-gpu-mode.service\n", "storage.files[1].path"},
		"a link above":              {"storage:\n  links:\n  - path: /etc/kubernetes\n    target: /tmp\n", "storage.links[0].path"},
		"a directory in its place":  {"storage:\n  directories:\n  - path: /etc/hostname\n", "storage.directories[0].path"},
		"the unit":                  {"systemd:\n  units:\n  - name: ingot-gpu-mode.service\n    contents: \"[Service]\\nExecStart=/bin/true\\n\"\n", "systemd.units[0]"},
		"a masked unit":             {"systemd:\n  units:\n  - name: kubelet.service\n    mask: true\n", "systemd.units[0]"},
		"a disabled unit":           {"systemd:\n  units:\n  - name: kubelet.service\n    enabled: false\n", "systemd.units[0]"},
		"the drop-in":               {"systemd:\n  units:\n  - name: kubelet.service\n    dropins:\n    - name: 90-ingot.conf\n      contents: \"[Service]\\n\"\n", "systemd.units[0]"},
		"a kernel argument removed": {"kernel_arguments:\n  should_not_exist: [iommu=pt]\n", "kernel_arguments.should_not_exist[0]"},
		"the user removed":          {"passwd:\n  users:\n  - name: core\n    should_exist: false\n", "passwd.users[0]"},
		"a configuration elsewhere": {"ignition:\n  config:\n    merge:\n    - source: https://example.com/x.ign\n", "ignition.config.merge"},
		"another configuration":     {"ignition:\n  config:\n    replace:\n      source: https://example.com/x.ign\n", "ignition.config.replace"},
	} {
		c := node(FCOS)
		c.Layers = append(c.Layers, Layer{Name: "the team's", Text: versions[FCOS] + test.text})
		var conflict *Conflict
		if _, err := Render(c); !errors.As(err, &conflict) || len(conflict.Findings) != 1 || conflict.Findings[0].Path != test.path || conflict.Findings[0].Layer != "the team's" {
			t.Errorf("%s: error %v, want one finding at %s", sentence, err, test.path)
		} else if again := Validate(c); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: Validate says %v", sentence, again)
		}
	}
}

func TestLayersThatAreNoButaneAreNamed(t *testing.T) {
	for sentence, text := range map[string]string{
		"a script":                  "#!/bin/sh\necho hunter2\n",
		"a cloud-config":            "#cloud-config\nhunter2: 1\n",
		"no YAML":                   "a: [hunter2\n",
		"Ignition itself":           `{"ignition":{"version":"3.4.0"}}`,
		"another variant":           versions[Flatcar],
		"no version":                "variant: fcos\n",
		"a version that is none":    "variant: fcos\nversion: hunter2\n",
		"an unknown version":        "variant: fcos\nversion: 9.0.0\n",
		"a version that is too new": "variant: fcos\nversion: 1.6.0\n",
		"an unknown key":            versions[FCOS] + "stroage: {}\n",
		"a value of another kind":   versions[FCOS] + "storage:\n  files: hunter2\n",
		"a file of the controller":  versions[FCOS] + "storage:\n  files:\n  - path: /etc/x\n    contents:\n      local: hunter2\n",
		"a relative path":           versions[FCOS] + "storage:\n  files:\n  - path: hunter2\n",
		"a source that is none":     versions[FCOS] + "storage:\n  files:\n  - path: /etc/x\n    contents:\n      source: \"hunter2://hunter2\"\n",
		"a key twice":               versions[FCOS] + "storage: {}\nstorage: {}\n",
	} {
		c := node(FCOS)
		c.Layers = append(c.Layers, Layer{Name: "the team's", Text: text})
		var bad *Invalid
		if _, err := Render(c); !errors.As(err, &bad) || bad.Findings[0].Layer != "the team's" || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want *Invalid of the layer, without its values", sentence, err)
		}
	}
}

func FuzzLayer(f *testing.F) {
	f.Add(node(FCOS).Layers[0].Text)
	f.Add(versions[FCOS] + "storage:\n  links:\n  - path: /a\n    target: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := node(FCOS)
		c.Layers = []Layer{{Name: "l", Text: text}}
		out, err := Render(c)
		if err != nil {
			return
		}
		if parsed, said, err := v3_4.Parse(out); err != nil || parsed.Ignition.Version != "3.4.0" {
			t.Fatalf("%q is taken, and Ignition refuses what becomes of it: %v %s", text, err, said.String())
		}
	})
}

func BenchmarkRender(b *testing.B) {
	c := node(FCOS)
	for b.Loop() {
		if _, err := Render(c); err != nil {
			b.Fatal(err)
		}
	}
}

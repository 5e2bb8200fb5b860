package kernel

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

// written gives files their content.
func written(files map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for path, text := range files {
		out[path] = []byte(text)
	}
	return out
}

const (
	ids  = "options vfio-pci ids=10de:2330,10de:22a3 disable_vga=1\n"
	soft = "softdep nvidia pre: vfio-pci post: nvidia-uvm\n"
)

func TestModulesAreLoadedAsTheFilesSay(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments, load, modprobe string
		loaded, not               string
	}{
		"what is named":                          {load: "vfio-pci\n", loaded: "vfio_pci"},
		"either spelling":                        {load: "vfio_pci", loaded: "vfio-pci"},
		"comments and blank lines":               {load: "# nouveau\n\n; ast\n vfio-pci \n", loaded: "vfio-pci", not: "nouveau"},
		"what the command line names":            {arguments: "modules_load=vfio-pci,kvm", loaded: "vfio-pci kvm"},
		"what is blacklisted is not":             {load: "nouveau\nkvm\n", modprobe: "blacklist nouveau\n", loaded: "kvm", not: "nouveau"},
		"nor by the command line":                {arguments: "modprobe.blacklist=ast,nouveau", load: "nouveau\n", not: "nouveau"},
		"a soft dependency comes with it":        {load: "nvidia\n", modprobe: soft, loaded: "nvidia vfio-pci nvidia-uvm"},
		"also a blacklisted one":                 {load: "nvidia\n", modprobe: soft + "blacklist vfio_pci\n", loaded: "nvidia vfio-pci"},
		"not one that may never be":              {arguments: "module_blacklist=vfio_pci", load: "nvidia\n", modprobe: soft, loaded: "nvidia", not: "vfio-pci"},
		"a circle of soft dependencies":          {load: "a\n", modprobe: "softdep a pre: b\nsoftdep b pre: a\n", loaded: "a b"},
		"an alias":                               {load: "net-pf-10\n", modprobe: "alias net-pf-10 ipv6\n", loaded: "ipv6", not: "net-pf-10"},
		"a command in its place":                 {load: "nouveau\n", modprobe: "install nouveau /bin/false\n", not: "nouveau"},
		"a command that loads it":                {load: "kvm\n", modprobe: "install kvm /bin/true; modprobe --ignore-install kvm\n", loaded: "kvm"},
		"a comment says nothing":                 {load: "nouveau\n", modprobe: "# blacklist nouveau\n#blacklist nouveau\n", loaded: "nouveau"},
		"lines go on":                            {load: "nouveau\n", modprobe: "blacklist \\\nnouveau\n", not: "nouveau"},
		"dracut's list ends with its ramdisk":    {arguments: "rd.driver.blacklist=nouveau", load: "nouveau\n", loaded: "nouveau"},
		"an argument with a dot is no blacklist": {arguments: "nouveau.modeset=0", load: "nouveau\n", loaded: "nouveau"},
	} {
		files := written(map[string]string{"/etc/modules-load.d/x.conf": test.load, "/etc/modprobe.d/x.conf": test.modprobe})
		arguments := strings.Fields(test.arguments)
		var m Modules
		err := m.LoadConfigured(ParseConfig(arguments, files), arguments, files)
		if err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
		for name := range strings.FieldsSeq(test.loaded) {
			if !m.IsLoaded(name) {
				t.Errorf("%s: %s is not loaded", sentence, name)
			}
		}
		for name := range strings.FieldsSeq(test.not) {
			if m.IsLoaded(name) {
				t.Errorf("%s: %s is loaded", sentence, name)
			}
		}
	}
}

func TestAFileOfTheSameNameIsReplacedByTheAdministrators(t *testing.T) {
	files := written(map[string]string{
		"/usr/lib/modprobe.d/a.conf": "blacklist nouveau\n", "/etc/modprobe.d/a.conf": "# nothing\n",
		"/usr/lib/modprobe.d/b.conf": "options m p=image\n", "/etc/modprobe.d/c.conf": "options m p=later\n", "/etc/modprobe.d/d.txt": "blacklist m\n",
	})
	c := ParseConfig([]string{"m.q=line", "m.flag"}, files)
	if c.IsBlacklisted("nouveau") || c.IsBlacklisted("m") {
		t.Error("a file that is replaced, or is none of the configuration's, counts")
	}
	if got, want := c.Options("m"), map[string]string{"p": "later", "q": "line", "flag": ""}; !maps.Equal(got, want) {
		t.Errorf("options %v, want %v", got, want)
	}
	if got := ParseConfig([]string{"m.p=line"}, files).Options("m")["p"]; got != "line" {
		t.Errorf("p=%s: the command line comes last", got)
	}
}

func TestModprobeObeysNoBlacklistUnlessAsked(t *testing.T) {
	c := ParseConfig([]string{"module_blacklist=never"}, written(map[string]string{"/etc/modprobe.d/x.conf": ids + "blacklist vfio-pci\n"}))
	m := Modules{Exists: func(module string) bool { return module != "absent" }}
	if err := m.Modprobe(c, []string{"-b", "vfio-pci"}); err != nil || m.IsLoaded("vfio-pci") {
		t.Errorf("with -b: %v", err)
	}
	if err := m.Modprobe(c, []string{"vfio-pci", "ids=1:2"}); err != nil || !maps.Equal(m.Options("vfio_pci"), map[string]string{"ids": "1:2", "disable_vga": "1"}) {
		t.Errorf("by hand: %v, %v", err, m.Options("vfio-pci"))
	}
	if err := m.Modprobe(c, []string{"-r", "vfio_pci"}); err != nil || m.IsLoaded("vfio-pci") {
		t.Errorf("removed: %v", err)
	}
	if err := m.Modprobe(c, []string{"-a", "kvm", "tun"}); err != nil || !m.IsLoaded("kvm") || !m.IsLoaded("tun") {
		t.Errorf("several: %v", err)
	}
	for _, words := range [][]string{{"never"}, {"absent"}} {
		var denied *LoadError
		if err := m.Modprobe(c, words); !errors.As(err, &denied) || denied.Module != words[0] {
			t.Errorf("%v: %v", words, err)
		}
	}
	if err := m.Modprobe(c, []string{"-q"}); err == nil {
		t.Error("modprobe without a module did something")
	}
}

func TestOptionsThatComeLaterDoNotReachALoadedModule(t *testing.T) {
	var m Modules
	if err := m.Modprobe(ParseConfig(nil, nil), []string{"vfio-pci"}); err != nil {
		t.Fatal(err)
	}
	later := ParseConfig(nil, written(map[string]string{"/etc/modprobe.d/x.conf": ids}))
	if err := m.Modprobe(later, []string{"vfio-pci"}); err != nil || len(m.Options("vfio-pci")) > 0 {
		t.Errorf("options %v, %v", m.Options("vfio-pci"), err)
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add("intel_iommu=on modprobe.blacklist=nouveau vfio-pci.ids=10de:2330", ids+soft+"alias a b\ninstall c d\n", "vfio-pci\n")
	f.Add(". .= =. x.", "options\nsoftdep a pre:\nblacklist\n\\\n", "\x00\n#")
	f.Fuzz(func(t *testing.T, line, modprobe, load string) {
		arguments := strings.Fields(line)
		files := written(map[string]string{"/etc/modprobe.d/x.conf": modprobe, "/etc/modules-load.d/x.conf": load})
		c := ParseConfig(arguments, files)
		var m Modules
		_ = m.LoadConfigured(c, arguments, files) // any text is some configuration
		for _, word := range strings.Fields(modprobe + " " + load) {
			if c.denied[CanonicalName(word)] && m.IsLoaded(word) {
				t.Errorf("%s is loaded", word)
			}
		}
	})
}

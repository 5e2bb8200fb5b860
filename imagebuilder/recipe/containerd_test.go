package recipe

import (
	"os"
	"strings"
	"testing"
)

func TestAContainerdThatIgnoresDropInsIsTold(t *testing.T) {
	const good = "version = 3 # of containerd 2\nimports = [\n  '/etc/containerd/conf.d/*.toml',\n]\n"
	for name, c := range map[string]struct{ config, version, want string }{
		"all is there":         {good, "2.2.0", ""},
		"no containerd":        {"", "", ""},
		"no configuration":     {"", "2.2.0", "version = 3 imports ="},
		"an older version":     {strings.Replace(good, "3", "2", 1), "2.2.0", "version = 3"},
		"no imports":           {"version = 3\n# imports = ['/etc/containerd/conf.d/*.toml']\n", "2.2.0", "imports ="},
		"other imports":        {"version = 3\nimports = ['/etc/own.toml']\n", "2.2.0", "imports ="},
		"CDI is off":           {good + "  enable_cdi = false\n", "2.2.0", "enable_cdi = false"},
		"containerd 1":         {"version = 2\n", "1.7.23", "enable_cdi = true containerd 1.7.23:"},
		"containerd 1 and CDI": {"version = 2\n  enable_cdi = true\n", "1.7.23", "containerd 1.7.23:"},
	} {
		got := ContainerdWarnings([]byte(c.config), c.version)
		want := []string{}
		for _, w := range []string{"enable_cdi = true", "containerd 1.7.23:", "version = 3", "imports =", "enable_cdi = false"} {
			if strings.Contains(c.want, w) {
				want = append(want, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d warnings %q, want %q", name, len(got), got, want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q lacks %q", name, got[i], want[i])
			}
		}
	}
}

func TestTheSampleImagesContainerdReadsDropIns(t *testing.T) {
	text, err := os.ReadFile("../../config/images/debian-kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	config, version := "", ""
	for _, f := range r.Files {
		if f.Path == "/"+ContainerdConfigPath {
			config = *f.Content
		}
	}
	for _, p := range r.Programs {
		if p.Path == "/usr/bin/containerd" {
			version = strings.TrimPrefix(p.Version, "v")
		}
	}
	if got := ContainerdWarnings([]byte(config), version); version == "" || len(got) > 0 {
		t.Errorf("containerd %q: %q", version, got)
	}
}

package ignition

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onto is a root file system with files.
func onto(id string, files map[string]string) Root {
	return Root{OS: id, Read: func(path string) ([]byte, bool) {
		content, ok := files[path]
		return []byte(content), ok
	}}
}

func configuration(rest string) []byte {
	return []byte(`{"ignition": {"version": "3.4.0"}` + rest + `}`)
}

func files(entries string) []byte { return configuration(`, "storage": {"files": [` + entries + `]}`) }

func packed(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return "data:;base64," + base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestFilesHaveTheContentThatTheirResourcesSay(t *testing.T) {
	sum := fmt.Sprintf("sha256-%x", sha256.Sum256([]byte("hello")))
	image := map[string]string{"/etc/there": "image "}
	for sentence, test := range map[string]struct{ entry, content, mode string }{
		"escaped":             {`"contents": {"source": "data:,hel%6Co"}`, "hello", "0644"},
		"in base64":           {`"contents": {"source": "data:;base64,aGVsbG8="}, "mode": 493`, "hello", "0755"},
		"compressed":          {`"contents": {"source": "` + packed("hello") + `", "compression": "gzip"}`, "hello", "0644"},
		"verified":            {`"contents": {"source": "` + packed("hello") + `", "compression": "gzip", "verification": {"hash": "` + sum + `"}}`, "hello", "0644"},
		"empty":               {`"mode": 384`, "", "0600"},
		"appended to nothing": {`"append": [{"source": "data:,hel"}, {"source": "data:,lo"}]`, "hello", "0644"},
	} {
		made, err := Apply(files(`{"path": "/etc/x", `+test.entry+`}`), onto("fedora", image))
		if err != nil || string(made.Files["/etc/x"].Content) != test.content || made.Files["/etc/x"].Mode != test.mode {
			t.Errorf("%s: %q, %v", sentence, made.Files["/etc/x"], err)
		}
	}
	for sentence, test := range map[string]struct{ entry, content string }{
		"appended to the image's": {`"append": [{"source": "data:,more"}]`, "image more"},
		"replaced":                {`"overwrite": true, "contents": {"source": "data:,new"}`, "new"},
		"only another mode":       {`"mode": 384`, "image "},
	} {
		made, err := Apply(files(`{"path": "/etc/there", `+test.entry+`}`), onto("fedora", image))
		if err != nil || string(made.Files["/etc/there"].Content) != test.content {
			t.Errorf("%s: %q, %v", sentence, made.Files["/etc/there"], err)
		}
	}
}

func TestEverythingElseIsMade(t *testing.T) {
	text := configuration(`,
	"kernelArguments": {"shouldExist": ["a=1 b", "c"], "shouldNotExist": ["quiet"]},
	"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k1", "k2"]}, {"name": "gone", "shouldExist": false, "sshAuthorizedKeys": ["k"]}, {"name": "root", "sshAuthorizedKeys": ["k3"]}]},
	"storage": {"directories": [{"path": "/var/d", "mode": 448}, {"path": "/var/e"}],
		"links": [{"path": "/etc/soft", "target": "../there"}, {"path": "/etc/hard", "target": "/etc/there", "hard": true}]},
	"systemd": {"units": [
		{"name": "a.service", "enabled": true, "contents": "[Service]\nExecStart=/a\n[Install]\nWantedBy=multi-user.target\n", "dropins": [{"name": "x.conf", "contents": "[Unit]\n"}]},
		{"name": "b.service", "enabled": false}, {"name": "c.service", "mask": true}, {"name": "d.service", "mask": false}]}`)
	made, err := Apply(text, onto("fedora", map[string]string{"/etc/there": "there"}))
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2][]string{
		"added": {made.Added, {"a=1", "b", "c"}}, "removed": {made.Removed, {"quiet"}}, "enabled": {made.Enabled, {"a.service"}}, "disabled": {made.Disabled, {"b.service"}},
		"masked": {made.Masked, {"c.service"}}, "unmasked": {made.Unmasked, {"d.service"}},
		"directories": {{made.Directories["/var/d"], made.Directories["/var/e"]}, {"0700", "0755"}}, "links": {{made.Links["/etc/soft"]}, {"../there"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	for path, want := range map[string]string{
		"/etc/systemd/system/a.service.d/x.conf": "[Unit]\n", "/home/core/.ssh/authorized_keys.d/ignition": "k1\nk2\n", "/root/.ssh/authorized_keys.d/ignition": "k3\n",
		"/etc/hard": "there",
	} {
		if got := string(made.Files[path].Content); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	flatcar, err := Apply(text, onto("flatcar", map[string]string{"/etc/there": ""}))
	if _, ok := flatcar.Files["/home/core/.ssh/authorized_keys"]; err != nil || !ok || len(flatcar.Files) != len(made.Files) {
		t.Errorf("on Flatcar: %v, %v", flatcar.Files, err)
	}
}

func TestWhatIgnitionRefusesIsToldWithoutItsContent(t *testing.T) {
	image := map[string]string{"/etc/there": "image"}
	for sentence, test := range map[string]struct {
		text []byte
		says string
	}{
		"no JSON":                   {[]byte(`{"secret-token`), ""},
		"cloud-config":              {[]byte("#cloud-config\nsecret-token: 1\n"), ""},
		"no version":                {[]byte(`{"x": "secret-token"}`), ""},
		"a version of the past":     {[]byte(`{"ignition": {"version": "2.3.0"}}`), "version"},
		"a version of the future":   {[]byte(`{"ignition": {"version": "3.99.0"}}`), "version"},
		"a value of another kind":   {configuration(`, "storage": "secret-token"`), ""},
		"a relative path":           {files(`{"path": "secret-token"}`), "storage.files.0.path"},
		"a path twice":              {files(`{"path": "/etc/a"}, {"path": "/etc/a"}`), "storage.files.1"},
		"content without overwrite": {files(`{"path": "/etc/there", "contents": {"source": "data:,secret-token"}}`), "/etc/there"},
		"a source to be fetched":    {files(`{"path": "/etc/a", "contents": {"source": "https://secret-token.example.com/x"}}`), "/etc/a"},
		"not compressed":            {files(`{"path": "/etc/a", "contents": {"source": "data:,secret-token", "compression": "gzip"}}`), "/etc/a"},
		"another hash":              {files(`{"path": "/etc/a", "contents": {"source": "data:,secret-token", "verification": {"hash": "sha256-` + strings.Repeat("0", 64) + `"}}}`), "/etc/a"},
		"another hash of appended":  {files(`{"path": "/etc/a", "append": [{"source": "data:,secret-token", "verification": {"hash": "sha512-` + strings.Repeat("0", 128) + `"}}]}`), "/etc/a"},
		"a file below /usr":         {files(`{"path": "/usr/lib/a"}`), "read-only"},
		"a directory below /usr":    {configuration(`, "storage": {"directories": [{"path": "/usr/share/a"}]}`), "read-only"},
		"a directory over a file":   {configuration(`, "storage": {"directories": [{"path": "/etc/there"}]}`), "/etc/there"},
		"a link over a file":        {configuration(`, "storage": {"links": [{"path": "/etc/there", "target": "/x"}]}`), "/etc/there"},
		"a hard link to nothing":    {configuration(`, "storage": {"links": [{"path": "/etc/a", "target": "/etc/b", "hard": true}]}`), "/etc/a"},
		"a configuration elsewhere": {[]byte(`{"ignition": {"version": "3.4.0", "config": {"merge": [{"source": "https://secret-token.example.com"}]}}}`), "ignition.config"},
		"a unit's name":             {configuration(`, "systemd": {"units": [{"name": "secret-token"}]}`), "systemd.units.0"},
		"a unit that is no unit":    {configuration(`, "systemd": {"units": [{"name": "a.service", "contents": "[secret-token"}]}`), "systemd.units.0"},
		"a flawed compression":      {files(`{"path": "/etc/a", "contents": {"source": "data:,secret-token", "compression": "xz"}}`), "storage.files.0"},
	} {
		_, err := Apply(test.text, onto("fedora", image))
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v, want an ErrRefused that says %q", sentence, err, test.says)
		}
	}
	local := files(`{"path": "/usr/local/bin/a"}`)
	if _, err := Apply(local, onto("fedora", nil)); err != nil {
		t.Errorf("/usr/local on Fedora CoreOS is a link to /var: %v", err)
	}
	if _, err := Apply(local, onto("flatcar", nil)); !errors.Is(err, ErrRefused) {
		t.Errorf("/usr/local on Flatcar is read-only: %v", err)
	}
	if made, err := Apply(nil, onto("fedora", nil)); err != nil || len(made.Files) > 0 {
		t.Errorf("no configuration: %v, %v", made, err)
	}
}

func FuzzApply(f *testing.F) {
	names, err := filepath.Glob("../../../../cloudinit/testdata/*.user-data.ign")
	if err != nil || len(names) == 0 {
		f.Fatal("no documents", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(files(`{"path": "/etc/a", "contents": {"source": "` + packed("x") + `", "compression": "gzip"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Apply(text, onto("fedora", map[string]string{"/etc/there": ""})); err != nil && !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
}

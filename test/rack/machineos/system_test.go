package machineos

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const userData = `#cloud-config
hostname: named-by-user
write_files:
- {path: /etc/late, content: late, defer: true}
- {path: /etc/plain, content: "one\n"}
- {path: /etc/plain, content: "two\n", append: true}
- {path: /etc/coded, content: aGVsbG8=, encoding: b64, permissions: '0600'}
- {path: /etc/packed, encoding: gz+b64, content: H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==}
- path: /etc/systemd/system/kubelet.service.d/10-first.conf
  content: |
    [Unit]
    After=containerd.service
    [Service]
    Environment="EXTRA=--v=2 --x" OTHER=o
    ExecStart=
    ExecStart=/usr/bin/kubelet $EXTRA --other=${OTHER} \
      --node-labels='a=b,c=d'
runcmd:
- touch /tmp/x && systemctl enable --now one
- [systemctl, enable, two.service]
- [systemctl, start, three]
- [systemctl, mask, --now, four]
- [systemctl, start, four]
- [systemctl, disable, --now, three]
`

func drive(uuid, userData string) *ConfigDrive {
	return &ConfigDrive{UserData: []byte(userData), MetaData: MetaData{UUID: uuid, Hostname: "from-metadata"}}
}

func TestCloudInitDoesItsWorkOncePerInstance(t *testing.T) {
	first, err := Boot(Image{}, drive("a", userData), nil, Machine{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/etc/plain": "one\ntwo\n", "/etc/coded": "hello", "/etc/packed": "hello", "/etc/late": "late"} {
		if got, err := first.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if first.Hostname != "named-by-user" || first.Files["/etc/coded"].Mode != "0600" || !slices.Equal(first.Ignored, []string{"touch"}) {
		t.Errorf("host name %s, ignored %v", first.Hostname, first.Ignored)
	}
	running := func(s *System) (out []string) {
		for _, unit := range []string{"one", "two", "three", "four"} {
			if s.IsRunning(unit) {
				out = append(out, unit)
			}
		}
		return out
	}
	if got := running(first); !slices.Equal(got, []string{"one"}) {
		t.Errorf("after the first boot %v run", got)
	}
	again, err := Boot(Image{}, drive("a", "#cloud-config\nwrite_files: [{path: /etc/plain, content: changed}]\n"), &first.State, Machine{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := again.ReadFile("/etc/plain"); string(got) != "one\ntwo\n" {
		t.Errorf("the second boot wrote %q", got)
	}
	if got := running(again); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("after the second boot %v run", got)
	}
	other, err := Boot(Image{}, drive("b", "#cloud-config\n"), &first.State, Machine{})
	if err != nil || other.Hostname != "from-metadata" {
		t.Errorf("another instance is called %s: %v", other.Hostname, err)
	}
}

func TestACommandLineIsPutTogetherAsSystemdDoes(t *testing.T) {
	s, err := Boot(Image{}, drive("a", userData), nil, Machine{})
	if err != nil {
		t.Fatal(err)
	}
	words, err := s.Command("kubelet", "[Service]\nExecStart=/usr/bin/kubelet --of-the-image\n")
	if want := []string{"/usr/bin/kubelet", "--v=2", "--x", "--other=o", "--node-labels=a=b,c=d"}; err != nil || !slices.Equal(words, want) {
		t.Errorf("%q: %v", words, err)
	}
	s.Files["/etc/systemd/system/kubelet.service.d/20-second.conf"] = File{Content: []byte("[Service]\nExecStart=/usr/bin/other\n")}
	if _, err := s.Command("kubelet", ""); err == nil || !strings.Contains(err.Error(), "2 commands") {
		t.Errorf("error %v", err)
	}
}

func TestUserDataThatIsNoneDoesNothingAndIsNotQuoted(t *testing.T) {
	for name, text := range map[string]string{
		"text": "secret-token\n", "nonsense": "#cloud-config\nwrite_files: secret-token\n", "ignition": `{"ignition": {"version": "3.4.0"}, "x": "secret-token"}`,
		"bad base64": "#cloud-config\nwrite_files: [{path: /x, encoding: b64, content: secret-token}]\nruncmd: [[systemctl, start, one]]\n",
	} {
		s, err := Boot(Image{}, drive("a", text), nil, Machine{})
		if err == nil || strings.Contains(err.Error(), "secret-token") || s == nil || len(s.Files) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Boot(Image{}, &ConfigDrive{UserData: []byte(userData)}, nil, Machine{}); !errors.Is(err, ErrNoConfigDrive) {
		t.Errorf("a drive without an instance id: %v", err)
	}
}

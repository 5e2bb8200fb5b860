package nvtool

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/gpu"
)

func gpus(t *testing.T, id string, count int) []*gpu.GPU {
	t.Helper()
	var devices []hardware.PCIDevice
	for i := range count {
		devices = append(devices, hardware.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.0", 16+i), VendorID: "10de", DeviceID: id, Class: "030200"})
	}
	out, err := gpu.Discover(devices, "server", "boot", "")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// layouts prints what the GPUs are cut into: "-" is not in MIG mode.
func layouts(gpus []*gpu.GPU) string {
	var out []string
	for _, g := range gpus {
		text := "-"
		if g.MIG {
			text = strings.TrimPrefix(fmt.Sprint(g.Layout()), "map")
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func files(config, hooks string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := map[string]string{"/c": config, "/h": hooks}[path]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}
}

const config = `version: v1
mig-configs:
  ingot:
  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}}
  halves:
  - {devices: [0, 1], mig-enabled: false}
  - {device-filter: "0x233010DE", devices: [2, 3], mig-enabled: true, mig-devices: {3g.40gb: 2}}
  other: [{device-filter: ["0x233510DE"], devices: all, mig-enabled: true, mig-devices: {1g.18gb: 7}}]
  empty: [{devices: all, mig-enabled: true, mig-devices: {}}]
  disabled: [{devices: all, mig-enabled: false, mig-devices: {}}]
  media: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb+me: 1, 1g.10gb: 6}}]
  tooMuch: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2, 1g.10gb: 1}}]
  foreign: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]
`

func TestMIGPartedMakesOfTheGPUsWhatItsFileSays(t *testing.T) {
	const balanced = "[1g.10gb:2 2g.20gb:1 3g.40gb:1]"
	for name, test := range map[string]struct {
		words       string
		environment map[string]string
		want        string
		err         string
	}{
		"long flags":         {"apply --config-file /c --hooks-file /h --selected-config ingot", nil, strings.Join([]string{balanced, balanced, balanced, balanced}, " "), ""},
		"short flags":        {"-d apply -f /c -k /h -c halves", nil, "- - [3g.40gb:2] [3g.40gb:2]", ""},
		"the environment":    {"apply", map[string]string{"MIG_PARTED_CONFIG_FILE": "/c", "MIG_PARTED_SELECTED_CONFIG": "empty"}, "[] [] [] []", ""},
		"another model's":    {"apply -f /c -c other", nil, "- - - -", ""},
		"off":                {"apply -f /c -c disabled", nil, "- - - -", ""},
		"media extension":    {"apply -f /c -c media", nil, strings.Join([]string{"[1g.10gb:6 1g.10gb+me:1]", "[1g.10gb:6 1g.10gb+me:1]", "[1g.10gb:6 1g.10gb+me:1]", "[1g.10gb:6 1g.10gb+me:1]"}, " "), ""},
		"the mode only":      {"apply -m -f /c -c ingot", nil, "[] [] [] []", ""},
		"an unknown config":  {"apply -f /c -c nonsense", nil, "- - - -", "not present: nonsense"},
		"none selected":      {"apply -f /c", nil, "- - - -", "not present"},
		"no file":            {"apply -f /nowhere -c ingot", nil, "- - - -", "read error"},
		"no hooks":           {"apply -f /c -k /nowhere -c ingot", nil, "- - - -", "hooks file"},
		"no room":            {"apply -f /c -c tooMuch", nil, "[] - - -", "insufficient resources"},
		"an unknown profile": {"apply -f /c -c foreign", nil, "[] - - -", "no profile 1g.5gb"},
		"assert":             {"assert -f /c -c ingot", nil, "- - - -", "MIG mode is false"},
		"assert what is so":  {"assert -f /c -c disabled", nil, "- - - -", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cards := gpus(t, "2330", 4)
			err := MIGParted{GPUs: cards}.Run(strings.Fields(test.words), test.environment, files(config, "version: v1\nhooks: {}\n"))
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v", err)
			}
			got := layouts(cards)
			if name == "no room" || name == "an unknown profile" {
				got, test.want = got[:2], test.want[:2] // the modes come first, then GPU by GPU
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestAFileThatMIGPartedRefusesChangesNothing(t *testing.T) {
	for text, want := range map[string]string{
		"version: v2\nmig-configs: {ingot: [{devices: all, mig-enabled: false}]}": "unknown version",
		"mig-configs: {ingot: [{devices: all, mig-enabled: false}]}":              "unknown version",
		"version: v1\n":                         "at least one entry",
		"version: v1\nmig-configs: {ingot: []}": "at least one entry in 'ingot'",
		"version: v1\nmig-configs: {ingot: [{devices: some, mig-enabled: false}]}":                           "'devices'",
		"version: v1\nmig-configs: {ingot: [{devices: all}]}":                                                "mig-enabled",
		"version: v1\nmig-configs: {ingot: [{devices: all, mig-enabled: true}]}":                             "mig-devices",
		"version: v1\nmig-configs: {ingot: [{devices: all, mig-enabled: false, mig-devices: {1g.10gb: 1}}]}": "is false",
		"version: v1\nmig-configs: {ingot: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: -1}}]}": "validating",
		"version: v1\nmig-configs: {ingot: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 0}}]}":  "counts are 0",
		"version: v1\nmig-configs: {ingot: [{devices: all, migEnabled: true, mig-enabled: false}]}":          "migEnabled",
	} {
		cards := gpus(t, "2330", 2)
		err := MIGParted{GPUs: cards}.Run([]string{"apply", "-f", "/c", "-c", "ingot"}, nil, files(text, ""))
		if err == nil || !strings.Contains(err.Error(), want) || layouts(cards) != "- -" {
			t.Errorf("%s: %v, %s", text, err, layouts(cards))
		}
	}
}

func TestNvidiaSMISetsTheMode(t *testing.T) {
	cards := gpus(t, "20b2", 3)
	for _, step := range []struct{ words, want, err string }{
		{"--query-gpu=index,mig.mode.current --format=csv", "- - -", ""},
		{"-mig 1", "[] [] []", ""},
		{"-i 1,2 -mig 0", "[] - -", ""},
		{"-mig perhaps", "[] - -", "invalid value"},
		{"mig -cgi 19 -C", "[] - -", "not simulated"},
		{"-mig DISABLED", "- - -", ""},
	} {
		err := RunSMI(cards, strings.Fields(step.words))
		if (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) || layouts(cards) != step.want {
			t.Errorf("nvidia-smi %s: %v, %s", step.words, err, layouts(cards))
		}
	}
	if err := RunSMI(gpus(t, "26b9", 1), []string{"-mig", "0"}); err != nil {
		t.Errorf("a GPU without MIG: %v", err)
	}
	if err := RunSMI(nil, []string{"-mig", "0"}); err == nil {
		t.Error("nvidia-smi finds no GPU and is content")
	}
}

func TestAChangedProfileIsWhatIsMade(t *testing.T) {
	cards := gpus(t, "2330", 1)
	m := MIGParted{GPUs: cards, RenameProfile: func(profile string) string { return strings.Replace(profile, "2g.20gb", "1g.20gb", 1) }}
	if err := m.Run([]string{"apply", "-f", "/c", "-c", "ingot"}, nil, files(config, "")); err != nil || layouts(cards) != "[1g.10gb:2 1g.20gb:1 3g.40gb:1]" {
		t.Errorf("%v, %s", err, layouts(cards))
	}
}

// TestTheContainerToolkitPrintsItsDefaultsAsComments has what nvidia-ctk config printed, first in a directory without a configuration, in the versions 1.16.2 and
// 1.18.0.
func TestTheContainerToolkitPrintsItsDefaultsAsComments(t *testing.T) {
	const volumes, environment = "accept-nvidia-visible-devices-as-volume-mounts", "accept-nvidia-visible-devices-envvar-when-unprivileged"
	disk := map[string]string{}
	tool := CTK{
		Read: func(path string) ([]byte, error) {
			if text, has := disk[path]; has {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		},
		Write: func(path string, content []byte) error { disk[path] = string(content); return nil },
	}
	for _, step := range []struct{ call, want string }{
		{"config", "#" + volumes + " = false\n#" + environment + " = true\n"},
		{"config --in-place --set " + environment + "=false --set " + volumes + "=false", ""},
		{"config", "#" + volumes + " = false\n" + environment + " = false\n"},
		{"config --in-place --set " + volumes + "=true", ""},
		{"config", volumes + " = true\n" + environment + " = false\n"},
		{"config --set other=true", "error: invalid --set option other=true"},
		{"config --set " + volumes + "=", "error: invalid --set option " + volumes + "="},
		{"cdi generate", "error: only nvidia-ctk config is simulated"},
	} {
		var out strings.Builder
		if err := tool.Run(strings.Fields(step.call), &out); err != nil {
			fmt.Fprintf(&out, "error: %v", err)
		}
		if out.String() != step.want {
			t.Errorf("%s: %q, want %q", step.call, out.String(), step.want)
		}
	}
	if IsToolkitOpen([]byte(disk[ToolkitConfig])) || !IsToolkitOpen(nil) || !IsToolkitOpen([]byte("# "+environment+" = false\n")) {
		t.Errorf("what decides is not read from %q", disk[ToolkitConfig])
	}
}

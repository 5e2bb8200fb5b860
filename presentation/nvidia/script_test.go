package nvidia_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/requests"
	"github.com/ingot-dev/ingot/test/require"
)

// nvidiaSMI answers as nvidia-smi does for GPUs whose MIG mode is in the file state; with stuck, even a reset does not change it.
const nvidiaSMI = `#!/bin/sh
echo "$*" >>"$ROOT/calls"
case "$1" in
--query-gpu=*) while read -r mode; do echo "0, $mode"; done <"$ROOT/state" ;;
--gpu-reset) test -e "$ROOT/stuck" || echo Disabled >"$ROOT/state" ;;
esac
`

func TestTheModeScriptSucceedsOnlyWhenTheModeIsOffAndTheFabricManagerRuns(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := presentation.Resolve(requests.H100())
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range map[string]struct {
		state, systemctl string
		stuck            bool
		calls            int
		well             bool
	}{
		"off already":              {"Disabled\nDisabled\n", "exit 0", false, 3, true},
		"on, and a reset helps":    {"Enabled\nDisabled\n", "exit 0", false, 4, true},
		"on, and stays on":         {"Enabled\n", "exit 0", true, 4, false},
		"off, no fabric manager":   {"Disabled\n", "exit 3", false, 3, false},
		"nvidia-smi knows no mode": {"[N/A]\n", "exit 0", true, 4, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write("state", tt.state)
			write("nvidia-smi", nvidiaSMI)
			write("systemctl", "#!/bin/sh\n"+tt.systemctl+"\n")
			write("script", plan.Files[0].Content)
			if tt.stuck {
				write("stuck", "")
			}
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "ROOT=" + dir}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if n := bytes.Count(calls, []byte("\n")); n != tt.calls {
				t.Errorf("%d calls of nvidia-smi, want %d:\n%s", n, tt.calls, calls)
			}
		})
	}
}

// migParted answers as nvidia-mig-parted does: it ends well when every GPU is as the configuration says.
const migParted = `#!/bin/sh
echo "$*" >>"$ROOT/calls"
exit "$(cat "$ROOT/state")"
`

func TestTheScriptOfPartitionedGPUsSucceedsOnlyWhenTheLayoutIsAppliedAndTheFabricManagerRuns(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := presentation.Resolve(requests.All()["h100-mig-mixed"])
	if err != nil {
		t.Fatal(err)
	}
	const call = "apply --config-file /etc/nvidia-mig-manager/ingot.yaml --hooks-file /etc/nvidia-mig-manager/hooks.yaml --selected-config ingot\n"
	for sentence, tt := range map[string]struct {
		state, systemctl string
		well             bool
	}{
		"applied":                        {"0", "exit 0", true},
		"not applied":                    {"1", "exit 0", false},
		"applied, and no fabric manager": {"0", "exit 3", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"state": tt.state, "nvidia-mig-parted": migParted, "systemctl": "#!/bin/sh\n" + tt.systemctl + "\n", "script": plan.Files[0].Content} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "ROOT=" + dir}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
			if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || string(calls) != call {
				t.Errorf("nvidia-mig-parted was called with %q (%v), want %q", calls, err, call)
			}
		})
	}
}

// systemctl answers as systemctl does for the units that the file running names, and writes down its other calls.
const systemctl = `#!/bin/sh
case "$1" in
is-active) for last; do :; done; grep -qx "$last" "$ROOT/running" ;;
cat) test -e "$ROOT/refresh" ;;
*) echo "systemctl $*" >>"$ROOT/calls" ;;
esac
`

// TestClientsOfTheGPUsAreStoppedForTheChange: a client that ran is stopped before the MIG mode changes and started after it, also when that fails.
func TestClientsOfTheGPUsAreStoppedForTheChange(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	for sentence, tt := range map[string]struct {
		request, running, state string
		refresh, well           bool
		calls                   string
	}{
		"two run":            {"a100-mig-part", "nvidia-dcgm.service\nnvsm.service\n", "0", true, true, "systemctl stop nvsm.service, systemctl stop nvidia-dcgm.service, apply, systemctl restart nvidia-cdi-refresh.service, systemctl start --no-block nvidia-dcgm.service, systemctl start --no-block nvsm.service, "},
		"none runs":          {"a100-mig-part", "", "0", false, true, "apply, "},
		"the change fails":   {"a100-mig-part", "dcgm.service\n", "1", true, false, "systemctl stop dcgm.service, apply, systemctl start --no-block dcgm.service, "},
		"the mode is turned": {"a100-sxm-4", "nvidia-dcgm.service\n", "0", true, true, "systemctl stop nvidia-dcgm.service, -mig, systemctl restart nvidia-cdi-refresh.service, systemctl start --no-block nvidia-dcgm.service, "},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan, err := presentation.Resolve(requests.All()[tt.request])
			if err != nil {
				t.Fatal(err)
			}
			if unit := plan.Units[len(plan.Units)-1]; !strings.Contains(unit.Content, "Before=kubelet.service") || !strings.Contains(unit.Content, " nvidia-dcgm.service") {
				t.Errorf("%s does not start before the clients: %s", unit.Name, unit.Content)
			}
			dir := t.TempDir()
			files := map[string]string{
				"running": tt.running + "nvidia-fabricmanager.service\n", "systemctl": systemctl, "script": plan.Files[0].Content,
				"nvidia-mig-parted": "#!/bin/sh\necho apply >>\"$ROOT/calls\"\nexit " + tt.state + "\n",
				"nvidia-smi":        "#!/bin/sh\ncase \"$1\" in\n-mig) echo -mig >>\"$ROOT/calls\" ;;\n--query-gpu=*) echo '0, Disabled' ;;\nesac\n",
			}
			if tt.refresh {
				files["refresh"] = ""
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "ROOT=" + dir}
			out, err := cmd.CombinedOutput()
			if (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if got := strings.ReplaceAll(string(calls), "\n", ", "); got != tt.calls {
				t.Errorf("called\n%s, want\n%s", got, tt.calls)
			}
		})
	}
}

package nvidia_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

package presentation

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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

func TestTheModeScriptEndsWellOnlyWhenTheModeIsOffAndTheFabricManagerRuns(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := Resolve(h100())
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

func TestTheModeScriptOfPartitionedGPUsEndsWellOnlyWhenTheLayoutIsAppliedAndTheFabricManagerRuns(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := Resolve(partitioned()["h100-mig-mixed"])
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

func TestScriptsAreWhatTheShellTakes(t *testing.T) {
	shell, seen := require.Tool(t, "sh", "apt-get install -y dash"), map[string]bool{}
	for name, r := range requests() {
		plan, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range plan.Files {
			if !strings.HasPrefix(f.Content, "#!") || seen[f.Content] {
				continue
			}
			seen[f.Content] = true
			cmd := exec.Command(shell, "-n")
			cmd.Stdin = strings.NewReader(f.Content)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, f.Path, err, out)
			}
		}
	}
}

func TestUnitsAreWhatSystemdTakes(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	stub := "[Unit]\nDescription=stub\n[Service]\nExecStart=/bin/true\n"
	seen := map[string]bool{}
	for name, r := range requests() {
		plan, err := Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(plan.Units)
		if len(plan.Units) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		dir := t.TempDir()
		for _, u := range append(plan.Units, v1alpha1.SystemdUnit{Name: "kubelet.service"}) {
			content := strings.ReplaceAll(u.Content, "/usr/local/sbin/ingot-gpu-mode", "/bin/true")
			if content == "" {
				content = stub
			}
			if err := os.WriteFile(filepath.Join(dir, u.Name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command(verify, "verify", filepath.Join(dir, "ingot-gpu-mode.service")).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("ingot-gpu-mode")) {
			t.Errorf("%s: systemd-analyze verify: %v\n%s", name, err, out)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for name, r := range requests() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Resolve(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

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
	"github.com/ingot-dev/ingot/test/requests"
	"github.com/ingot-dev/ingot/test/require"
)

func TestTheShellAcceptsTheScripts(t *testing.T) {
	shell, seen := require.Tool(t, "sh", "apt-get install -y dash"), map[string]bool{}
	for name, r := range requests.All() {
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

func TestSystemdAcceptsTheUnits(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	stub := "[Unit]\nDescription=stub\n[Service]\nExecStart=/bin/true\n"
	seen := map[string]bool{}
	for name, r := range requests.All() {
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
	for name, r := range requests.All() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Resolve(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

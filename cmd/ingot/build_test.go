package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

func TestBuildNamesAllMissingProgramsAtOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	status, _, stderr := ingot("image", "build", "../../config/images/debian-kubernetes.yaml", "-o", out, "--check")
	for _, want := range []string{"missing mmdebstrap, ", "qemu-system-x86_64, go: apt-get install mmdebstrap ", "qemu-system-x86 golang-go"} {
		if status != cli.ExitFailed || !strings.Contains(stderr, want) {
			t.Errorf("status %d, no %q: %s", status, want, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was done")
	}
}

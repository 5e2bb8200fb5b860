package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
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

func TestBuildForAnotherArchitectureNamesTheEmulation(t *testing.T) {
	text, err := os.ReadFile("../../config/images/debian-kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other, emulator := "arm64", "qemu-aarch64-static"
	if runtime.GOARCH == other {
		other, emulator = "amd64", "qemu-x86_64-static"
	}
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("architecture: amd64"), []byte("architecture: "+other), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	status, _, stderr := ingot("image", "build", file, "-o", t.TempDir())
	for _, want := range []string{"arch-test, " + emulator + ", update-binfmts", "arch-test qemu-user-static binfmt-support"} {
		if status != cli.ExitFailed || !strings.Contains(stderr, want) {
			t.Errorf("status %d, no %q: %s", status, want, stderr)
		}
	}
}

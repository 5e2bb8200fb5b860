package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

func ingot(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), newRootCommand(), args, &out, &err)
	return status, out.String(), err.String()
}

// system writes the least tree that can be packed.
func system(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"etc/os-release":                "ID=debian\nVERSION_ID=13\n",
		"usr/lib/ingot/image.json":      `{"software": {"kubelet": "1.37.0"}}`,
		"boot/efi/EFI/BOOT/BOOTX64.EFI": "loader",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPackPrintsTheObjectAloneOnStandardOutput(t *testing.T) {
	out := t.TempDir()
	status, stdout, stderr := ingot("image", "pack", system(t), "--output", out, "--name", "small", "--url-base", "https://images.example.com")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var image v1alpha1.OSImage
	if err := yaml.UnmarshalStrict([]byte(stdout), &image); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	file := strings.TrimPrefix(image.Spec.URL, "https://images.example.com/")
	if _, err := os.Stat(filepath.Join(out, file)); err != nil || image.Name != "small" {
		t.Errorf("object %s points at %s: %v", image.Name, image.Spec.URL, err)
	}
	if !strings.Contains(stderr, "packed") {
		t.Errorf("standard error does not tell what was done: %q", stderr)
	}
}

func TestSourceDateEpochIsTheImagesTime(t *testing.T) {
	pack := func() string {
		_, stdout, _ := ingot("image", "pack", system(t), "--output", t.TempDir(), "--name", "x", "--url-base", "http://x")
		return stdout
	}
	before := pack()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if pack() == before {
		t.Error("SOURCE_DATE_EPOCH changes nothing")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if status, _, stderr := ingot("image", "pack", system(t), "--output", t.TempDir()); status != cli.ExitFailed || !strings.Contains(stderr, "SOURCE_DATE_EPOCH") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestWhatIsNotUnderstoodGetsTheUsageLine(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"imag"}, cli.ExitUsage, []string{`unknown command "imag"`, "image", "version", "usage: ingot"}},
		{[]string{"image", "bake"}, cli.ExitUsage, []string{"pack", "ramdisk", "usage: ingot image"}},
		{[]string{"image", "pack"}, cli.ExitUsage, []string{"usage: ingot image pack DIR"}},
		{[]string{"image", "pack", dir, "--outptu", "x"}, cli.ExitUsage, []string{"--outptu", "usage: ingot image pack DIR"}},
		{[]string{"image", "pack", dir, "--size", "big"}, cli.ExitUsage, []string{"4Gi", "usage:"}},
		{[]string{"image", "pack", dir, "--url-base", "images"}, cli.ExitUsage, []string{"http(s)://", "usage:"}},
		{[]string{"image", "pack", filepath.Join(dir, "none")}, cli.ExitFailed, []string{"no such file"}},
		{[]string{"image", "pack", dir}, cli.ExitFailed, []string{"software"}},
		{[]string{"image", "build"}, cli.ExitUsage, []string{"usage: ingot image build RECIPE"}},
		{[]string{"image", "build", "main.go"}, cli.ExitUsage, []string{"-o", "usage: ingot image build RECIPE"}},
		{[]string{"image", "build", "main.go", "-o", dir}, cli.ExitFailed, []string{"main.go", "recipe"}},
		{[]string{"image", "convert", "x"}, cli.ExitUsage, []string{".raw.zst", "usage: ingot image convert"}},
		{[]string{"image", "ramdisk"}, cli.ExitUsage, []string{"--agent", "usage: ingot image ramdisk"}},
		{[]string{"image", "ramdisk", "--agent", "main.go", "--kernel", dir, "-o", filepath.Join(dir, "r")}, cli.ExitFailed, []string{"Linux program", "make build"}},
		{[]string{"demo", "--plain"}, cli.ExitFailed, []string{"ingot-demo", "make demo"}},
		{[]string{"version", "now"}, cli.ExitUsage, []string{"usage: ingot version"}},
	} {
		status, stdout, stderr := ingot(c.args...)
		if status != c.status || stdout != "" {
			t.Errorf("%v: status %d, want %d; standard output %q", c.args, status, c.status, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: %q does not say %q", c.args, stderr, want)
			}
		}
		if lines := strings.Count(stderr, "\n"); lines > 2 {
			t.Errorf("%v: %d lines on standard error:\n%s", c.args, lines, stderr)
		}
	}
}

func TestARamdiskIsMadeOfAStaticProgramOnly(t *testing.T) {
	out := filepath.Join(t.TempDir(), "boot")
	status, _, stderr := ingot("image", "ramdisk", "--agent", "/bin/sh", "--kernel", t.TempDir(), "-o", out)
	if status != cli.ExitFailed || !strings.Contains(stderr, "CGO_ENABLED=0") {
		t.Errorf("a dynamically linked program: status %d: %s", status, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused program left a ramdisk")
	}
}

func TestVersionNamesTheProgram(t *testing.T) {
	if status, stdout, _ := ingot("version"); status != cli.ExitOK || !strings.HasPrefix(stdout, "ingot ") {
		t.Errorf("status %d: %q", status, stdout)
	}
	_, want, _ := ingot("version")
	if status, stdout, stderr := ingot("--version"); status != cli.ExitOK || stdout != want {
		t.Errorf("--version: status %d: %q%q, expected %q", status, stdout, stderr, want)
	}
	// As the linker sets it.
	version = "v1.2.3-4-gabcdef0"
	t.Cleanup(func() { version = "" })
	if _, stdout, _ := ingot("version"); !strings.HasPrefix(stdout, "ingot v1.2.3-4-gabcdef0 go") {
		t.Errorf("expected the version of the linker, got %q", stdout)
	}
}

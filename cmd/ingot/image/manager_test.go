package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

func ingot(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), cli.NewGroup("ingot", "", Command()), append([]string{"image"}, args...), &out, &err)
	return status, out.String(), err.String()
}

// programs builds a small program for amd64, and makes one for arm64 of it, which nothing runs.
func programs(t *testing.T) (amd64, arm64 string) {
	t.Helper()
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"main.go": "package main\n\nfunc main() {}\n", "go.mod": "module example.com/small\n\ngo 1.26\n"})
	amd64, arm64 = filepath.Join(dir, "amd64"), filepath.Join(dir, "arm64")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", amd64, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64", "GOOS=linux", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(amd64)
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18 // of the ELF header
	program[machine], program[machine+1] = 0xb7, 0
	if err := os.WriteFile(arm64, program, 0o600); err != nil {
		t.Fatal(err)
	}
	return amd64, arm64
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns the regular files of an image.
func contents(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	return readTar(t, mutate.Extract(image))
}

func TestTheManagersImageHasWhatTheInstallationNeeds(t *testing.T) {
	amd64, arm64 := programs(t)
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{
		"boot/vmlinuz": "kernel", "boot/agent.cpio.zst": "initrd", "boot/ramdisk.json": "{}", "boot/.ramdisk-1": "half",
		"ipxe/snponly.efi": "ipxe", "ipxe/qemu/rom.rom": "rom", "ipxe/undionly.kpxe": "bios",
	})
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	image := strings.TrimPrefix(server.URL, "http://") + "/ingot/ingot-manager:v1"
	args := []string{
		"manager", "--program", "amd64=" + amd64, "--program", "arm64=" + arm64, "--boot", dir + "/boot", "--bootloaders", dir + "/ipxe",
		"--name", image, "--version", "v1", "--push", "-o", dir + "/out",
	}
	status, first, stderr := ingot(args...)
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if _, again, _ := ingot(args...); again != first || !strings.HasPrefix(first, image+"@sha256:") {
		t.Errorf("%q and %q", first, again)
	}
	ref, err := name.ParseReference(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	for architecture, program := range map[string]string{"amd64": amd64, "arm64": arm64} {
		pulled, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		files := contents(t, pulled)
		want, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if files[programPath] != string(want) {
			t.Errorf("%s: the program has %d bytes, expected %d", architecture, len(files[programPath]), len(want))
		}
		for path, text := range map[string]string{
			"var/lib/ingot/boot/vmlinuz": "kernel", "var/lib/ingot/boot/agent.cpio.zst": "initrd", "usr/lib/ipxe/snponly.efi": "ipxe", "usr/lib/ipxe/undionly.kpxe": "bios",
		} {
			if files[path] != text {
				t.Errorf("%s: %s is %q", architecture, path, files[path])
			}
		}
		if !strings.Contains(files[systemRoots], "BEGIN CERTIFICATE") || !strings.Contains(files[contentsPath], "./var/lib/ingot/boot/vmlinuz") {
			t.Errorf("%s: no certificates or no list of contents", architecture)
		}
		for _, path := range []string{"usr/lib/ipxe/qemu/rom.rom", "var/lib/ingot/boot/.ramdisk-1"} {
			if _, found := files[path]; found {
				t.Errorf("%s: %s is in the image", architecture, path)
			}
		}
		config, err := pulled.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != imageUser || c.Entrypoint[0] != "/"+programPath || c.Labels["org.opencontainers.image.licenses"] != "Apache-2.0 AND GPL-2.0-only" || c.Labels["org.opencontainers.image.version"] != "v1" {
			t.Errorf("%s: %+v", architecture, c)
		}
	}
}

func TestTheImageHasTheFilesWhereTheManagerLooks(t *testing.T) {
	if want := settings.Default().Boot.Files; "/"+bootPath != want {
		t.Errorf("the image has kernel and ramdisk in /%s, the manager looks in %s", bootPath, want)
	}
}

func TestAWrongManagersImageIsRefused(t *testing.T) {
	amd64, arm64 := programs(t)
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"boot/vmlinuz": "kernel", "empty/readme": "", "script": "#!/bin/sh\n"})
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, cli.ExitUsage, "expected --program"},
		{[]string{"--program", "amd64=" + amd64, "--name", "ingot-manager"}, cli.ExitUsage, "expected REGISTRY/NAME:TAG"},
		{[]string{"--program", "amd64=" + arm64, "--name", "example.com/manager:v1"}, cli.ExitFailed, "expected a program for amd64 (EM_X86_64), found one for EM_AARCH64"},
		{[]string{"--program", "amd64=" + dir + "/script", "--name", "example.com/manager:v1"}, cli.ExitFailed, "expected a Linux program"},
		{[]string{"--program", "riscv64=" + amd64, "--name", "example.com/manager:v1"}, cli.ExitFailed, "expected the architectures amd64 and arm64"},
		{[]string{"--program", "amd64=" + amd64, "--name", "example.com/manager:v1", "--boot", dir + "/boot"}, cli.ExitFailed, "found no agent.cpio.zst"},
		{[]string{"--program", "amd64=" + amd64, "--name", "example.com/manager:v1", "--bootloaders", dir + "/empty"}, cli.ExitFailed, "expected iPXE's programs"},
		{[]string{"--program", "amd64=" + amd64, "--name", "example.com/manager:v1", "--ca", dir + "/script"}, cli.ExitFailed, "expected certificates in PEM"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		status, stdout, stderr := ingot(append([]string{"manager", "-o", out}, c.args...)...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, %q", c.args, status, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: something is written", c.args)
		}
	}
}

// readTar returns the regular files of an archive.
func readTar(t *testing.T, archive io.ReadCloser) map[string]string {
	t.Helper()
	defer archive.Close()
	files := map[string]string{}
	for reader := tar.NewReader(archive); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

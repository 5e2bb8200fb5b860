package build_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/imagebuilder/bootcheck"
	"github.com/ingot-dev/ingot/imagebuilder/build"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/test/require"
)

// options returns those of the small recipe, with the repository that this machine itself has its packages from.
func options(t *testing.T) build.Options {
	t.Helper()
	require.Tool(t, "mmdebstrap", "apt-get install mmdebstrap")
	text, err := os.ReadFile("testdata/small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Debian.Repositories = []recipe.Repository{machinesRepository(t)}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return build.Options{Recipe: r, Dir: dir, Output: t.TempDir(), Epoch: build.DefaultEpoch, Progress: t.Output()}
}

// machinesRepository returns the repository with the base system of this machine.
func machinesRepository(t *testing.T) recipe.Repository {
	t.Helper()
	const keys, install = "/usr/share/keyrings/debian-archive-keyring.gpg", "on a Debian, run apt-get update and apt-get install debian-archive-keyring"
	if _, err := os.Stat(keys); err != nil {
		require.Missing(t, keys, install)
	}
	targets, err := exec.CommandContext(t.Context(), "apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(CODENAME)|$(COMPONENT)", "Identifier: Packages").Output()
	if err != nil {
		require.Missing(t, "apt-get", install)
	}
	for line := range strings.Lines(string(targets)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 4 && f[0] == "Debian" && !strings.Contains(f[2], "-") && f[3] == "main" {
			return recipe.Repository{URL: f[1], Suite: f[2], Components: []string{"main"}, KeyFile: keys}
		}
	}
	require.Missing(t, "a repository of Debian", install)
	return recipe.Repository{}
}

// makePackage makes a Debian package in dir and returns its name.
func makePackage(t *testing.T, dir string) string {
	t.Helper()
	program := require.Tool(t, "dpkg-deb", "apt-get install dpkg")
	const control = "Package: image-test\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: test\n"
	files := filepath.Join(dir, "package")
	if err := os.MkdirAll(filepath.Join(files, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "DEBIAN", "control"), []byte(control), 0o644); err != nil {
		t.Fatal(err)
	}
	const name = "it's_1.0_all.deb"
	if out, err := exec.CommandContext(t.Context(), program, "--root-owner-group", "--build", files, filepath.Join(dir, name)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return name
}

// TestTheSmallRecipeBootsAndGivesTheSameBytes builds the image twice, and meanwhile boots it with Secure Boot on: shim, GRUB and kernel are signed.
func TestTheSmallRecipeBootsAndGivesTheSameBytes(t *testing.T) {
	require.OneOf(t, 4)
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	require.Tool(t, "qemu-system-x86_64", "apt-get install qemu-system-x86")
	firmware := bootcheck.SecureFirmware
	if _, err := os.Stat(firmware.Code); err != nil {
		require.Missing(t, "OVMF", "apt-get install ovmf")
	}
	opts := options(t)
	opts.Recipe.Debian.LocalPackages = []string{makePackage(t, opts.Dir)}
	first, err := build.Build(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := first.OSImage.Spec; got.Architecture != "amd64" || got.OS.ID != "debian" || !strings.HasSuffix(got.OS.Kernel, "-cloud-amd64") ||
		got.Software.Kubelet != "1.37.0" || got.UserData != "CloudInit" || len(got.KernelArguments) != 2 {
		t.Errorf("the OSImage: %+v", got)
	}
	contents, err := json.Marshal(first.Contents)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pkg:deb/debian/cloud-init@", "pkg:golang/github.com/fzipp/gocyclo@v0.6.0", "./usr/bin/kubelet", "pkg:deb/debian/image-test@1.0"} {
		if !strings.Contains(string(contents), want) {
			t.Errorf("the list of contents has no %s", want)
		}
	}
	booted := make(chan error, 1)
	console := filepath.Join(t.TempDir(), "console.log")
	go func() {
		booted <- bootcheck.Check(t.Context(), bootcheck.Options{Image: first.Path, Console: console, Firmware: firmware, Limit: 12 * time.Minute, Progress: t.Output()})
	}()
	again := opts
	again.Output = t.TempDir()
	second, err := build.Build(t.Context(), again)
	if err := errors.Join(err, <-booted); err != nil {
		text, readErr := os.ReadFile(console)
		t.Fatalf("%v\n%s %v", err, text[max(0, len(text)-4000):], readErr)
	}
	if text, err := os.ReadFile(console); err != nil || !bytes.Contains(text, []byte("Secure boot enabled")) {
		t.Errorf("the kernel does not say that Secure Boot is on, error %v", err)
	}
	if first.Checksum != second.Checksum {
		t.Errorf("the same recipe gave %s and %s", first.Checksum, second.Checksum)
	}
	if left, err := filepath.Glob(filepath.Join(opts.Output, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAFailedStepLeavesItsLogAndNoImage(t *testing.T) {
	opts := options(t)
	opts.Recipe.Debian.Repositories[0].Suite = "no-such-suite"
	_, err := build.Build(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "install the packages") || !strings.Contains(err.Error(), "no-such-suite") {
		t.Errorf("%v", err)
	}
	entries, readErr := os.ReadDir(opts.Output)
	if readErr != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), ".log") {
		t.Errorf("left %v, %v", entries, readErr)
	}
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	opts := options(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts.Progress = writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("downloading packages")) {
			cancel()
		}
		return t.Output().Write(b)
	})
	if _, err := build.Build(ctx, opts); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(opts.Output); err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if line, err := os.ReadFile(p); err == nil && bytes.Contains(line, []byte(opts.Output)) {
			t.Errorf("%s still runs: %q", p, line)
		}
	}
}

func TestMissingFilesAreAllNamedBeforeAnythingIsDone(t *testing.T) {
	opts := options(t)
	opts.Dir, opts.Output = t.TempDir(), filepath.Join(t.TempDir(), "none")
	_, err := build.Build(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "files[0].from") || !strings.Contains(err.Error(), "programs[0].sums") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(opts.Output); err == nil {
		t.Error("the output was made")
	}
}

func TestAModuleWhoseDigestTheRecipeDoesNotHaveIsRefused(t *testing.T) {
	opts := options(t)
	if err := os.WriteFile(filepath.Join(opts.Dir, "gocyclo.sum"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if _, err := build.Programs(t.Context(), opts, io.MultiWriter(&log, t.Output()), opts.Recipe.Programs[0].Path); err == nil || !strings.Contains(err.Error(), "gocyclo v0.6.0 h1:") {
		t.Errorf("%v\n%s", err, log.String())
	}
	wrong := "github.com/fzipp/gocyclo v0.6.0 h1:AAAAaHPN2YOgIKXTnN4XXDaDJSwxHO8ZAjPxvJJJJJI=\n"
	if err := os.WriteFile(filepath.Join(opts.Dir, "gocyclo.sum"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := build.Programs(t.Context(), opts, &log, opts.Recipe.Programs[0].Path); err == nil || !strings.Contains(log.String(), "SECURITY ERROR") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

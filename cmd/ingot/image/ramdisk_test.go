package image

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/kmodule"
)

// kernelDir is a directory with a kernel for the architecture whose image starts so, and one module.
func kernelDir(t *testing.T, magicAt int, magic string) string {
	t.Helper()
	image := make([]byte, 0x240)
	copy(image[magicAt:], magic)
	image[0x236] = 1
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"boot/vmlinuz-6.1": string(image), "lib/modules/6.1/modules.builtin": "",
		"lib/modules/6.1/kernel/drivers/ata/a.ko": string(kmodule.New("firmware=rtl_nic/a.fw", "firmware=b-*.fw"))})
	return dir
}

func TestTheAgentMustRunOnTheKernelsArchitecture(t *testing.T) {
	amd64, arm64 := programs(t)
	for _, c := range []struct {
		kernel, agent, want string
	}{
		{kernelDir(t, 0x202, "HdrS"), arm64, "GOARCH=amd64"},
		{kernelDir(t, 56, "ARM\x64"), amd64, "GOARCH=arm64"},
	} {
		out := filepath.Join(t.TempDir(), "boot")
		if status, _, stderr := ingot("ramdisk", "--agent", c.agent, "--kernel", c.kernel, "--no-system-ca", "-o", out); status == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("expected %q, seen %d: %s", c.want, status, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("something was written")
		}
	}
}

func TestAnRPMIsRefusedWithWhatToDo(t *testing.T) {
	amd64, _ := programs(t)
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"kernel.rpm": "\xed\xab\xee\xdb\x03\x00"})
	rpm := filepath.Join(dir, "kernel.rpm")
	kernel := kernelDir(t, 0x202, "HdrS")
	for _, args := range [][]string{{"--kernel", rpm}, {"--kernel", kernel, "--firmware", rpm}} {
		args = append([]string{"ramdisk", "--agent", amd64, "--no-system-ca", "-o", filepath.Join(dir, "boot")}, args...)
		if status, _, stderr := ingot(args...); status == 0 || !strings.Contains(stderr, "rpm2cpio") {
			t.Errorf("%v: %d: %s", args, status, stderr)
		}
	}
	if status, _, stderr := ingot("ramdisk", "--agent", amd64, "--kernel", kernel, "--kernel", kernel, "-o", filepath.Join(dir, "boot")); status == 0 || !strings.Contains(stderr, "one directory") {
		t.Errorf("two directories: %d: %s", status, stderr)
	}
}

// certificate writes a certificate and returns the path.
func certificate(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{name: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))})
	return filepath.Join(dir, name)
}

func TestTheSameInputsGiveTheSameBytesWhoeverMakesThem(t *testing.T) {
	agent, _ := programs(t)
	kernel, first, second := kernelDir(t, 0x202, "HdrS"), certificate(t, "first"), certificate(t, "second")
	firmware := t.TempDir()
	writeAll(t, firmware, map[string]string{"lib/firmware/b-1.fw": "one", "lib/firmware/updates/b-1.fw": "newer", "lib/firmware/b-2.fw": "two"})
	out := t.TempDir()
	run := func(name string, args ...string) {
		args = append([]string{"ramdisk", "--agent", agent, "--kernel", kernel, "--no-system-ca", "--firmware", firmware, "-o", filepath.Join(out, name)}, args...)
		status, _, stderr := ingot(args...)
		if status != 0 || !strings.Contains(stderr, "firmware-realtek: a\n") {
			t.Fatalf("%d: %s", status, stderr)
		}
	}
	run("one", "--ca", first, "--ca", second)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	if err := filepath.WalkDir(kernel, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
	}); err != nil {
		t.Fatal(err)
	}
	run("two", "--ca", second, "--ca", first, "--ca", first)
	for _, name := range []string{kernelFile, initrdFile, reportFile} {
		one, err := os.ReadFile(filepath.Join(out, "one", name))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(out, "two", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s differs", name)
		}
		if info, err := os.Stat(filepath.Join(out, "two", name)); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if name == reportFile && !strings.Contains(string(one), `"b-1.fw",`) {
			t.Errorf("the pattern has found nothing: %s", one)
		}
	}
}
